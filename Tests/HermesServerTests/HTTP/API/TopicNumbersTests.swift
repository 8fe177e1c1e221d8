// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesGateways
import HermesTestKit
import NIOCore
import Testing

@testable import HermesServer

@Suite("Numbers of pushes to topics", .inTurns, .timeLimit(.minutes(2)))
struct TopicNumbersTests {
    private static func topic(_ text: String) throws -> TopicName { try #require(TopicName(text)) }

    @Test
    func `each topic counts from 1; what was not published takes no number`() throws {
        var numbers = TopicNumbers(maxTopics: 10)
        var other = TopicNumbers(maxTopics: 10)
        let (a, b) = (try Self.topic("a"), try Self.topic("b"))
        let first = numbers.next(on: a)
        #expect(first.seq == 1 && first.epoch > 0)
        #expect(numbers.next(on: a) == first)
        numbers.used(first, on: a)
        #expect(numbers.next(on: a) == TopicNumbers.Place(epoch: first.epoch, seq: 2))
        #expect(numbers.next(on: b) == TopicNumbers.Place(epoch: first.epoch, seq: 1))
        #expect(other.next(on: a).epoch != first.epoch, "each server draws its own")
    }

    @Test
    func `one topic too many begins another epoch, for all`() throws {
        var numbers = TopicNumbers(maxTopics: 2)
        var epochs: Set<UInt64> = []
        for name in ["a", "b", "a", "b"] {
            let place = numbers.next(on: try Self.topic(name))
            numbers.used(place, on: try Self.topic(name))
            epochs.insert(place.epoch)
        }
        #expect(epochs.count == 1)
        let place = numbers.next(on: try Self.topic("c"))
        #expect(place.seq == 1 && !epochs.contains(place.epoch))
        numbers.used(place, on: try Self.topic("c"))
        #expect(numbers.next(on: try Self.topic("a")) == TopicNumbers.Place(epoch: place.epoch, seq: 1))
        // This is the place of a push that was being stored when the new epoch began.
        let former = TopicNumbers.Place(epoch: try #require(epochs.first), seq: 9)
        numbers.used(former, on: try Self.topic("a"))
        #expect(numbers.next(on: try Self.topic("a")) == TopicNumbers.Place(epoch: place.epoch, seq: 1))
    }

    @Test
    func `a subscriber of the SDK sees what it missed of a topic, and nothing over a restart`() async throws {
        try await withServer { server in
            var configuration = MQTTClient.Configuration(server: ServerAddress(port: server.port("mqtt")))
            configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], jitter: 0)
            let client = try MQTTClient(configuration)
            try await client.connect()
            try await client.subscribe(to: "news/#", qos: .atLeastOnce)
            let messages = client.messages.makeAsyncIterator()
            let body = #"{"to":{"topic":{"name":"news/today"}},"title":"News"}"#

            var api = try await APIClient(server)
            for _ in 1...2 { #expect(try await api.send("POST", "/v1/push", body).status == 202) }
            var last: MQTTMessage?
            for _ in 1...2 {
                last = await messages.next()
                #expect(last?.missedPushes == nil)
            }
            let epoch = try #require(last?.property("epoch"))
            #expect(last?.property("seq") == "2")
            // The number makes three pushes look lost.
            let later = Publication(
                topic: try Self.topic("news/today"),
                payload: ByteBuffer(),
                kind: Publication.plainKind,
                details: PublicationDetails(userProperties: [("epoch", epoch), ("seq", "6")])
            )
            #expect(try #require(try server.assembly().api).core.topics.publish(later))
            #expect(await messages.next()?.missedPushes == 3...5)
            #expect(await client.missedPushes == 3)

            let states = client.states
            try await server.restart()
            for await state in states where state == .live { break }
            api = try await APIClient(server)
            try await client.subscribe(to: "news/#", qos: .atLeastOnce)
            #expect(try await api.send("POST", "/v1/push", body).status == 202)
            let after = await messages.next()
            #expect(after?.missedPushes == nil)
            #expect(after?.property("seq") == "1")
            #expect(after?.property("epoch") != epoch)
            await client.close()
        }
    }

    @Test
    func `who is in a room is told before the next push which ones did not arrive`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let client = try HermesClient(
                HermesClient.Configuration(
                    server: ServerAddress(port: server.port("delimited")),
                    device: .init(id: "phone")
                )
            )
            _ = try await client.logIn(.register(nickName: "ann", password: "secret1"))
            let events = client.ephemeralEvents
            _ = try await client.enterRoom("lobby", as: RoomUser(name: "ann"))
            let core = try #require(try server.assembly().api).core
            for seq: UInt64 in [1, 2, 5] {
                let notice = try RoomAnnouncement.notice(
                    "\(seq)",
                    to: .lobby,
                    at: core.messenger.time.now(),
                    place: TopicNumbers.Place(epoch: 7, seq: seq)
                )
                #expect(core.topics.publish(notice))
            }
            for text in ["one", "two"] {
                let body = #"{"to":{"room":"lobby"},"body":"\#(text)"}"#
                #expect(try await api.send("POST", "/v1/push", body).status == 202)
            }
            var heard: [String] = []
            for await event in events {
                if case .missedPushes(let topic, let numbers) = event.kind {
                    heard.append("\(topic) \(numbers.lowerBound)-\(numbers.upperBound)")
                } else if case .notice(let text) = event.room?.kind {
                    heard.append(text)
                }
                if heard.last == "two" { break }
            }
            #expect(heard == ["1", "2", "room/lobby 3-4", "5", "one", "two"])
            await client.close()
        }
    }
}

extension MQTTMessage {
    fileprivate func property(_ name: String) -> String? {
        properties.userProperties.first { $0.name == name }?.value
    }
}
