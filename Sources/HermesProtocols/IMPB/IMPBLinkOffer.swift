// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The answer to a request for a direct link.
public struct IMPBLinkOffer: Hashable, Sendable {
    /// Whether the other account is connected.
    public var isOnline: Bool
    /// Whether the other account exists.
    public var exists: Bool
    /// This device's addresses.
    public var own: IMPBAddress
    /// The other device's addresses.
    public var peer: IMPBAddress
}
