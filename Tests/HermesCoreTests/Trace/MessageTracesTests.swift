// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct MessageTracesTests {
    private let time = ManualTime()
    private let devices: DeviceRegistry
    private let committer: InboxCommitter
    private let receipts = Collector<Result<SendReceipt, HermesError>>()

    private var traces: MessageTraces { committer.traces }

    init() async throws {
        let store = MemoryStore()
        devices = DeviceRegistry(time: time)
        try await addAccounts(3, to: store)
        committer = InboxCommitter(store: store, devices: devices, time: time)
    }

    private func send(_ clientID: String, _ number: UInt64, to peer: Int32 = 2) async throws -> SendReceipt {
        let sender = try principal(1)
        let draft = MessageDraft(
            conversation: .direct(between: sender.user, and: try user(peer)),
            clientID: clientID,
            content: MessageContent(bytes: [1])
        )
        let message = MessageAppend(
            id: MessageID(high: number, low: 0),
            draft: draft,
            sender: sender,
            sentAt: time.now(),
            expiresAt: time.now().advanced(by: .seconds(60)),
            recipients: [sender.user, try user(peer)]
        )
        committer.submit(.append(message) { [receipts] in receipts.add($0) })
        return try #require(await receipts.next(1).first).get()
    }

    /// - Parameter age: the time since the commit of the entry.
    private func entry(_ seq: UInt64, age: Duration = .zero) throws -> InboxEntry {
        let event = ContactEvent(kind: .requested, user: try user(1), nickName: "ann", message: "")
        return InboxEntry(seq: seq, committedAt: time.now().advanced(by: .zero - age), event: .contact(event))
    }

    /// Records deliveries of entries that were read from the store, as for a device that was away.
    private func delivered(_ seqs: ClosedRange<UInt64>, to principal: Principal, by gateway: String) throws {
        traces.delivered(try seqs.map { try entry($0) }[...], behind: .max, to: principal, by: gateway)
    }

    @Test
    func `the time of a delivery begins with the acceptance, or the commit; what waited for the device has none`()
        async throws
    {
        let receipt = try await send("c1", 1)
        #expect(receipt.conversationSeq == 1)
        let phone = try principal(2)
        #expect(traces.deliveryTimes.count == 0 && traces.deliveryTimes.quantile(0.5) == nil)
        var live = try entry(8)
        live.acceptedAt = time.uptime()
        time.advance(by: .milliseconds(4))
        let slow = try entry(9, age: .milliseconds(60))
        let hole = InboxEntry(seq: 10, committedAt: Timestamp(rawValue: 0), event: .expired(through: 12))
        traces.delivered([try entry(7), live, slow, hole], behind: 7, to: phone, by: "impb")
        let times = traces.deliveryTimes
        #expect(times.count == 2 && times.sum == 64_000)
        let (half, all) = (try #require(times.quantile(0.5)), try #require(times.quantile(1)))
        #expect(half > 3_000 && half <= 5_000 && all > 50_000 && all <= 70_000)
        traces.delivered([live], behind: 7, to: try principal(3), by: "impb")
        #expect(traces.deliveryTimes.since(times).count == 1)
        await committer.shutdown()
    }

    @Test
    func `entries that were just committed know when they were accepted`() async throws {
        let bob = RecordingAttachment(try principal(2))
        _ = devices.attach(bob)
        time.advance(by: .milliseconds(7))
        _ = try await send("c1", 1)
        await committer.shutdown()
        let entry = try #require(bob.calls.first?.first)
        #expect(entry.acceptedAt == time.uptime() && bob.calls.count == 1)
        #expect(entry == InboxEntry(seq: entry.seq, committedAt: entry.committedAt, event: entry.event))
    }

    @Test
    func `the steps of a message are found by its id and by its client id`() async throws {
        let receipt = try await send("c1", 1)
        let bob = try principal(2, "laptop")
        time.advance(by: .milliseconds(3))
        try delivered(1...1, to: bob, by: "delimited")
        time.advance(by: .milliseconds(4))
        traces.acknowledged(bob.user, bob.device, upTo: 1)
        for text in [receipt.messageID.description, receipt.messageID.description.lowercased(), "c1"] {
            let trace = try #require(traces.find(text).first)
            #expect(trace.message.id == receipt.messageID && trace.message.recipients == 2)
            #expect(trace.message.sender == (try user(1)) && trace.message.refusal == nil)
            #expect(trace.steps.map(\.kind) == [.delivered, .acknowledged])
            #expect(trace.steps.map(\.after) == [.milliseconds(3), .milliseconds(7)])
            #expect(trace.steps.allSatisfy { $0.user == bob.user && $0.device == bob.device })
            #expect(trace.steps[0].detail == "delimited")
        }
        #expect(traces.find("c2").isEmpty && traces.find("").isEmpty)
        #expect(traces.find(String(repeating: "c", count: 10_000)).isEmpty)
        await committer.shutdown()
    }

    @Test
    func `of cumulative acknowledgements the first one behind the entry counts, once for each device`() async throws {
        for number in 1...3 { _ = try await send("c\(number)", UInt64(number)) }
        let (phone, laptop) = (try principal(2, "phone"), try principal(2, "laptop"))
        try delivered(1...3, to: phone, by: "impb")
        try delivered(1...2, to: laptop, by: "mqtt")
        for seq in [1, 3, 3] as [UInt64] {
            time.advance(by: .milliseconds(1))
            traces.acknowledged(phone.user, phone.device, upTo: seq)
        }
        // A device that did not get this entry acknowledges other entries.
        traces.acknowledged(laptop.user, try device("tablet"), upTo: 9)
        func found(_ clientID: String) throws -> [String] {
            try #require(traces.find(clientID).first).steps.map {
                "\($0.kind.rawValue) \($0.device) \($0.after / .milliseconds(1))"
            }
        }
        #expect(try found("c1") == ["delivered phone 0.0", "delivered laptop 0.0", "acknowledged phone 1.0"])
        #expect(try found("c2") == ["delivered phone 0.0", "delivered laptop 0.0", "acknowledged phone 2.0"])
        #expect(try found("c3") == ["delivered phone 0.0", "acknowledged phone 2.0"])
        await committer.shutdown()
    }

    @Test
    func `a notification belongs to the conversation that it names`() async throws {
        _ = try await send("c1", 1)
        let phone = try principal(2)
        traces.pushed(1...4, phone.user, phone.device, scope: "direct/3", result: "apns delivered")
        traces.pushed(
            1...2,
            phone.user,
            phone.device,
            scope: "direct/1",
            result: "apns refused: " + String(repeating: "x", count: 9_000)
        )
        let steps = try #require(traces.find("c1").first).steps
        #expect(steps.count == 1 && steps[0].kind == .pushed)
        #expect(steps[0].detail.hasPrefix("apns refused: x") && steps[0].detail.count == 200)
        await committer.shutdown()
    }

    @Test
    func `a push to many has the steps of its first inboxes, and the number of all so far`() async throws {
        let push = Push(
            id: MessageID(high: 7, low: 7),
            content: PushContent(title: "a"),
            expiresAt: time.now().advanced(by: .seconds(60))
        )
        let outcomes = Collector<Result<PushOutcome, HermesError>>()
        committer.submit(.push(.accept(PushJob(push: push, target: .everyone), claim: nil)) { outcomes.add($0) })
        _ = try await outcomes.next(1).first?.get()
        #expect(traces.find(push.id.description).first?.message.recipients == 0)
        for _ in 0..<2 { committer.submit(.push(.fanOut(push.id, limit: 2)) { outcomes.add($0) }) }
        for outcome in await outcomes.next(2) { _ = try outcome.get() }
        let bob = try principal(2)
        try delivered(1...1, to: bob, by: "impb")
        let trace = try #require(traces.find(push.id.description).first)
        #expect(trace.message.recipients == 3 && trace.message.places.count == 3)
        #expect(trace.steps.map(\.kind) == [.delivered])
        await committer.shutdown()
    }

    @Test
    func `what is refused is found, with the reason; a repetition is not a message of its own`() async throws {
        _ = try await send("c1", 1)
        _ = try await send("c1", 2)
        #expect(traces.find("c1").count == 1)
        await #expect(throws: HermesError.self) { try await send("c2", 3, to: 99) }
        let refused = try #require(traces.find("c2").first)
        #expect(refused.message.refusal?.code == .notFound && refused.message.places.isEmpty && refused.steps.isEmpty)
        await committer.shutdown()
    }

    @Test
    func `messages, inboxes and steps are bounded, whatever is sent`() async throws {
        let receipt = try await send("first", 1)
        let place = InboxDelivery(
            user: try user(2),
            entry: InboxEntry(seq: 1, committedAt: time.now(), event: .expired(through: 1))
        )
        let sender = try principal(1)
        let append = MessageAppend(
            id: receipt.messageID,
            draft: MessageDraft(
                conversation: .direct(sender.user, try user(2)),
                clientID: "many",
                content: MessageContent(bytes: [])
            ),
            sender: sender,
            sentAt: time.now(),
            expiresAt: time.now(),
            recipients: []
        )
        let message = try #require(
            TracedMessage(
                .append(append),
                .appended(receipt, deliveries: Array(repeating: place, count: 1_000)),
                acceptedAt: .zero,
                committedAt: .zero,
                committedTime: time.now()
            )
        )
        #expect(message.recipients == 1_000 && message.places.count == MessageTraces.maxPlaces)
        for _ in 0..<MessageTraces.maxMessages {
            try Task.checkCancellation()
            traces.committed([message])
        }
        #expect(traces.find("first").isEmpty, "the oldest one is forgotten")
        for _ in 0..<MessageTraces.maxStepsInShard + 1_000 { try delivered(1...1, to: try principal(2), by: "impb") }
        let found = traces.find("many")
        #expect(found.count == MessageTraces.maxFound)
        #expect(found.allSatisfy { $0.steps.count == MessageTraces.maxStepsFound })
        await committer.shutdown()
    }

    @Test
    func `a ring keeps the last ones in their order`() {
        var ring = TraceRing<Int>(capacity: 3)
        #expect(ring.oldest(9) { _ in true }.isEmpty)
        for number in 1...7 {
            ring.append(number)
            let kept = Array(max(1, number - 2)...number)
            #expect(ring.oldest(9) { _ in true } == kept)
            #expect(ring.newest(9) { _ in true } == kept.reversed())
        }
        #expect(ring.oldest(2) { _ in true } == [5, 6] && ring.newest(1) { $0 < 7 } == [6] && ring.count == 3)
    }
}
