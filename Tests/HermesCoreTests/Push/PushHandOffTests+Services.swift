// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Testing

@testable import HermesCore

/// Services that are slow, fail, or do not answer.
extension PushHandOffTests {
    func subscription(_ host: String) -> PushToken {
        let key = Data([4] + Array(repeating: 1, count: 64)).base64URL
        let secret = Data(repeating: 7, count: 16).base64URL
        let text = #"{"endpoint":"https://\#(host)/x","keys":{"p256dh":"\#(key)","auth":"\#(secret)"}}"#
        return PushToken(stored: .webPush, text: text, appID: "")
    }

    @Test func `a service that does not answer holds up nobody else, even with one lane`() async throws {
        let world = try await World(settings: .init(lanes: 1))
        let tokens = world.messenger.pushTokens
        world.sender.hold { $0.token.text.contains("slow.example.org") }
        try await tokens.set(subscription("slow.example.org"), of: principal(2))
        try await tokens.set(subscription("good.example.org"), of: principal(3))
        let running = Task { await world.handOff.run() }
        try await world.send("one")
        let (second, third) = (try user(2), try user(3))
        #expect(await world.sender.next()?.user == second)
        try await world.send("two", to: 3)
        #expect(await world.sender.next()?.user == third)
        world.sender.release()
        running.cancel()
        await running.value
    }

