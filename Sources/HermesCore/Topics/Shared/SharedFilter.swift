// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The text of shared subscriptions, `$share/<group>/<filter>` (MQTT 5, 4.8.2).
package enum SharedFilter {
    static let prefix = "$share/"

    /// Whether the text of a subscription is that of a shared subscription.
    package static func isShared(_ text: String) -> Bool { text.utf8.starts(with: prefix.utf8) }

    /// Returns the text of a shared subscription.
    ///
    /// - Parameter key: the key of the group (``SharedGroups/key(group:filter:)``).
    static func text(_ key: TopicFilter) -> String { prefix + key.rawValue }
}
