// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import Hermes

@Suite(.inTurns) struct RecordLogTests {
    static let changes: [[LocalChange]] = [
        [LocalChange(key: "a", value: [1, 2, 3])],
        [LocalChange(key: "b", value: []), LocalChange(key: "c", value: [9])],
        [LocalChange(key: "a", value: nil)],
        [LocalChange(key: "b", value: [7])],
    ]

    private static let salt: UInt64 = 0x0123_4567_89AB_CDEF
    private static let header = RecordLog.header(salt)

    /// Makes a file with a salt; nil makes a file of version 1.
    static func file(_ changes: [[LocalChange]], salt: UInt64? = Self.salt) -> [UInt8] {
        changes.reduce(RecordLog.header(salt)) { $0 + (RecordLog.frame($1, salt: salt) ?? []) }
    }

    private static func records(_ bytes: [UInt8]) -> [String: [UInt8]]? {
        RecordLog.read(bytes).map { Dictionary(uniqueKeysWithValues: $0.table.records.map { ($0.key, $0.value) }) }
    }

    @Test func `the checksum is CRC-32C`() {
        // The test values of RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and of increasing numbers.
        #expect(RecordLog.checksum([UInt8](repeating: 0, count: 32)[...]) == 0x8A91_36AA)
        #expect(RecordLog.checksum([UInt8](repeating: 0xFF, count: 32)[...]) == 0x62A8_AB43)
        #expect(RecordLog.checksum([UInt8](0..<32)[...]) == 0x46DD_794E)
    }

    @Test func `what was written is read, in the order of the keys' first writes`() {
        let contents = RecordLog.read(Self.file(Self.changes))
        #expect(contents?.table.records == [LocalRecord(key: "b", value: [7]), LocalRecord(key: "c", value: [9])])
        #expect(contents?.salt == Self.salt)
        #expect(contents?.end == Self.file(Self.changes).count)
        #expect(contents?.damagedFrames == 0)
    }

    @Test func `a file that is torn anywhere holds the whole frames before the tear`() {
        let whole = Self.file(Self.changes)
        let ends = (0...Self.changes.count).map { Self.file(Array(Self.changes.prefix($0))).count }
        for length in 0..<whole.count {
            let contents = RecordLog.read(Array(whole.prefix(length)))
            let frames = ends.lastIndex { $0 <= length }
            #expect(contents?.end == (frames.map { ends[$0] } ?? 0), "\(length)")
            #expect(
                Self.records(Array(whole.prefix(length)))
                    == Self.records(Self.file(Array(Self.changes.prefix(frames ?? 0))))
            )
        }
    }

    @Test func `a damaged byte costs its own frame, or what is behind it, and never more`() {
        let whole = Self.file(Self.changes)
        let possible = (0..<Self.changes.count).flatMap { lost in
            var without = Self.changes
            without.remove(at: lost)
            return [Self.records(Self.file(without)), Self.records(Self.file(Array(Self.changes.prefix(lost))))]
        }
        for index in Self.header.count..<whole.count {
            for bit in 0..<8 {
                var damaged = whole
                damaged[index] ^= 1 << UInt8(bit)
                #expect(possible.contains(Self.records(damaged)), "byte \(index), bit \(bit)")
            }
        }
    }

    @Test func `whatever frames are damaged, all others are read, and the damage is counted`() {
        let changes = (0..<12).map { number in
            [LocalChange(key: "k\(number)", value: [UInt8](repeating: UInt8(number), count: 5 + number))]
        }
        let ends = (0...changes.count).map { Self.file(Array(changes.prefix($0))).count }
        for first in 0..<changes.count - 1 {
            for second in first..<changes.count - 1 {
                for place in [0, 1, 5, 9, 12] {
                    var damaged = Self.file(changes)
                    damaged[ends[first] + place] ^= 0x15
                    if second != first { damaged[ends[second] + place] ^= 0x2A }
                    let kept = changes.indices.filter { $0 != first && $0 != second }.map { changes[$0][0].key }
                    let contents = RecordLog.read(damaged)
                    #expect(contents?.table.records.map(\.key) == kept, "\(first), \(second), byte \(place)")
                    #expect(contents?.end == damaged.count)
                    #expect((contents?.damagedFrames ?? 0) >= 1)
                }
            }
        }
    }

    @Test func `a message whose content is a frame adds no record when its own frame is torn`() {
        let hostile = RecordLog.frame([LocalChange(key: "account", value: [6, 6, 6])], salt: nil) ?? []
        let message = LocalChange(key: "taken/1", value: hostile + [0, 0, 0, 0])
        let changes = [[LocalChange(key: "a", value: [1])], [message]]
        #expect(Self.records(Self.file(changes))?.count == 2)
        #expect(Self.records(Array(Self.file(changes).dropLast(3))) == ["a": [1]])
        // A frame of another file adds no record either.
        let foreign = RecordLog.frame([LocalChange(key: "account", value: [6, 6, 6])], salt: Self.salt ^ 1) ?? []
        #expect(Self.records(Self.file(Array(changes.prefix(1))) + [0] + foreign) == ["a": [1]])
    }

    @Test func `a file of version 1 is read`() {
        let contents = RecordLog.read(Self.file(Self.changes, salt: nil))
        #expect(contents?.table.records == [LocalRecord(key: "b", value: [7]), LocalRecord(key: "c", value: [9])])
        #expect(contents?.salt == nil)
        #expect(contents?.damagedFrames == 0)
    }

    @Test func `a damaged header makes the file no log, so that no frame is taken for damaged`() {
        for index in Self.header.indices {
            for bit in 0..<8 {
                var damaged = Self.file(Self.changes)
                damaged[index] ^= 1 << UInt8(bit)
                #expect(RecordLog.read(damaged) == nil, "byte \(index), bit \(bit)")
            }
        }
    }

    @Test func `a hostile file is read in time`() {
        // Each position has a plausible length, but no matching checksum.
        let piece: [UInt8] = [0, 0, 1, 0, 1, 1, 1, 1]
        let bytes = Self.header + (0..<20_000).flatMap { _ in piece }
        let start = ContinuousClock.now
        #expect(RecordLog.read(bytes)?.table.records.isEmpty == true)
        #expect(ContinuousClock.now - start < .seconds(30))
    }

    @Test func `another file is none`() {
        #expect(RecordLog.read(Array("{\"this\": \"is JSON\"}".utf8)) == nil)
        #expect(RecordLog.read(Array("HERM".utf8))?.end == 0)
        #expect(RecordLog.read([])?.end == 0)
    }

    @Test func `lengths that cannot be believed end the reading`() {
        for length in [UInt32.max, UInt32(RecordLog.maxBodyBytes) + 1, 1000, 0] {
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
            let contents = RecordLog.read(Self.header + bytes + [UInt8](repeating: 0, count: 20))
            #expect(contents?.end == Self.header.count)
        }
    }

    @Test func `what has no frame is refused`() {
        #expect(RecordLog.frame([], salt: Self.salt) == nil)
        #expect(RecordLog.frame([LocalChange(key: "", value: [1])], salt: Self.salt) == nil)
        let longKey = String(repeating: "k", count: 256)
        #expect(RecordLog.frame([LocalChange(key: longKey, value: [1])], salt: Self.salt) == nil)
        let tooMuch = [UInt8](repeating: 0, count: RecordLog.maxBodyBytes)
        #expect(RecordLog.frame([LocalChange(key: "k", value: tooMuch)], salt: Self.salt) == nil)
    }
}