    @Test
    func `a configured service that does not answer holds up no other, nor the webhook; its own devices wait in turn`()
        async throws
    {
        let world = try await World(settings: .init(deadline: .milliseconds(100), batch: 1, lanes: 1))
        let tokens = world.messenger.pushTokens
        world.sender.hold { $0.token.service == .apns }
        try await tokens.set(PushToken(stored: .fcm, text: "ff", appID: ""), of: principal(3))
        try await tokens.set(PushToken(stored: .apns, text: "cc", appID: ""), of: principal(1, "phone"))
        let running = Task { await world.handOff.run() }
        try await world.send("first")
        let (first, second, third) = (try user(1), try user(2), try user(3))
        #expect(await world.sender.next()?.user == second)
        try await world.send("waits for APNs", from: 3, to: 1)
        try await world.send("third", to: 3)
        #expect(await world.sender.next()?.user == third)
        world.time.advance(by: .seconds(1))
        try await world.send("told as undelivered", to: 3)
        while try await !world.events().contains(where: { $0["type"] as? String == "message.undelivered" }) {
            world.time.advance(by: .seconds(1))
            try await world.send("again", from: 2, to: 3)
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(!world.sender.sent.contains { $0.user == first || $0.user == second })
        world.sender.release()
        while !world.sender.sent.contains(where: { $0.user == first }) { _ = await world.sender.next() }
        running.cancel()
        await running.value
    }

    @Test
    func `what waited for a slow service is read again before it is sent`() async throws {
        let world = try await World()
        world.sender.hold { $0.notification.body == "one" }
        try await world.send("one")
        try await world.send("two", from: 3)
        let batch = world.handOff.takeBatch()
        async let looked: Void = world.handOff.look(at: batch)
        #expect(await world.sender.next()?.notification.body == "one")
        // While the slow service works, the device gets another token, as if the device had a new owner.
        try await world.setToken(text: "bb")
        world.time.advance(by: .seconds(3))
        world.sender.release()
        await looked
        #expect(world.sender.sent.map(\.notification.body) == ["one"])
        await world.wait(.seconds(20))
        // The old token gets no more notifications, and the new token gets only notifications of later messages.
        #expect(world.sender.sent.map(\.notification.body) == ["one"])
        try await world.send("three")
        await world.wait(.seconds(20))
        #expect(world.sender.sent.dropFirst().map(\.notification.body) == ["three"])
        #expect(world.sender.sent.last?.token.text == "bb")
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    /// A change after which a message needs no notification any more.
    enum Change: Sendable, CaseIterable {
        case recalled, read, acknowledged
    }

    @Test(arguments: Change.allCases)
    func `what was recalled, read or acknowledged while an earlier notification took its time is not sent`(
        change: Change
    ) async throws {
        let world = try await World()
        world.sender.hold { $0.notification.body == "one" }
        try await world.send("one")
        try await world.send("two", from: 3)
        let batch = world.handOff.takeBatch()
        async let looked: Void = world.handOff.look(at: batch)
        #expect(await world.sender.next()?.notification.body == "one")
        switch change {
        case .recalled:
            let page = try await world.store.entries(of: user(2), after: 1, limit: 1)
            guard case .message(let message)? = page.entries.first?.event else {
                Issue.record("no message")
                break
            }
            _ = try await world.messenger.inbox.answer(.recall(message.id, in: message.conversation), for: user(3))
        case .read: try await world.markRead(upTo: 1, by: 2, with: 3)
        case .acknowledged: world.messenger.inbox.acknowledge(try principal(2), upTo: 2)
        }
        world.time.advance(by: .seconds(3))
        world.sender.release()
        await looked
        for _ in 0..<3 { await world.wait(.seconds(20)) }
        #expect(world.sender.sent.map(\.notification.body) == ["one"])
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `the age of what was read begins with the reading, not with the sending`() async throws {
        let world = try await World()
        try await world.send("one")
        let phone = try #require(world.handOff.takeBatch().first?.device)
        guard case .due(let candidate) = try await world.handOff.find(user(2), phone) else {
            Issue.record("nothing was due")
            return
        }
        try await world.markRead(upTo: 1, by: 2, with: 1)
        world.time.advance(by: .seconds(3))
        await world.handOff.send([candidate])
        await world.wait(.seconds(20))
        #expect(world.sender.sent.isEmpty)
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `a token that was registered again after its service found it invalid stays, and is tried again`() async throws
    {
        let world = try await World()
        try await world.send("one")
        world.sender.answer(.tokenGone(since: world.time.now().advanced(by: .seconds(-60))))
        await world.wait(.zero)
        #expect(try await world.pushedUpTo() == [0])
        #expect(try await world.events().isEmpty)
        await world.wait(.seconds(2))
        #expect(world.sender.sent.map(\.notification.body) == ["one", "one"])
        #expect(try await world.pushedUpTo() == [1])
        let pushes = try await world.events().compactMap { $0["push"] as? [String: Any] }
        #expect(pushes.map { $0["result"] as? String } == ["delivered"])
        await world.messenger.shutdown()
    }

    @Test
    func `a token that is registered again while its service finds it invalid gets the notification`() async throws {
        let world = try await World()
        world.sender.hold { _ in true }
        try await world.send("one")
        let batch = world.handOff.takeBatch()
        async let looked: Void = world.handOff.look(at: batch)
        #expect(await world.sender.next()?.notification.body == "one")
        world.sender.answer(.tokenGone(since: world.time.now()))
        world.time.advance(by: .seconds(1))
        try await world.setToken()
        world.sender.release()
        await looked
        #expect(try await world.pushedUpTo() == [0])
        await world.wait(.seconds(20))
        #expect(world.sender.sent.map(\.notification.body) == ["one", "one"])
        #expect(try await world.pushedUpTo() == [1])
        await world.messenger.shutdown()
    }

    @Test
    func `each notification goes out once, however slow the service is`() async throws {
        let world = try await World(settings: .init(devices: 1))
        try await world.messenger.pushTokens.set(PushToken(stored: .apns, text: "cc", appID: ""), of: principal(3))
        let time = world.time
        world.sender.beforeAnswers { time.advance(by: .seconds(3)) }
        // The conversation with the oldest entry also has the newest entry.
        try await world.send("one")
        try await world.send("two", from: 3)
        try await world.send("three")
        try await world.send("another device", to: 3)
        await world.wait(.zero)
        await world.wait(.seconds(60))
        #expect(world.sender.sent.map(\.notification.body).sorted() == ["another device", "three", "two"])
        #expect(try await world.pushedUpTo() == [3])
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `a service that fails gets the rest of a device later, each answer counts`() async throws {
        let world = try await World()
        for number in 1...3 { try await world.send("\(number)", from: number == 2 ? 3 : 1) }
        world.sender.answer(.delivered(id: "1"), .retry(after: nil, isService: true, reason: "503"))
        await world.wait(.zero)
        #expect(world.sender.sent.map(\.notification.body) == ["3", "2"])
        #expect(try await world.pushedUpTo() == [1])
        for _ in 0..<10 { await world.wait(.seconds(5)) }
        #expect(world.sender.sent.dropFirst(2).map(\.notification.body) == ["2", "3"])
        #expect(try await world.pushedUpTo() == [3])
        await world.messenger.shutdown()
    }

    @Test
    func `what a service that the client named could not take is tried again without other traffic`() async throws {
        let backoff = Backoff(base: .milliseconds(50), limit: .milliseconds(50))
        let world = try await World(settings: .init(backoff: backoff))
        try await world.messenger.pushTokens.set(subscription("good.example.org"), of: principal(2))
        world.sender.answer(.retry(after: nil, isService: false, reason: "503"))
        let running = Task { await world.handOff.run() }
        try await world.send("one")
        _ = await world.sender.next()
        let again = Task { await world.sender.next() }
        let advancing = Task {
            while !Task.isCancelled {
                world.time.advance(by: .milliseconds(20))
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        #expect(await again.value?.notification.body == "one")
        advancing.cancel()
        running.cancel()
        await running.value
    }

    @Test
    func `what a service has accepted while the server stops is not sent again`() async throws {
        let world = try await World()
        try await world.messenger.pushTokens.set(PushToken(stored: .apns, text: "cc", appID: ""), of: principal(3))
        world.sender.hold { $0.token.text == "cc" }
        try await world.send("hangs", to: 3)
        try await world.send("one")
        let running = Task { await world.handOff.run() }
        let first = await world.sender.next()
        _ = await world.sender.next()
        #expect(first != nil)
        running.cancel()
        world.sender.release()
        await running.value
        #expect(try await world.pushedUpTo() == [1])
        await world.messenger.shutdown()
    }
}
