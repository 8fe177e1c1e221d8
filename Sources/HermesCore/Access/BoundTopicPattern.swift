// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The topic pattern of a rule for one client. The placeholders in the pattern are replaced.
///
/// In doubtful cases, access is denied. An allowing pattern compares bytes, and its leading wildcard does not match
/// reserved topics. A denying pattern also matches text that is canonically equivalent in Unicode, and its leading
/// wildcard also matches reserved topics.
struct BoundTopicPattern: Sendable, Hashable {
    enum Level: Sendable, Hashable {
        case text(String)
        /// The wildcard `+`, which matches exactly one level.
        case anyOne
        /// The wildcard `#`, which is always the last level.
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

    /// Splits a text at its slashes. Compares bytes, like the matching of topics, because `String` does not find a
    /// slash that is followed by a combining mark.
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

    /// The reserved first levels of topics. An allowing pattern matches such a level only if the pattern contains the
    /// level literally. First levels that begin with a dollar sign are also reserved.
    private static let reserved = ["hermes", "user", "impb", "qsiop"]

    private static func isReserved(_ firstLevel: String) -> Bool {
        firstLevel.utf8.first == UInt8(ascii: "$") || reserved.contains(firstLevel)
    }

    /// Whether the pattern begins with a wildcard that does not match the reserved topics.
    private var keepsOutOfReserved: Bool { !isDenial && (levels.first?.isWildcard ?? true) }

    /// Whether the pattern matches a topic name. Reads as little of a long topic as possible, because this method is
    /// called for each delivery.
    func matches(_ topic: String) -> Bool {
        var topic = topic
        return topic.withUTF8 { matches($0) }
    }

    private func matches(_ topic: UnsafeBufferPointer<UInt8>) -> Bool {
        var start = 0
        var isAtEnd = false
        for (index, level) in levels.enumerated() {
            if index > 0, case .rest = level { return true }
            guard !isAtEnd else { return false }
            if index == 0, keepsOutOfReserved, Self.isReserved(firstLevelOf: topic) { return false }
            let end: Int
            switch level {
            case .rest: return true
            case .anyOne: end = Self.endOfLevel(topic, from: start)
            case .text(let text):
                if let same = Self.end(of: text, in: topic, from: start) {
                    end = same
                } else {
                    guard isDenial else { return false }
                    end = Self.endOfLevel(topic, from: start)
                    guard Self.isEquivalent(text, topic[start..<end]) else { return false }
                }
            }
            isAtEnd = end == topic.count
            if !isAtEnd { start = end + 1 }
        }
        return isAtEnd
    }

    private static func isReserved(firstLevelOf topic: UnsafeBufferPointer<UInt8>) -> Bool {
        if topic.first == UInt8(ascii: "$") { return true }
        return reserved.contains { end(of: $0, in: topic, from: 0) != nil }
    }

    /// Returns the end of the level that begins at `start`, if that level is `text`; otherwise nil.
    private static func end(of text: String, in topic: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
        let end = start + text.utf8.count
        guard end <= topic.count, end == topic.count || topic[end] == UInt8(ascii: "/"),
            text.utf8.elementsEqual(topic[start..<end])
        else { return nil }
        return end
    }

    private static func endOfLevel(_ topic: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
        guard start < topic.count, let base = topic.baseAddress,
            let slash = memchr(base + start, Int32(UInt8(ascii: "/")), topic.count - start)
        else { return topic.count }
        return UnsafeRawPointer(slash) - UnsafeRawPointer(base)
    }

    /// Whether a level is canonically equivalent to this text. An equivalent text has at most three times as many
    /// bytes.
    private static func isEquivalent(_ text: String, _ level: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        guard level.count / 4 <= text.utf8.count, text.utf8.count / 4 <= level.count,
            !level.allSatisfy({ $0 < 0x80 })
        else { return false }
        return text == String(decoding: level, as: UTF8.self)
    }

    /// Whether the pattern matches every topic that a filter matches.
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

    /// Whether there is a topic that both the pattern and a filter match.
    func overlaps(_ filter: [Level]) -> Bool {
        guard let first = filter.first, let mine = levels.first else { return false }
        switch (mine, first) {
        case (.text(let text), .anyOne), (.text(let text), .rest):
            // A leading wildcard of a filter matches no topic that begins with `$` [MQTT-4.7.2-1].
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
