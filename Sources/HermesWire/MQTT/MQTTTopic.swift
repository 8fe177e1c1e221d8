// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rules for topic names and topic filters (4.7). They are checked byte by byte, in linear time.
package enum MQTTTopic {
    /// Whether a string is a valid topic name: not empty [MQTT-4.7.3-1], without wildcards [MQTT-3.3.2-2].
    package static func isValidName(_ name: String) -> Bool {
        let bytes = name.utf8
        return !bytes.isEmpty && bytes.allSatisfy { $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "#") && $0 != 0 }
    }

    /// Whether a string is a valid topic filter: `#` is the whole last level [MQTT-4.7.1-1], `+` is a whole level
    /// [MQTT-4.7.1-2], and a shared subscription has a group and a filter [MQTT-4.8.2-1] [MQTT-4.8.2-2].
    package static func isValidFilter(_ filter: String) -> Bool {
        guard filter.utf8.starts(with: sharePrefix.utf8) else { return areValidLevels(filter.utf8[...]) }
        guard let (group, rest) = sharedParts(of: filter) else { return false }
        return !group.isEmpty && !rest.isEmpty
            && group.utf8.allSatisfy { $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "#") }
            && areValidLevels(rest.utf8[...])
    }

    /// The prefix of shared subscriptions.
    package static let sharePrefix = "$share/"

    /// Returns the group and the filter of a shared subscription; nil if the filter is not a shared subscription, or
    /// has no slash after the group.
    package static func sharedParts(of filter: String) -> (group: Substring, filter: Substring)? {
        guard filter.utf8.starts(with: sharePrefix.utf8) else { return nil }
        let rest = filter[filter.utf8.index(filter.startIndex, offsetBy: sharePrefix.utf8.count)...]
        guard let slash = rest.utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
        return (rest[..<slash], rest[rest.utf8.index(after: slash)...])
    }

    private static func areValidLevels(_ bytes: Substring.UTF8View) -> Bool {
        guard !bytes.isEmpty else { return false }
        var levelLength = 0
        var wildcard: UInt8?
        for byte in bytes {
            if byte == UInt8(ascii: "/") {
                if wildcard == UInt8(ascii: "#") || (wildcard != nil && levelLength > 1) { return false }
                levelLength = 0
                wildcard = nil
            } else {
                guard byte != 0 else { return false }
                levelLength += 1
                if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "#") {
                    guard levelLength == 1 else { return false }
                    wildcard = byte
                } else if wildcard != nil {
                    return false
                }
            }
        }
        return true
    }
}
