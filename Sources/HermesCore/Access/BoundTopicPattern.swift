// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A rule's pattern for one client: levels without placeholders.
///
/// When in doubt it denies. An allowing pattern compares bytes, and a leading wildcard does not match the reserved
/// topics. A denying pattern also matches canonically equivalent text, and its wildcards match everything.
struct BoundTopicPattern: Sendable, Hashable {
    enum Level: Sendable, Hashable {
        case text(String)
        /// `+`
        case anyOne
        /// `#`, always the last.
        case rest

        var isWildcard: Bool {
            switch self {
            case .anyOne, .rest: true
            case .text: false
            }
        }
    }

    let levels: [Level]
    let isDenial: Bool

    /// Splits by bytes, as for topics: to `String`, a slash followed by a combining mark is not a slash.
    static func split(_ text: String) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { Substring($0) }
    }

    static func levels(of filter: TopicFilter) -> [Level] {
        split(filter.rawValue).map { text in
            switch text {
            case "+": .anyOne
            case "#": .rest
            default: .text(String(text))
            }
        }
    }

    /// Whether an allowing pattern must spell out this first level to match.
    static func isReserved(_ firstLevel: some StringProtocol) -> Bool {
        firstLevel.utf8.first == UInt8(ascii: "$") || firstLevel == "hermes" || firstLevel == "user"
            || firstLevel == "impb" || firstLevel == "qsiop"
    }

    /// Whether it begins with a wildcard that does not match the reserved topics.
    private var keepsOutOfReserved: Bool { !isDenial && (levels.first?.isWildcard ?? true) }

    /// Whether it matches a topic name.
    func matches(_ topic: String) -> Bool {
        let bytes = topic.utf8
        var start = bytes.startIndex
        var isAtEnd = false
        for (index, level) in levels.enumerated() {
            if index > 0, case .rest = level { return true }
            guard !isAtEnd else { return false }
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.endIndex
            if index == 0, keepsOutOfReserved, Self.isReserved(topic[start..<end]) { return false }
            switch level {
            case .rest: return true
            case .anyOne: break
            case .text(let text): guard isSame(text, topic[start..<end]) else { return false }
            }
            isAtEnd = end == bytes.endIndex
            if !isAtEnd { start = bytes.index(after: end) }
        }
        return isAtEnd
    }

    /// Whether it matches every topic that a filter matches.
    func covers(_ filter: [Level]) -> Bool {
        guard let first = filter.first else { return false }
        if keepsOutOfReserved {
            guard case .text(let text) = first, !Self.isReserved(text) else { return false }
        }
        var index = 0
        while true {
            if index < levels.count, case .rest = levels[index] { return true }
            guard index < levels.count, index < filter.count else {
                return index == levels.count && index == filter.count
            }
            switch (levels[index], filter[index]) {
            case (.rest, _), (.anyOne, .anyOne), (.anyOne, .text): break
            case (.text(let mine), .text(let theirs)): guard isSame(mine, theirs[...]) else { return false }
            case (.anyOne, .rest), (.text, .anyOne), (.text, .rest): return false
            }
            index += 1
        }
    }

    /// Whether a topic exists that both it and a filter match.
    func overlaps(_ filter: [Level]) -> Bool {
        guard let first = filter.first, let mine = levels.first else { return false }
        switch (mine, first) {
        case (.text(let text), .anyOne), (.text(let text), .rest):
            // [MQTT-4.7.2-1]
            if text.utf8.first == UInt8(ascii: "$") { return false }
        case (_, .text(let text)): if keepsOutOfReserved, Self.isReserved(text) { return false }
        case (.anyOne, _), (.rest, _): break
        }
        var index = 0
        while true {
            if index < levels.count, case .rest = levels[index] { return true }
            if index < filter.count, case .rest = filter[index] { return true }
            guard index < levels.count, index < filter.count else {
                return index == levels.count && index == filter.count
            }
            if case .text(let mine) = levels[index], case .text(let theirs) = filter[index] {
                guard isSame(mine, theirs[...]) else { return false }
            }
            index += 1
        }
    }

    private func isSame(_ mine: String, _ theirs: Substring) -> Bool {
        if mine.utf8.elementsEqual(theirs.utf8) { return true }
        return isDenial && !theirs.utf8.allSatisfy { $0 < 0x80 } && mine[...] == theirs
    }
}
