// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct SharedGroupTests {
    /// A member that keeps publications with QoS 1 or 2 until it acknowledges them.
    private final class Member: SharedMember {
        let load = SharedLoad()
        var received: [String] = []
        var unacknowledged: [Publication] = []
        var options: [SubscriptionOptions] = []
        var onDelivery: (() -> Void)?

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
            received.append(String(buffer: delivery.publication.payload))
            options.append(subscription.options)
            if min(delivery.publication.qos, subscription.qos) > .atMostOnce {
                unacknowledged.append(delivery.publication)
                load.add()
            }
            onDelivery?()
        }

        func acknowledge() {
            load.subtract(unacknowledged.count)
            unacknowledged = []
        }
    }

    private let topic: TopicName
    private let filter: TopicFilter

    init() throws {
        topic = try #require(TopicName("jobs/1"))
        filter = try #require(TopicFilter("jobs/+"))
    }

    private func publication(_ number: Int, qos: QoS) -> Publication {
        Publication(topic: topic, payload: ByteBuffer(string: "\(number)"), kind: .plain, qos: qos)
    }

    private func join(
        _ loops: ManualLoops,
        _ index: Int,
        group: String = "workers",
        qos: QoS = .atLeastOnce,
        isDurable: Bool = false
    ) -> (Member, SharedSubscription) {
        let member = Member()
        let shard = loops.shard(index)
        let options = SubscriptionOptions(qos: qos, isLiveAtMostOnceOnly: isDurable)
        let held = loops[index].run { shard.subscribe(member, sharing: group, to: filter, options: options) }
        return (member, held)
    }

    @Test func `who does not take what it is sent gets only what nobody else can take`() {
        let loops = ManualLoops(2)
        let (slow, _) = join(loops, 0, qos: .atMostOnce)
        let (good, held) = join(loops, 1, qos: .atMostOnce)
        loops.settle()
        let shard = loops.shard(0)
        func publish(_ numbers: Range<Int>) {
            loops[0].run { for number in numbers { _ = shard.publish(publication(number, qos: .atMostOnce)) } }
            loops.settle()
        }
        slow.load.fallBehind()
        publish(0..<20)
        #expect(slow.received.isEmpty && good.received.count == 20)
        slow.load.catchUp()
        publish(20..<40)
        #expect(slow.received.count == 10)
        slow.load.fallBehind()
        let second = loops.shard(1)
        loops[1].run {
            held.leave()
            second.unsubscribe(held, givingBack: [])
        }
        loops.settle()
        publish(40..<45)
        #expect(slow.received.count == 15)
    }

    @Test func `new options do not bring back a member that is leaving`() {
        let loops = ManualLoops(2)
        let (leaving, held) = join(loops, 0)
        let (staying, _) = join(loops, 1)
        loops.settle()
        let shard = loops.shard(0)
        loops[0].run {
            held.leave()
            held.options = SubscriptionOptions(qos: .exactlyOnce)
            for number in 0..<6 { _ = shard.publish(publication(number, qos: .atLeastOnce)) }
        }
        loops.settle()
        #expect(leaving.received.isEmpty && staying.received.count == 6)
        loops[0].run { shard.unsubscribe(held, givingBack: []) }
        loops.settle()
    }

    @Test func `a publication goes to another member if the chosen one leaves during the present delivery`() throws {
        let loops = ManualLoops(2)
        let (_, first) = join(loops, 0)
        let (chosen, second) = join(loops, 0)
        let (last, _) = join(loops, 1)
        loops.settle()
        last.load.add(5)
        let shard = loops.shard(0)
        let trigger = RecordingSubscriber()
        let other = try #require(TopicName("trigger"))
        let held = loops[0].run { shard.subscribe(trigger, to: other) }
        trigger.onDelivery = { _ in
            // The second member would get the publication after this delivery.
            shard.unsubscribe(first, givingBack: [publication(1, qos: .atLeastOnce)])
            shard.unsubscribe(second, givingBack: [])
        }
        loops[0].run { _ = shard.publish(Publication(topic: other, payload: ByteBuffer(), kind: .plain)) }
        loops.settle()
        #expect(chosen.received.isEmpty && last.received == ["1"])
        loops[0].run { shard.unsubscribe(held) }
        loops.settle()
    }

    @Test(arguments: QoS.allCases)
    func `equals take turns, on all loops`(qos: QoS) {
        let loops = ManualLoops(3)
        let members = (0..<6).map { join(loops, $0 % 3).0 }
        loops.settle()
        let shard = loops.shard(2)
        loops[2].run { for number in 0..<60 { _ = shard.publish(publication(number, qos: qos)) } }
        loops.settle()
        #expect(members.map(\.received.count) == Array(repeating: 10, count: 6))
        #expect(members.flatMap(\.received).sorted() == (0..<60).map(String.init).sorted())
    }

    @Test func `who has less to do gets more`() {
        let loops = ManualLoops(2)
        let members = (0..<4).map { join(loops, $0 % 2).0 }
        loops.settle()
        let shard = loops.shard(0)
        for number in 0..<100 {
            loops[0].run { _ = shard.publish(publication(number, qos: .atLeastOnce)) }
            loops.settle()
            // Two members are quick, and two never answer.
            members[0].acknowledge()
            members[3].acknowledge()
        }
        #expect(members[1].received.count <= 1)
        #expect(members[2].received.count <= 1)
        #expect(members[0].received.count + members[3].received.count >= 98)
        #expect(abs(members[0].received.count - members[3].received.count) <= 2)
    }

    @Test(arguments: [64, 65, 100])
    func `the one with the least to do gets the next, of more than 64 when it is among the 64 whose turn it is`(
        _ count: Int
    ) {
        let loops = ManualLoops(1)
        let members = (0..<count).map { _ in join(loops, 0).0 }
        loops.settle()
        for member in members.dropLast() { member.load.add(5) }
        let idle = members[count - 1]
        let shard = loops.shard(0)
        loops[0].run { _ = shard.publish(publication(0, qos: .atLeastOnce)) }
        #expect(idle.received.isEmpty == (count > 64))
        // This is one rotation of the members.
        loops[0].run { for number in 1..<count { _ = shard.publish(publication(number, qos: .atLeastOnce)) } }
        #expect(!idle.received.isEmpty)
        #expect(members.reduce(0) { $0 + $1.received.count } == count)
    }

    @Test(arguments: [0, 1])
    func `what a member leaves behind goes to the others`(leaving: Int) {
        let loops = ManualLoops(2)
        let members = (0..<4).map { join(loops, $0 % 2) }
        loops.settle()
        let shard = loops.shard(0)
        loops[0].run { for number in 0..<40 { _ = shard.publish(publication(number, qos: .exactlyOnce)) } }
        loops.settle()
        let (member, held) = members[leaving]
        let own = loops.shard(leaving % 2)
        loops[leaving % 2].run {
            own.unsubscribe(held, givingBack: member.unacknowledged)
            own.unsubscribe(held, givingBack: member.unacknowledged)
        }
        loops.settle()
        let others = members.indices.filter { $0 != leaving }.map { members[$0].0 }
        #expect(others.flatMap(\.received).sorted() == (0..<40).map(String.init).sorted())
        #expect(others.allSatisfy { (12...15).contains($0.received.count) })
    }

    @Test func `what is on the way to a member that left goes to another`() {
        let loops = ManualLoops(2)
        let (here, _) = join(loops, 0)
        let (there, held) = join(loops, 1)
        loops.settle()
        let shards = (0..<2).map(loops.shard)
        loops[0].run { for number in 0..<10 { _ = shards[0].publish(publication(number, qos: .atMostOnce)) } }
        loops[0].tick()
        loops[1].run { shards[1].unsubscribe(held) }
        loops.settle()
        #expect(there.received == [])
        #expect(here.received.sorted() == (0..<10).map(String.init))
    }

    @Test func `a group lives as long as it has members, wherever they are`() {
        let loops = ManualLoops(2)
        let shards = (0..<2).map(loops.shard)
        let (first, firstHeld) = join(loops, 0)
        let (second, secondHeld) = join(loops, 1)
        loops.settle()
        let groups = shards[0].sharedGroups
        let key = SharedGroups.key(group: "workers", filter: filter)
        #expect(groups.members(of: key)?.seats.count == 2)
        // The shard of the first member stays the home of the group.
        loops[0].run { shards[0].unsubscribe(firstHeld) }
        loops.settle()
        loops[1].run { #expect(shards[1].publish(publication(1, qos: .atMostOnce)).matchedAnywhere) }
        loops.settle()
        #expect(first.received == [])
        #expect(second.received == ["1"])
        loops[1].run { shards[1].unsubscribe(secondHeld) }
        #expect(groups.members(of: key) == nil)
        loops.settle()
        loops[1].run { #expect(!shards[1].publish(publication(2, qos: .atMostOnce)).matchedAnywhere) }
        let (third, _) = join(loops, 1)
        loops[0].run { _ = shards[0].publish(publication(3, qos: .atMostOnce)) }
        loops.settle()
        #expect(third.received == ["3"])
        #expect(second.received == ["1"])
    }

    @Test func `groups and ordinary subscriptions do not take from each other`() {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let (one, _) = join(loops, 0, group: "a", qos: .exactlyOnce)
        let (other, _) = join(loops, 0, group: "b")
        let plain = RecordingSubscriber()
        loops[0].run {
            _ = shard.subscribe(plain, to: topic)
            #expect(shard.publish(publication(1, qos: .exactlyOnce)).localCount == 3)
        }
        #expect(one.received == ["1"])
        #expect(other.received == ["1"])
        #expect(plain.received == ["1"])
        #expect(one.options.map(\.qos) == [.exactlyOnce])
        #expect(other.options.map(\.qos) == [.atLeastOnce])
    }

    @Test func `what a durable member gets through the store, nobody gets besides`() {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let (clean, _) = join(loops, 0)
        let (durable, held) = join(loops, 0, isDurable: true)
        loops[0].run {
            var decided = publication(1, qos: .atLeastOnce)
            let group = DurableGroup(name: "workers", filter: filter, members: [], turn: .init())
            decided.decided = DecidedShares([.group(group)])
            _ = shard.publish(decided)
            for number in 2..<4 { _ = shard.publish(publication(number, qos: .atMostOnce)) }
            #expect(clean.received + durable.received == ["2", "3"])
        }
        // Without a keeper, a kept member does not get the publications that a clean member gives back.
        let (other, otherHeld) = join(loops, 0)
        loops[0].run {
            shard.unsubscribe(otherHeld, givingBack: [publication(4, qos: .atLeastOnce)])
            #expect(other.received == [])
            #expect(clean.received.last == "4")
            shard.unsubscribe(held)
            _ = shard.publish(publication(5, qos: .atLeastOnce))
        }
        #expect(clean.received.last == "5")
    }

    @Test func `a member may leave while it is called`() {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let (one, held) = join(loops, 0)
        let (other, _) = join(loops, 0)
        one.onDelivery = { [unowned one] in shard.unsubscribe(held, givingBack: one.unacknowledged) }
        loops[0].run { for number in 0..<4 { _ = shard.publish(publication(number, qos: .atLeastOnce)) } }
        #expect(one.received.count == 1)
        #expect(other.received.sorted() == ["0", "1", "2", "3"])
    }

    @Test func `members that join and leave on several threads lose nothing while one stays`() async {
        let loops = (0..<3).map(QueueLoop.init)
        let plane = TopicPlane(loops: loops.map(\.handle))
        let done = Collector<Int>()
        let counts = Collector<Int>()
        let total = 2_000
        // The publications are counted on each loop. The sum must be the number of all publications.
        for (index, loop) in loops.enumerated() {
            loop.queue.async { [filter] in
                let member = Member()
                member.onDelivery = { counts.add(index) }
                _ = plane.shard(index).subscribe(member, sharing: "g", to: filter, options: SubscriptionOptions())
                done.add(index)
            }
        }
        _ = await done.next(3)
        for (index, loop) in loops.enumerated() {
            loop.queue.async { [filter, topic] in
                let shard = plane.shard(index)
                var held: TopicSubscription?
                for number in 0..<total {
                    if number % 20 == 0 {
                        if let held { shard.unsubscribe(held) }
                        let passing = Member()
                        passing.onDelivery = { counts.add(index) }
                        held = shard.subscribe(passing, sharing: "g", to: filter, options: SubscriptionOptions())
                    }
                    _ = shard.publish(Publication(topic: topic, payload: ByteBuffer(string: "\(number)"), kind: .plain))
                }
            }
        }
        #expect(await counts.next(3 * total).count == 3 * total)
    }
}
