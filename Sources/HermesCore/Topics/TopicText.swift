// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A text that serves as a key: a topic filter as a client wrote it (including `$share/…`), or the name of a group that
/// shares a subscription. It is compared byte by byte and never normalized [MQTT-4.7.3-4].
public struct TopicText: Hashable, Sendable {
    package let rawValue: String

    package init(_ rawValue: String) { self.rawValue = rawValue }

    /// Compares byte by byte.
    public static func == (left: Self, right: Self) -> Bool { left.rawValue.hasBytes(of: right.rawValue) }

    /// Hashes the bytes.
    public func hash(into hasher: inout Hasher) { rawValue.hashBytes(into: &hasher) }
}
