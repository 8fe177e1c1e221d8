// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import Hermes

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct MailboxTests {
    @Test func `what finds no room is dropped, by number and by bytes`() async {
        let mailbox = Mailbox<Int>(maxElements: 2, maxBytes: 10)
        #expect(mailbox.offer(1, bytes: 6))
        #expect(!mailbox.offer(2, bytes: 5))
        #expect(mailbox.offer(3, bytes: 4))
        #expect(!mailbox.offer(4, bytes: 0))
        #expect(await mailbox.next() == 1)
        // The space of the taken element is free again.
        #expect(mailbox.offer(5, bytes: 6))
        mailbox.finish()
        #expect(!mailbox.offer(6))
        #expect(await mailbox.next() == 3)
        #expect(await mailbox.next() == 5)
        #expect(await mailbox.next() == nil)
    }

    @Test func `a cancelled loop ends, whenever it is cancelled, and takes nothing`() async {
        let mailbox = Mailbox<Int>(maxElements: 10, maxBytes: 10)
        for _ in 0..<200 {
            await withTaskGroup(of: Int?.self) { group in
                group.addTask { await mailbox.next() }
                group.cancelAll()
                #expect(await group.next() == .some(nil))
            }
        }
        #expect(mailbox.offer(1))
        #expect(await mailbox.next() == 1)
    }

    @Test func `each subscription gets what it wants, until it is gone or all end`() async {
        let broadcast = Broadcast<Int>(maxElements: 3, maxBytes: 100)
        let all = broadcast.subscribe().makeAsyncIterator()
        var even: ClientEvents<Int>? = broadcast.subscribe { $0.isMultiple(of: 2) }
        for number in 1...5 { broadcast.send(number, bytes: 1) }
        let evenIterator = even?.makeAsyncIterator()
        #expect(await evenIterator?.next() == 2)
        even = nil
        // Only the slow subscription loses the newest elements.
        #expect(await evenIterator?.next() == 4)
        broadcast.close()
        var seen: [Int] = []
        while let number = await all.next() { seen.append(number) }
        #expect(seen == [1, 2, 3])
        #expect(await evenIterator?.next() == nil)
        // A new subscription ends at once, because the client has ended.
        #expect(await broadcast.subscribe().makeAsyncIterator().next() == nil)
        broadcast.open()
        let later = broadcast.subscribe().makeAsyncIterator()
        broadcast.send(6, bytes: 1)
        #expect(await later.next() == 6)
    }

    @Test func `a subscription that nobody holds is gone`() {
        let broadcast = Broadcast<Int>()
        let asked = Mutex<[Int]>([])
        var events: ClientEvents<Int>? = broadcast.subscribe { element in
            asked.withLock { $0.append(element) }
            return true
        }
        broadcast.send(1, bytes: 1)
        withExtendedLifetime(events) {}
        events = nil
        broadcast.send(2, bytes: 1)
        #expect(asked.withLock { $0 } == [1])
    }
}
