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
        #expect(table.unwritten(now: Self.start).map(\.request) == ["0", "2"])
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
        #expect(table.unwritten(now: Self.start).map(\.id) == [ids[0]])
        table.markWritten(ids[0], bytes: 20)
        #expect(table.unwritten(now: Self.start).isEmpty)
        _ = table.remove(ids[0])
        #expect(table.unwritten(now: Self.start).map(\.id) == [ids[1]])
        table.markWritten(ids[1], bytes: 10)
        #expect(table.blame(isTooLong: false)?.entry.waiter == 1)
        #expect(table.unwritten(now: Self.start).map(\.id) == [ids[2], later])
    }

    @Test func `a request that must not be sent twice fails at the first breach if it was alone in flight`() {
        var table = Table()
        let once = table.insert("once", replay: .never, deadline: Self.start, waiter: 1)
        table.markWritten(once, bytes: 10)
        let other = table.insert("other", replay: .always, deadline: Self.start, waiter: 2)
        table.markWritten(other, bytes: 10)
        #expect(table.blame(isTooLong: false) == nil)
        #expect(table.connectionLost().map(\.waiter) == [1])
        _ = table.remove(other)
        #expect(table.unwritten(now: Self.start).isEmpty)
        let alone = table.insert("alone", replay: .never, deadline: Self.start, waiter: 3)
        table.markWritten(alone, bytes: 10)
        #expect(table.blame(isTooLong: false)?.entry.waiter == 3)
        #expect(!table.isSearching)
        let again = table.insert("again", replay: .always, deadline: Self.start, waiter: 4)
        table.markWritten(again, bytes: 10)
        #expect(table.blame(isTooLong: false) == nil)
        #expect(table.isSearching)
    }

    /// Begins a search for the bad request among some requests, on a new connection.
    ///
    /// - Returns: the ids of the requests.
    private func search(in table: inout Table, count: Int, deadline: NIODeadline = Self.start) -> [UInt64] {
        let ids = (0..<count).map { table.insert("\($0)", replay: .always, deadline: deadline, waiter: $0) }
        for id in ids { table.markWritten(id, bytes: 10) }
        let isSilent = table.blame(isTooLong: false) == nil
        #expect(isSilent)
        _ = table.connectionLost()
        return ids
    }

    @Test(arguments: [true, false])
    func `at a breach, no request fails for one that was given up in flight`(isLate: Bool) {
        var table = Table()
        var ids = search(in: &table, count: 2, deadline: Self.start + .seconds(5))
        let later = table.insert("2", replay: .always, deadline: Self.start + .seconds(9), waiter: 2)
        table.markWritten(ids[0], bytes: 10)
        if isLate {
            _ = table.remove(ids[1])
            ids[1] = table.insert("1", replay: .always, deadline: Self.start + .seconds(9), waiter: 1)
            #expect(table.expired(now: Self.start + .seconds(5)).map(\.id) == [ids[0]])
        } else {
            #expect(table.abandon(ids[0])?.waiter == 0)
        }
        table.markWritten(ids[1], bytes: 10)
        #expect(table.blame(isTooLong: false) == nil)
        #expect(table.blame(isTooLong: true) == nil)
        #expect(table.longestBytes == 10)
        _ = table.connectionLost()
        // The abandoned request is not sent on the next connection.
        #expect(table.unwritten(now: Self.start).map(\.id) == (isLate ? [later, ids[1]] : [ids[1]]))
        table.markWritten(ids[1], bytes: 10)
        #expect(table.blame(isTooLong: true)?.id == ids[1])
    }

    @Test func `what was given up before it was written is no suspect`() {
        var table = Table()
        let ids = search(in: &table, count: 3)
        _ = table.abandon(ids[0])
        table.markWritten(ids[1], bytes: 10)
        #expect(table.blame(isTooLong: false)?.id == ids[1])
    }

    @Test func `a suspect without an answer delays the next one by 10 s, and the last one written is tried first`() {
        var table = Table()
        let ids = search(in: &table, count: 3)
        #expect(table.unwritten(now: Self.start).map(\.id) == [ids[0]])
        table.markWritten(ids[0], bytes: 10)
        #expect(table.nextTry == Self.start + .seconds(10))
        #expect(table.unwritten(now: Self.start + .seconds(9)).isEmpty)
        #expect(table.unwritten(now: Self.start + .seconds(10)).map(\.id) == [ids[1]])
        table.markWritten(ids[1], bytes: 10)
        #expect(table.blame(isTooLong: false) == nil)
        _ = table.connectionLost()
        #expect(table.nextTry == nil)
        #expect(table.unwritten(now: Self.start + .seconds(20)).map(\.id) == [ids[1]])
        table.markWritten(ids[1], bytes: 10)
        #expect(table.blame(isTooLong: false)?.id == ids[1])
        #expect(!table.isSearching)
    }

    @Test func `the search ends 10 s after the last suspect was written`() {
        var table = Table()
        let ids = search(in: &table, count: 1)
        let later = table.insert("1", replay: .always, deadline: Self.start, waiter: 1)
        #expect(table.unwritten(now: Self.start).map(\.id) == ids)
        table.markWritten(ids[0], bytes: 10)
        #expect(table.unwritten(now: Self.start + .seconds(9)).isEmpty)
        #expect(table.unwritten(now: Self.start + .seconds(10)).map(\.id) == [later])
        #expect(!table.isSearching)
        #expect(table.nextTry == nil)
    }

    @Test func `an urgent request does not wait during a search`() {
        var table = Table()
        let ids = search(in: &table, count: 2)
        #expect(table.unwritten(now: Self.start).map(\.id) == [ids[0]])
        table.markWritten(ids[0], bytes: 10)
        let urgent = table.insert("2", replay: .never, deadline: Self.start, waiter: 2, isUrgent: true)
        #expect(table.unwritten(now: Self.start).map(\.id) == [urgent])
        table.markWritten(urgent, bytes: 10)
        #expect(table.unwritten(now: Self.start).isEmpty)
        #expect(table.blame(isTooLong: false) == nil)
    }

    @Test func `the search ends when all suspects are gone`() {
        var table = Table()
        let ids = (0..<4).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        table.markWritten(ids[0], bytes: 10)
        #expect(table.blame(isTooLong: false) == nil)
        _ = table.connectionLost()
        #expect(table.unwritten(now: Self.start).map(\.id) == [ids[0]])
        // At a breach without a request in flight, nothing fails.
        #expect(table.blame(isTooLong: false) == nil)
        #expect(table.isSearching)
        _ = table.remove(ids[0])
        #expect(table.unwritten(now: Self.start).map(\.id) == Array(ids[1...]))
        #expect(!table.isSearching)
    }

    @Test func `a breach without a request in flight begins no search`() {
        var table = Table()
        let ids = (0..<2).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        #expect(table.blame(isTooLong: false) == nil)
        #expect(!table.isSearching)
        #expect(table.unwritten(now: Self.start).map(\.id) == ids)
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
        #expect(table.unwritten(now: Self.start).map(\.request) == ["again", "unsent"])
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
