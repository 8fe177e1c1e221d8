// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesProtocols
import HermesTestKit
import NIOCore
import Testing

@testable import HermesServer

/// IMPB's custom messages and broadcasts, which are topics for MQTT clients and for the HTTP API.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct IMPBApplicationTests {
    private static func phone(_ server: TestServer, _ name: String) async throws -> (IMPBClient, IMPBLogin) {
        let address = ServerAddress(port: server.port("impb"))
        let client = try IMPBClient(IMPBClient.Configuration(server: address, device: ClientDevice(id: "phone")))
        return (client, try await client.logIn(.register(nickName: name, password: "secret1")))
    }

    @Test(arguments: TestStore.allCases)
    func `a custom message reaches the back end, also one that is away, and no stranger`(
        store: TestStore
    ) async throws {
        try await withServer(store: store) { server in
            let (phone, login) = try await Self.phone(server, "ann")
            let topic = "impb/\(login.uid.rawValue)/phone/custom"
            var error = await #expect(throws: HermesClientError.self) { try await phone.sendCustom([1]) }
            #expect(error?.code == .notFound)
            let backend = try server.mqtt(as: "ann", id: "backend", keeps: true)
            try await backend.connect()
            try await backend.subscribe(to: topic, qos: .atLeastOnce)
            try await phone.sendCustom([0, 255])
            for await message in backend.messages {
                #expect(message.topic == topic)
                #expect(message.payload == ByteBuffer(bytes: [0, 255]))
                break
            }
            await backend.close()
            try await phone.sendCustom([7])
            let again = try server.mqtt(as: "ann", id: "backend", keeps: true)
            try await again.connect()
            for await message in again.messages {
                #expect(message.payload == ByteBuffer(bytes: [7]))
                break
            }
            error = await #expect(throws: HermesClientError.self) {
                try await phone.sendCustom([UInt8](repeating: 0, count: 32_769))
            }
            #expect(error?.code == .tooLarge)

            _ = try await server.messenger().accounts.createAccount(nickName: "eve", password: "secret1")
            for name in ["eve", nil] {
                let stranger = try server.mqtt(as: name, id: "stranger")
                try await stranger.connect()
                for topic in [topic, "impb/broadcast"] {
                    await #expect(throws: HermesClientError.self) {
                        try await stranger.publish(#"{"text":"x"}"#, to: topic, qos: .atLeastOnce)
                    }
                }
                await #expect(throws: HermesClientError.self) {
                    try await stranger.subscribe(to: topic, qos: .atLeastOnce)
                }
                await stranger.close()
            }
            await again.close()
            await phone.close()
        }
    }

    @Test func `a back end reaches everyone with a content as JSON, unless a rule denies it`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let (ann, _) = try await Self.phone(server, "ann")
            let (bob, _) = try await Self.phone(server, "bob")
            func publish(_ payload: String) async throws -> Int {
                let body = #"{"topic":"impb/broadcast","payload":\#(payload)}"#
                return try await api.send("POST", "/v1/topics/publish", body).status
            }
            let long = String(repeating: "x", count: 32_768)
            #expect(try await publish(#"{"text":"no JSON"}"#) == 422)
            #expect(try await publish(#"{"json":{"text":"\#(long)"}}"#) == 413)
            #expect(try await publish(#"{"json":{"text":"maintenance at ten"}}"#) == 202)
            for phone in [ann, bob] {
                for await event in phone.events {
                    #expect(
                        event == .broadcast(content: .text("maintenance at ten"), fromUID: Hermes.UserID(rawValue: 0))
                    )
                    break
                }
            }
            let error = await #expect(throws: HermesClientError.self) { try await ann.broadcast(.text("me, too")) }
            #expect(error?.code == .forbidden)
            let rules = try TopicRules(parsing: "deny key \(api.keyName) write impb/broadcast")
            try #require(try server.assembly().api).core.access.replace(with: rules)
            #expect(try await publish(#"{"json":{"text":"again"}}"#) == 403)
            for phone in [ann, bob] { await phone.close() }
        }
    }

    @Test func `a phone that comes back is told how much waits`() async throws {
        try await withServer { server in
            let (ann, _) = try await Self.phone(server, "ann")
            let (bob, login) = try await Self.phone(server, "bob")
            await bob.close()
            for text in ["one", "two"] { try await ann.send(text, to: login.uid) }
            _ = try await bob.logIn(.token(login.token))
            var events: [IMPBEvent] = []
            for await event in bob.events {
                events.append(event)
                if events.count == 3 { break }
            }
            #expect(events.first == .waiting(count: 2))
            let texts = events.dropFirst().map { event -> String? in
                if case .message(let message) = event { message.text } else { nil }
            }
            #expect(texts == ["one", "two"])
            for phone in [ann, bob] { await phone.close() }
        }
    }
}
