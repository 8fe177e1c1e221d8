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

    @Test func `the longest is blamed when the server ends the connection, and given up the second time`() {
        var table = Table()
        let ids = (0..<3).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        func writeAll() { for (id, bytes) in zip(ids, [10, 20, 20]) { table.markWritten(id, bytes: bytes) } }
        #expect(table.blameLongest(isSure: true) == nil)
        writeAll()
        #expect(table.blameLongest(isSure: false) == nil)
        _ = table.connectionLost()
        writeAll()
        #expect(table.blameLongest(isSure: false)?.entry.waiter == 1)
        #expect(table.blameLongest(isSure: true)?.entry.waiter == 2)
        #expect(table.count == 1)
    }

    @Test func `what the link sends by itself has no bytes here and is not blamed`() {
        var table = Table()
        let ids = (0..<2).map { table.insert("\($0)", replay: .always, deadline: Self.start, waiter: $0) }
        for id in ids { table.markWritten(id, bytes: 0) }
        #expect(table.longestBytes == 0)
        #expect(table.blameLongest(isSure: true) == nil)
        table.markWritten(ids[1], bytes: 20)
        #expect(table.longestBytes == 20)
        #expect(table.blameLongest(isSure: true)?.id == ids[1])
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
