// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The texts of filter levels, each stored once, with a number and a use count.
struct LevelTexts: Sendable {
    private struct Level {
        var text: String
        var hash: UInt32
        var useCount: UInt32
    }

    private var levels: [Level] = []
    private var free: [UInt32] = []
    private var index = HashIndex()

    /// The number of records in use.
    var count: Int { levels.count - free.count + index.count }

    var isEmpty: Bool { index.count == 0 }

    /// Returns the number of a text; nil if it is not stored.
    @inline(__always)
    func number(of text: UnsafeBufferPointer<UInt8>) -> UInt32? { number(of: text, hash: HashIndex.hash(text)) }

    private func number(of text: UnsafeBufferPointer<UInt8>, hash: UInt32) -> UInt32? {
        levels.withUnsafeBufferPointer { levels in
            index.find(hash) { levels[Int($0)].text.hasBytes(text) }
        }
    }

    /// Returns the number of a text, and increases its use count. Stores the text if it is new.
    mutating func use(_ text: UnsafeBufferPointer<UInt8>) -> UInt32 {
        let hash = HashIndex.hash(text)
        if let number = number(of: text, hash: hash) {
            levels[Int(number)].useCount += 1
            return number
        }
        let level = Level(text: String(decoding: text, as: UTF8.self), hash: hash, useCount: 1)
        let number = free.popLast() ?? UInt32(levels.count)
        if Int(number) == levels.count {
            levels.append(level)
        } else {
            levels[Int(number)] = level
        }
        index.insert(number, hash: hash)
        return number
    }

    /// Decreases the use count of a text. The text is removed when the count is 0.
    mutating func release(_ number: UInt32) {
        levels[Int(number)].useCount -= 1
        guard levels[Int(number)].useCount == 0 else { return }
        index.remove(number, hash: levels[Int(number)].hash)
        levels[Int(number)].text = ""
        free.append(number)
    }
}

/// Iterates over the levels of a topic or filter.
struct LevelReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private var position = 0
    /// Whether the last level was read.
    private(set) var isAtEnd = false

    init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// Returns the next level, which may be empty; nil after the last level.
    @inline(__always)
    mutating func next() -> UnsafeBufferPointer<UInt8>? {
        guard !isAtEnd else { return nil }
        let start = position
        while position < bytes.count && bytes[position] != UInt8(ascii: "/") { position &+= 1 }
        let level = UnsafeBufferPointer(rebasing: bytes[start..<position])
        if position == bytes.count {
            isAtEnd = true
        } else {
            position &+= 1
        }
        return level
    }
}
