// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A topic filter: a topic name in which `+` matches one level and a final `#` matches any number of levels.
package struct TopicFilter: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: String
    /// Whether the filter has a wildcard. A filter without a wildcard is found by its hash.
    package let hasWildcard: Bool

    /// The default limit on the levels of a filter with wildcards. It bounds the cost of such a filter.
    package static let maxLevels = 128

    /// Creates a filter from a client's text, and checks the text. The text must not begin with `$share/…`, because
    /// this prefix is not a part of the filter.
    ///
    /// - Parameter maxLevels: the limit on the levels of a filter with wildcards; a filter without wildcards may have
    ///   as many levels as a topic.
    /// - Returns: nil if the text is empty, is longer than ``TopicName/maxBytes``, has too many levels, contains
    ///   U+0000, or has a wildcard that does not occupy an entire level [MQTT-4.7.1-1] [MQTT-4.7.1-2].
    package init?(_ rawValue: String, maxLevels: Int = TopicFilter.maxLevels) {
        guard let (filter, _) = Self.withShape(rawValue, maxLevels: maxLevels) else { return nil }
        self = filter
    }

    /// Checks a text as ``init(_:maxLevels:)`` does, and returns the filter and its shape. One pass over the bytes
    /// finds both.
    package static func withShape(
        _ rawValue: String,
        maxLevels: Int = TopicFilter.maxLevels
    ) -> (filter: TopicFilter, shape: TopicShape)? {
        let bytes = rawValue.utf8
        guard !bytes.isEmpty, bytes.count <= TopicName.maxBytes else { return nil }
        var scan = TopicShape.Scan()
        var levelBytes = 0
        var wildcard: UInt8?
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "/"):
                guard wildcard != UInt8(ascii: "#") else { return nil }
                scan.addLevel()
                levelBytes = 0
                wildcard = nil
            case UInt8(ascii: "+"), UInt8(ascii: "#"):
                guard levelBytes == 0 else { return nil }
                levelBytes = 1
                wildcard = byte
                scan.addWildcard(byte)
            default:
                guard byte != 0, wildcard == nil else { return nil }
                levelBytes += 1
            }
        }
        guard !scan.hasWildcard || scan.levels <= maxLevels else { return nil }
        return (TopicFilter(checked: rawValue, hasWildcard: scan.hasWildcard), TopicShape(scan))
    }

    /// Creates a filter from a text that was already checked.
    init(checked rawValue: String, hasWildcard: Bool) {
        self.rawValue = rawValue
        self.hasWildcard = hasWildcard
    }

    /// Creates the filter that matches only this topic.
    package init(_ topic: TopicName) {
        rawValue = topic.rawValue
        hasWildcard = false
    }

    /// Creates the filter for the topics that belong only to the account with this name (``TopicName/belongs(to:)``).
    ///
    /// - Returns: nil if the name contains `/`, `+` or `#`, because then no topic belongs only to this account.
    package init?(ownedBy name: String) {
        guard !name.utf8.contains(where: { "/+#".utf8.contains($0) }) else { return nil }
        self.init("user/\(name)/#")
    }

    package var description: String { rawValue }

    package static func == (left: Self, right: Self) -> Bool { left.rawValue.hasBytes(of: right.rawValue) }

    package func hash(into hasher: inout Hasher) { rawValue.hashBytes(into: &hasher) }

    /// Whether the filter matches a topic according to the standard (4.7). This is the slow reference implementation
    /// for ``TopicTree``.
    package func matches(_ topic: TopicName) -> Bool {
        let filterLevels = rawValue.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let topicLevels = topic.rawValue.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let startsWithWildcard = rawValue.utf8.first == UInt8(ascii: "+") || rawValue.utf8.first == UInt8(ascii: "#")
        if startsWithWildcard && topic.rawValue.utf8.first == UInt8(ascii: "$") { return false }  // [MQTT-4.7.2-1]
        for (index, level) in filterLevels.enumerated() {
            if level.elementsEqual("#".utf8) { return true }
            guard index < topicLevels.count else { return false }
            guard level.elementsEqual("+".utf8) || level.elementsEqual(topicLevels[index]) else { return false }
        }
        return filterLevels.count == topicLevels.count
    }
}
