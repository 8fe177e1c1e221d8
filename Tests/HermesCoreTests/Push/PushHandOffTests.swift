// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

@Suite("Hand-off to push services", .inTurns, .timeLimit(.minutes(1))) struct PushHandOffTests {
    /// A sender that records notifications, and gives the answers that a test has set.
    final class FakeSender: PushSender {
        private struct State {
            var sent: [PushDelivery] = []
            var answers: [PushSendOutcome] = []
            var held: [CheckedContinuation<Void, Never>] = []
            var holds: @Sendable (PushDelivery) -> Bool = { _ in false }
            var failures: [PushToken.Service: PushSendOutcome] = [:]
            var answering: @Sendable () -> Void = {}
        }

        private let state = Mutex(State())
        private let (begun, begin) = AsyncStream<PushDelivery>.makeStream()

        var sent: [PushDelivery] { state.withLock { $0.sent } }

        /// Sets the next answers. After these, every notification is delivered.
        func answer(_ outcomes: PushSendOutcome...) { state.withLock { $0.answers = outcomes } }

        /// Sets the answer of a service to all notifications; nil if the answers of ``answer(_:)`` apply.
        func answer(_ outcome: PushSendOutcome?, by service: PushToken.Service) {
            state.withLock { $0.failures[service] = outcome }
        }

        /// Returns the next notification that must be sent.
        func next() async -> PushDelivery? {
            for await delivery in begun { return delivery }
            return nil
        }

        /// Makes these notifications wait for an answer until ``release()`` is called.
        func hold(_ holds: @escaping @Sendable (PushDelivery) -> Bool) { state.withLock { $0.holds = holds } }

        /// Sets a function that runs before each answer, for example to let time pass.
        func beforeAnswers(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.answering = body } }

        /// Answers the notifications that wait.
        func release() {
            let held = state.withLock { state in
                state.holds = { _ in false }
                defer { state.held = [] }
                return state.held
            }
            for continuation in held { continuation.resume() }
        }

        func send(_ delivery: PushDelivery) async -> PushSendOutcome {
            guard await delivery.isDue() else { return .withdrawn }
            await withCheckedContinuation { continuation in
                let isHeld = state.withLock { state in
                    guard state.holds(delivery) else { return false }
                    state.held.append(continuation)
                    return true
                }
                begin.yield(delivery)
                if !isHeld { continuation.resume() }
            }
            state.withLock { $0.answering }()
            return state.withLock { state in
                state.sent.append(delivery)
                if let failure = state.failures[delivery.token.service] { return failure }
                return state.answers.isEmpty ? .delivered(id: "1") : state.answers.removeFirst()
            }
        }
    }

    struct World {
        let store: MemoryStore
        let time = ManualTime()
        let sender = FakeSender()
        let messenger: Messenger
        let outbox: WebhookOutbox
        let handOff: PushHandOff

        /// Creates the accounts 1 to 3. The second account has a token on its device "phone".
        ///
        /// - Parameter ahead: how far the wall clock is ahead at the start.
        init(
            _ store: MemoryStore? = nil,
            settings: PushHandOff.Settings = .init(),
            ahead: Duration = .zero
        ) async throws {
            time.jump(by: ahead)
            self.store = store ?? MemoryStore()
            if store == nil { try await addAccounts(3, to: self.store) }
            messenger = Messenger(
                accountStore: self.store,
                messageStore: self.store,
                socialStore: self.store,
                sessionStore: self.store,
                pushTokenStore: self.store,
                messageSettings: MessageSettings { $0.commit = .init(acknowledgementDelay: .seconds(3600)) },
                time: time
            )
            outbox = WebhookOutbox(store: self.store, kinds: Set(WebhookNotice.Kind.allCases), limit: 100, time: time)
            handOff = PushHandOff(
                messenger,
                store: self.store,
                accounts: self.store,
                sender: sender,
                webhooks: outbox,
                settings: settings,
                text: { PushText(title: $0.senderName, body: String(decoding: $0.content.bytes, as: UTF8.self)) }
            )
            handOff.observe(messenger.watch)
            try await messenger.load()
            if store == nil { try await setToken() }
        }

        func setToken(_ deviceName: String = "phone", text: String = "aa") async throws {
            let token = PushToken(stored: .apns, text: text, appID: "")
            try await messenger.pushTokens.set(token, of: principal(2, deviceName))
        }

        func send(_ text: String, from sender: Int32 = 1, to receiver: Int32 = 2) async throws {
            let draft = MessageDraft(
                conversation: .direct(between: try user(sender), and: try user(receiver)),
                clientID: nil,
                content: MessageContent(bytes: Array(text.utf8))
            )
            let from = try principal(sender)
            _ = try await withCheckedContinuation { continuation in
                messenger.messages.send(draft, from: from) { continuation.resume(returning: $0) }
            }.get()
            // The observer is called after the completion, on the committer's thread. A second commit comes after the
            // call.
            try await barrier()
        }

        func markRead(upTo seq: UInt64, by reader: Int32, with other: Int32) async throws {
            let conversation = ConversationID.direct(between: try user(reader), and: try user(other))
            _ = try await messenger.inbox.answer(.markRead(conversation, upTo: seq), for: try user(reader))
            try await barrier()
        }

        private func barrier() async throws {
            let me = try user(3)
            _ = try await messenger.inbox.answer(.markRead(.direct(between: me, and: me), upTo: 1), for: me)
        }

        /// Lets time pass, and looks at the devices that are due.
        func wait(_ duration: Duration) async {
            time.advance(by: duration)
            while true {
                let batch = handOff.takeBatch()
                guard !batch.isEmpty else { return }
                await handOff.look(at: batch)
            }
        }

        /// Lets time pass in steps of 10 s, and looks at the devices that are due, as ``PushHandOff/run()`` does.
        func work(_ rounds: Int) async throws {
            for _ in 0..<rounds {
                if handOff.mustRecover { try await handOff.recover() }
                await wait(.seconds(10))
            }
        }

        func pushedUpTo() async throws -> [UInt64] { try await store.pushTargets(of: user(2)).map(\.pushedUpTo) }

        func events() async throws -> [[String: Any]] {
            try await store.dueWebhooks(now: time.now(), limit: 100).map { webhook in
                try JSONSerialization.jsonObject(with: Data(webhook.event.body)) as? [String: Any] ?? [:]
            }
        }
    }

    @Test
    func `who is not connected is pushed to at once, one notification for each conversation, the newest`() async throws
    {
        let world = try await World()
        for text in ["one", "two"] { try await world.send(text) }
        try await world.send("three", from: 3)
        await world.wait(.zero)
        #expect(world.sender.sent.map(\.notification.body) == ["two", "three"])
        #expect(world.sender.sent.map(\.notification.badge) == [3, 3])
        #expect(world.sender.sent.map(\.notification.collapseKey) == ["direct/1-2", "direct/2-3"])
        #expect(world.sender.sent.map(\.notification.reference.conversation) == ["direct/1", "direct/3"])
        #expect(try world.sender.sent.map(\.notification.reference.user) == [user(2), user(2)])
        #expect(try await world.pushedUpTo() == [3])
        await world.wait(.seconds(3600))
        #expect(world.sender.sent.count == 2)
        await world.messenger.shutdown()
    }

    @Test
    func `those who watch are told of messages, results and what nobody acknowledged, of each kind that they want`()
        async throws
    {
        let world = try await World()
        let events = world.messenger.events
        let seen = Mutex<[ServerEvent]>([])
        events.happened.observe { event in seen.withLock { $0.append(event) } }
        try await world.send("unwatched")
        await world.wait(.seconds(10))
        #expect(seen.withLock { $0.count } == 0)

        events.want([.messageAccepted, .pushResult, .messageUndelivered])
        #expect(events.wants(.pushResult) && !events.wants(.online))
        try await world.send("one")
        await world.wait(.seconds(10))
        let attachment = RecordingAttachment(try principal(2))
        world.messenger.devices.attach(attachment)
        events.want([.online])
        world.messenger.devices.detach(attachment)
        world.messenger.devices.attach(attachment)
        // The push and the deadline are reported independently of each other.
        let kinds = seen.withLock { $0.map(\.kind) }
        #expect(kinds.count == 4 && kinds.first == .messageAccepted && kinds.last == .online)
        #expect(Set(kinds.dropFirst().dropLast()) == [.pushResult, .messageUndelivered])
        let bodies = try seen.withLock { $0 }.map { event in
            let body = Data(event.body(at: Timestamp(rawValue: 7)))
            return try JSONSerialization.jsonObject(with: body) as? [String: Any] ?? [:]
        }
        #expect(bodies.allSatisfy { $0["time"] as? Int == 7 && $0["id"] == nil })
        #expect(bodies.map { $0["user"] as? Int } == [1, 2, 2, 2])
        let message = bodies.first?["message"] as? [String: Any]
        #expect(message?["conversation"] as? String == "direct/2")
        #expect(message?["conversationSeq"] as? Int == 2)
        await world.messenger.shutdown()
    }

    @Test
    func `who is connected has until the deadline to acknowledge`() async throws {
        let world = try await World()
        let attachment = RecordingAttachment(try principal(2))
        world.messenger.devices.attach(attachment)
        try await world.send("one")
        await world.wait(.milliseconds(9_999))
        #expect(world.sender.sent.isEmpty)
        await world.wait(.milliseconds(1))
        #expect(world.sender.sent.map(\.notification.body) == ["one"])
        try await world.send("two")
        world.messenger.inbox.acknowledge(try principal(2), upTo: 2)
        await world.wait(.seconds(60))
        #expect(world.sender.sent.count == 1)
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `each entry has its own deadline, for a connected device and for the webhook`() async throws {
        let world = try await World()
        world.messenger.devices.attach(RecordingAttachment(try principal(2)))
        // Older messages are always under way, as over a slow connection.
        for number in 1...30 {
            try await world.send("\(number)")
            if number > 2 { world.messenger.inbox.acknowledge(try principal(2), upTo: UInt64(number) - 2) }
            await world.wait(.seconds(1))
        }
        #expect(world.sender.sent.isEmpty)
        #expect(try await world.events().isEmpty)
        // Message 29 is 1 s older than message 30.
        await world.wait(.seconds(8))
        #expect(world.sender.sent.map(\.notification.body) == ["29"])
        await world.wait(.seconds(1))
        #expect(world.sender.sent.map(\.notification.body) == ["29", "30"])
        let undelivered = try await world.events().filter { $0["type"] as? String == "message.undelivered" }
        #expect(undelivered.compactMap { ($0["message"] as? [String: Any])?["seq"] as? Int } == [29, 30])
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `an app that is not in front of its user is pushed to at once, until it is again`() async throws {
        let world = try await World()
        let attachment = RecordingAttachment(try principal(2))
        world.messenger.devices.attach(attachment)
        world.messenger.devices.setResting(true, attachment)
        try await world.send("one")
        await world.wait(.zero)
        #expect(world.sender.sent.count == 1)
        world.messenger.devices.setResting(false, attachment)
        try await world.send("two")
        await world.wait(.zero)
        #expect(world.sender.sent.count == 1)
        world.messenger.devices.setResting(true, attachment)
        world.messenger.devices.detach(attachment)
        world.messenger.devices.attach(attachment)
        #expect(world.messenger.devices.awakeDevices(of: try user(2)) == [try device("phone")])
        await world.messenger.shutdown()
    }

    @Test
    func `what one sent oneself, read marks, and what was read elsewhere push nothing`() async throws {
        let world = try await World()
        try await world.send("mine", from: 2, to: 1)
        try await world.markRead(upTo: 1, by: 1, with: 2)
        await world.wait(.zero)
        #expect(world.sender.sent.isEmpty)
        let attachment = RecordingAttachment(try principal(2))
        world.messenger.devices.attach(attachment)
        try await world.send("read on the tablet")
        try await world.markRead(upTo: 2, by: 2, with: 1)
        await world.wait(.seconds(10))
        #expect(world.sender.sent.isEmpty)
        try await world.send("not read")
        await world.wait(.seconds(10))
        #expect(world.sender.sent.map(\.notification.badge) == [1])
        await world.messenger.shutdown()
    }

    @Test func `a subscription whose service is not allowed is refused when it is set`() async throws {
        let world = try await World()
        let tokens = world.messenger.pushTokens
        tokens.limitWebPush { $0.host == "good.example.org" }
        let error = await #expect(throws: HermesError.self) {
            try await tokens.set(subscription("bad.example.org"), of: principal(2))
        }
        #expect(error?.code == .invalidArgument)
        try await tokens.set(subscription("good.example.org"), of: principal(2))
    }

    @Test
    func `what did not go through is tried again, with the same id, and nothing else`() async throws {
        let world = try await World()
        try await world.send("one")
        world.sender.answer(.retry(after: .seconds(30), isService: true, reason: "503"))
        await world.wait(.zero)
        #expect(try await world.pushedUpTo() == [0])
        await world.wait(.seconds(29))
        #expect(world.sender.sent.count == 1)
        // By then, the pause of the service and the wait of the device are over.
        for _ in 0..<5 { await world.wait(.seconds(5)) }
        #expect(world.sender.sent.count == 2)
        #expect(Set(world.sender.sent.map(\.notification.id)).count == 1)
        #expect(try await world.pushedUpTo() == [1])
        await world.messenger.shutdown()
    }

    @Test
    func `a backlog of more than a page is pushed to its end, and what comes after it`() async throws {
        let world = try await World()
        let from = try principal(1)
        let conversation = ConversationID.direct(between: from.user, and: try user(2))
        for text in ["old", "new"] {
            for number in 1...1_100 {
                let content = MessageContent(bytes: Array("\(text) \(number)".utf8))
                let draft = MessageDraft(conversation: conversation, clientID: nil, content: content)
                world.messenger.messages.send(draft, from: from) { _ in }
            }
            try await world.send("\(text) last")
            await world.wait(.zero)
            #expect(world.sender.sent.last?.notification.body == "\(text) last")
        }
        #expect(try await world.pushedUpTo() == [2_202])
        #expect(world.sender.sent.last?.notification.badge == 1_000)
        try await world.send("one more")
        await world.wait(.zero)
        #expect(world.sender.sent.last?.notification.body == "one more")
        await world.messenger.shutdown()
    }

    @Test
    func `what was pushed to a token that was replaced meanwhile goes to the new one`() async throws {
        let world = try await World()
        try await world.send("one")
        let batch = world.handOff.takeBatch()
        let phone = try #require(batch.first?.device)
        guard case .due(let candidate) = try await world.handOff.find(user(2), phone) else {
            Issue.record("nothing was due")
            return
        }
        try await world.setToken(text: "bb")
        try await world.send("two")
        try await world.store.settlePushes([
            .pushed(try user(2), candidate.target.device, candidate.target.token, upTo: 2)
        ])
        await world.handOff.look(at: batch)
        await world.wait(.seconds(20))
        #expect(world.sender.sent.map(\.notification.body) == ["two"])
        #expect(world.sender.sent.map(\.token.text) == ["bb"])
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `what came while the account was disabled is pushed once it is enabled`() async throws {
        let world = try await World()
        try await world.messenger.accounts.setDisabled(user(2), true)
        try await world.send("one")
        await world.wait(.seconds(20))
        #expect(world.sender.sent.isEmpty && world.handOff.waiting == 0)
        try await world.messenger.accounts.setDisabled(user(2), false)
        await world.wait(.seconds(20))
        #expect(world.sender.sent.map(\.notification.body) == ["one"])
        await world.messenger.shutdown()
    }

    @Test
    func `a token that is gone is forgotten`() async throws {
        let world = try await World()
        try await world.send("one")
        world.sender.answer(.tokenGone(since: nil))
        await world.wait(.zero)
        #expect(try await world.store.pushTargets(of: user(2)).isEmpty)
        try await world.send("two")
        await world.wait(.seconds(3600))
        #expect(world.sender.sent.count == 1)
        await world.messenger.shutdown()
    }

    @Test
    func `after a restart what is not acknowledged and not pushed is pushed, and nothing else`() async throws {
        let store = MemoryStore()
        try await addAccounts(3, to: store)
        var world = try await World(store)
        try await world.setToken()
        try await world.send("pushed")
        await world.wait(.zero)
        // The process is killed here. The message is committed, but nothing has looked at its device.
        try await world.send("lost to the process")
        await world.messenger.shutdown()
        world = try await World(store)
        try await world.handOff.recover()
        await world.wait(.seconds(9))
        #expect(world.sender.sent.isEmpty)
        await world.wait(.seconds(1))
        #expect(world.sender.sent.map(\.notification.body) == ["lost to the process"])
        #expect(world.sender.sent.map(\.notification.badge) == [2])
        try await world.handOff.recover()
        await world.wait(.seconds(60))
        #expect(world.sender.sent.count == 1)
        await world.messenger.shutdown()
    }

    @Test
    func `the webhook hears of what no device acknowledged, once, and of results`() async throws {
        let world = try await World()
        try await world.send("one")
        await world.wait(.zero)
        await world.wait(.seconds(10))
        await world.wait(.seconds(10))
        let events = try await world.events()
        #expect(events.map { $0["type"] as? String } == ["push.result", "message.undelivered"])
        let push = try #require(events[0]["push"] as? [String: Any])
        #expect(push["result"] as? String == "delivered")
        #expect(push["service"] as? String == "apns")
        #expect(events[1]["user"] as? Int == 2)
        let message = try #require(events[1]["message"] as? [String: Any])
        #expect(message["seq"] as? Int == 1)
        #expect(message["from"] as? Int == 1)
        #expect(message["conversation"] as? String == "direct/1")
        try await world.handOff.recover()
        await world.wait(.seconds(60))
        #expect(try await world.events().count == 2)
        await world.messenger.shutdown()
    }

    @Test func `what no device acknowledged is told even if the server starts with its clock ahead`() async throws {
        var world = try await World()
        try await world.send("one")
        await world.messenger.shutdown()
        world = try await World(world.store, ahead: .seconds(25 * 3600))
        try await world.handOff.recover()
        for _ in 1...3 { await world.wait(.seconds(10)) }
        #expect(try await world.events().contains { $0["type"] as? String == "message.undelivered" })
        await world.messenger.shutdown()
    }

    @Test func `what only a claimed device took is told as undelivered`() async throws {
        let world = try await World()
        try await world.send("one")
        let watch = DeviceDescription(id: try device("watch"))
        let now = world.time.now()
        _ = try await world.store.open(DeviceOpening(user: user(2), device: watch, proof: .claim), now: now)
        let claim = try await world.messenger.accounts.admit(.claim(user(2)), device: watch.id, address: nil)
        world.messenger.inbox.acknowledge(claim.principal(on: watch.id), upTo: 1)
        await world.wait(.zero)
        await world.wait(.seconds(20))
        #expect(try await world.events().contains { $0["type"] as? String == "message.undelivered" })
        await world.messenger.shutdown()
    }

    @Test
    func `a back end's push is pushed with its own collapse key, to the device that it is for`() async throws {
        let world = try await World()
        _ = try await world.store.open(
            DeviceDescription(id: device("tablet")),
            of: user(2),
            token: nil,
            now: world.time.now()
        )
        try await world.setToken("tablet", text: "bb")
        let tablet = try device("tablet")
        let entry = InboxEntry(
            seq: 1,
            committedAt: world.time.now(),
            event: .push(
                Push(
                    id: MessageID(high: 1, low: 2),
                    content: PushContent(
                        title: "Order",
                        body: "Shipped",
                        dataJSON: #"{"n":1}"#,
                        collapseKey: "order-1"
                    ),
                    priority: .high,
                    expiresAt: world.time.now().advanced(by: .seconds(60)),
                    device: tablet
                )
            )
        )
        let plans = try ["phone", "tablet"].map { name in
            HandOffPlan(for: try user(2), try device(name), entries: [entry], pushedUpTo: 0) { _ in
                PushText(title: "", body: "")
            }
        }
        #expect(plans[0].items.isEmpty)
        #expect(plans[0].upTo == 1)
        let notification = try #require(plans[1].items.first?.notification)
        #expect(notification.title == "Order")
        #expect(notification.data == #"{"n":1}"#)
        #expect(notification.collapseKey == "key/order-1")
        #expect(notification.priority == .high)
        #expect(
            notification.id.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil
        )
        await world.messenger.shutdown()
    }
}
