// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A push to a device.
public struct QSIOPPush: Hashable, Sendable {
    /// The push's id.
    public var id: String
    /// The title; may be empty.
    public var title: String
    /// The text; may be empty.
    public var body: String
    /// All keys and values, including id, title and body.
    public var values: [String: String]
}
