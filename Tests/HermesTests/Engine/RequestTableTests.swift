// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import Hermes

@Suite struct RequestTableTests {
    typealias Table = ConnectionEngine.RequestTable<String, Int>
    static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    @Test func `ids grow from 16 and order what is written`() {
        var table = Table()
        let ids = (0..<3).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        #expect(ids == [16, 17, 18])
        table.markWritten(17)
        #expect(table.unwritten().map(\.request) == ["0", "2"])
    }

    @Test func `the longest fails if a frame was too long`() {
        var table = Table()
        let ids = (0..<3).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        #expect(table.blame(isTooLong: true) == nil)
        for (id, bytes) in zip(ids, [10, 20, 20]) { table.markWritten(id, bytes: bytes) }
        #expect(table.blame(isTooLong: true)?.entry.waiter == 1)
        #expect(table.blame(isTooLong: true)?.entry.waiter == 2)
        #expect(table.count == 1)
        #expect(!table.isSearching)
    }

    @Test func `after another breach, requests go one at a time, and the one in flight at the next breach fails`() {
        var table = Table()
        let ids = (0..<3).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        for (id, bytes) in zip(ids, [20, 10, 30]) { table.markWritten(id, bytes: bytes) }
        #expect(table.blame(isTooLong: false) == nil)
        _ = table.connectionLost()
        let later = table.insert("3", replay: .always, deadline: Self.start, waiter: 3)
        #expect(table.unwritten().map(\.id) == [ids[0]])
        table.markWritten(ids[0], bytes: 20)
        #expect(table.unwritten().isEmpty)
        _ = table.remove(ids[0])
        #expect(table.unwritten().map(\.id) == [ids[1]])
        table.markWritten(ids[1], bytes: 10)
        #expect(table.blame(isTooLong: false)?.entry.waiter == 1)
        #expect(table.unwritten().map(\.id) == [ids[2], later])
    }

    @Test func `the search ends when all suspects are gone`() {
        var table = Table()
        let ids = (0..<4).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        table.markWritten(ids[0], bytes: 10)
        #expect(table.blame(isTooLong: false) == nil)
        _ = table.connectionLost()
        #expect(table.unwritten().map(\.id) == [ids[0]])
        // At a breach without a request in flight, nothing fails.
        #expect(table.blame(isTooLong: false) == nil)
        #expect(table.isSearching)
        _ = table.remove(ids[0])
        #expect(table.unwritten().map(\.id) == Array(ids[1...]))
        #expect(!table.isSearching)
    }

    @Test func `a breach without a request in flight begins no search`() {
        var table = Table()
        let ids = (0..<2).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        #expect(table.blame(isTooLong: false) == nil)
        #expect(!table.isSearching)
        #expect(table.unwritten().map(\.id) == ids)
    }

    @Test func `what the link sends by itself has no bytes here and is not blamed`() {
        var table = Table()
        let ids = (0..<2).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        for id in ids { table.markWritten(id, bytes: 0) }
        #expect(table.longestBytes == 0)
        #expect(table.blame(isTooLong: true) == nil)
        #expect(table.blame(isTooLong: false) == nil)
        #expect(!table.isSearching)
        table.markWritten(ids[1], bytes: 20)
        #expect(table.longestBytes == 20)
        #expect(table.blame(isTooLong: true)?.id == ids[1])
        #expect(table.count == 1)
    }

    @Test func `a lost connection fails what may not be sent twice, and keeps the rest`() {
        var table = Table()
        let once = table.insert("once", replay: .never, deadline: Self.start, waiter: 1)
        let again = table.insert("again", replay: .always, deadline: Self.start, waiter: 2)
        _ = table.insert("unsent", replay: .never, deadline: Self.start, waiter: 3)
        table.markWritten(once)
        table.markWritten(again)
        #expect(table.connectionLost().map(\.waiter) == [1])
        #expect(table.unwritten().map(\.request) == ["again", "unsent"])
    }

    @Test func `what is late is taken out, the rest keeps its deadline`() {
        var table = Table()
        _ = table.insert("a", replay: .always, deadline: Self.start + .seconds(1), waiter: 1)
        _ = table.insert("b", replay: .always, deadline: Self.start + .seconds(3), waiter: 2)
        #expect(table.nextDeadline == Self.start + .seconds(1))
        #expect(table.expired(now: Self.start).isEmpty)
        #expect(table.expired(now: Self.start + .seconds(2)).map(\.entry.waiter) == [1])
        #expect(table.nextDeadline == Self.start + .seconds(3))
        #expect(table.removeAll().map(\.waiter) == [2])
        #expect(table.nextDeadline == nil)
    }
}
