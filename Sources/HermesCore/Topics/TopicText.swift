// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A key: a topic filter as a client wrote it (including `$share/…`), or the name of a share. It is compared byte by
/// byte and never normalized [MQTT-4.7.3-4].
package struct TopicText: Hashable, Sendable {
    package let rawValue: String

    package init(_ rawValue: String) { self.rawValue = rawValue }

    package static func == (left: Self, right: Self) -> Bool { left.rawValue.hasBytes(of: right.rawValue) }

    package func hash(into hasher: inout Hasher) { rawValue.hashBytes(into: &hasher) }
}
