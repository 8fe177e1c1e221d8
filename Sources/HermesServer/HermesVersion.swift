// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The version of this server and its command line.
public enum HermesVersion {
    /// The version number, according to Semantic Versioning.
    public static let current = "0.1.0"
}
