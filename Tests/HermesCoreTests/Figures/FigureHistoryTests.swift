// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct FigureHistoryTests {
    private func time(_ seconds: Int64) -> Timestamp { Timestamp(rawValue: 1_800_000_000_000 + seconds * 1000) }

    @Test func `a ring keeps its last rows, and rows that were left out have no values`() {
        var ring = FigureRing(interval: 10, rows: 3, columns: 2)
        ring.set([1, 2], number: 100)
        ring.set([3, 4], number: 102)
        #expect(ring.value(0, number: 100) == 1 && ring.value(1, number: 102) == 4)
        #expect(ring.value(0, number: 101) == nil && ring.value(0, number: 103) == nil)
        ring.set([5, 6], number: 103)
        #expect(ring.value(0, number: 100) == nil && ring.value(0, number: 103) == 5)
        ring.set([7, 8], number: 1_000_000)
        #expect((999_990..<1_000_000).allSatisfy { ring.value(0, number: $0) == nil })
        #expect(ring.value(1, number: 1_000_000) == 8)
    }

    @Test func `when the clock goes back, later rows lose their values, and earlier ones keep theirs`() {
        var ring = FigureRing(interval: 10, rows: 3, columns: 1)
        for number in 98...100 { ring.set([Float(number)], number: Int64(number)) }
        ring.set([1], number: 99)
        #expect(ring.newest == 99 && ring.value(0, number: 99) == 1 && ring.value(0, number: 98) == 98)
        #expect(ring.value(0, number: 97) == nil && ring.value(0, number: 100) == nil)
        ring.set([2], number: 101)
        #expect(ring.value(0, number: 99) == 1 && ring.value(0, number: 100) == nil)
        ring.set([3], number: 10)
        #expect(ring.newest == 10 && ring.value(0, number: 10) == 3 && ring.value(0, number: 9) == nil)
        ring.set([4], number: -1)
        ring.set([1, 2], number: 11)
        #expect(ring.newest == 10)
    }

    @Test func `half an hour is thinned out to its mean and its maximum`() {
        var history = FigureHistory(names: ["a", "b"])
        for step in 0..<180 { history.add([Float(step), step == 7 ? nil : 2], at: time(Int64(step) * 10)) }
        let number = history.means.number(at: time(0))
        #expect(history.means.newest == number)
        #expect(abs((history.means.value(0, number: number) ?? 0) - 89.5) < 0.01)
        #expect(history.maxima.value(0, number: number) == 179)
        #expect(history.means.value(1, number: number) == 2)
        #expect(history.recent.value(1, number: history.recent.number(at: time(70))) == nil)
        history.add([1, nil], at: time(1800))
        #expect(history.means.value(0, number: number + 1) == 1 && history.means.value(1, number: number + 1) == nil)
    }

    @Test func `a clock that is days ahead for a moment costs a month no values`() {
        var history = FigureHistory(names: ["a"])
        let ahead: Int64 = 20 * 86_400
        history.add([1], at: time(0))
        history.add([2], at: time(ahead))
        history.add([3], at: time(1800))
        let number = history.means.number(at: time(0))
        for ring in [history.means, history.maxima] {
            #expect(ring.newest == number + 1 && ring.value(0, number: ring.number(at: time(ahead))) == nil)
            #expect(ring.value(0, number: number) == 1 && ring.value(0, number: number + 1) == 3)
        }
        let newest = history.recent.number(at: time(1800))
        #expect(history.recent.newest == newest && history.recent.value(0, number: newest) == 3)
    }

    @Test func `the half hour to which the clock goes back keeps its values`() {
        var history = FigureHistory(names: ["a"])
        for step in 0..<90 { history.add([10], at: time(Int64(step) * 10)) }
        history.add([1000], at: time(86_400))
        for step in 90..<180 { history.add([20], at: time(Int64(step) * 10)) }
        let number = history.means.number(at: time(0))
        let mean = history.means.value(0, number: number) ?? 0
        #expect(mean > 12 && mean < 18 && history.maxima.value(0, number: number) == 20)
    }

    @Test func `it is the same after it was written and read, also with other figures`() throws {
        var history = FigureHistory(names: ["a", "b"])
        for step in 0..<500 { history.add([Float(step), nil], at: time(Int64(step) * 10)) }
        var read = try #require(FigureHistory(bytes: history.bytes))
        #expect(read.bytes == history.bytes && read.names == history.names)
        for step in 500..<600 {
            history.add([1, 2], at: time(Int64(step) * 10))
            read.add([1, 2], at: time(Int64(step) * 10))
        }
        #expect(read.bytes == history.bytes)
        let other = read.renamed(["c", "a"])
        let newest = try #require(read.recent.newest)
        for number in newest - 400...newest {
            #expect(other.recent.value(1, number: number) == read.recent.value(0, number: number))
            #expect(other.recent.value(0, number: number) == nil)
        }
        #expect(
            other.means.value(1, number: read.means.newest ?? 0) == read.means.value(0, number: read.means.newest ?? 0)
        )
    }

    @Test func `damaged bytes are refused, and never crash`() {
        var history = FigureHistory(names: ["a", "b"])
        history.add([1, 2], at: time(0))
        let bytes = history.bytes
        for length in [0, 1, 4, 5, 6, 8, 100, bytes.count - 1] {
            #expect(FigureHistory(bytes: Array(bytes.prefix(length))) == nil)
        }
        #expect(FigureHistory(bytes: bytes + [0]) == nil)
        for index in 0..<64 {
            var damaged = bytes
            damaged[index] ^= 0xFF
            guard var read = FigureHistory(bytes: damaged) else { continue }
            read.add([1, 2], at: time(60))
            _ = read.bytes
        }
        #expect(FigureHistory(names: (0..<1000).map(String.init)).bytes.count <= FigureHistory.maxBytes)
    }
}
