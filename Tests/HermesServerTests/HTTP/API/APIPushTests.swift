// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite("Pushing over HTTP", .inTurns)
struct APIPushTests {
    private static func client(_ server: TestServer, device: String) throws -> HermesClient {
        let address = ServerAddress(host: "127.0.0.1", port: server.port("delimited"))
        return try HermesClient(
            HermesClient.Configuration(server: address, device: .init(id: device))
        )
    }

    /// Returns the next push that a client gets.
    private static func push(of client: HermesClient) async throws -> ClientPush {
        for await event in client.events {
            if let push = event.push { return push }
        }
        throw CancellationError()
    }

    @Test(arguments: TestStore.allCases)
    func `a user who is connected gets it on every device, with all that it says`(_ store: TestStore) async throws {
        try await withServer(store: store) { server in
            let api = try await APIClient(server)
            let phone = try Self.client(server, device: "phone")
            let tablet = try Self.client(server, device: "tablet")
            _ = try await phone.logIn(.register(nickName: "ann", password: "secret1"))
            _ = try await tablet.logIn(.password(nickName: "ann", password: "secret1"))
            let body = """
                {"to":{"user":"ann"},"title":"Sale","body":"All shoes","data":{"n":21.50,"a":[1]},"collapse_key":"k",
                "ttl_seconds":60,"priority":"high"}
                """
            let answer = try await api.send("POST", "/v1/push", body)
            #expect(answer.status == 202)
            #expect(answer.body["recipients"]?.integer == 1)
            for client in [phone, tablet] {
                let push = try await Self.push(of: client)
                #expect(push.id == answer.body["id"]?.string)
                #expect(push.title == "Sale")
                #expect(push.body == "All shoes")
                #expect(push.dataJSON == #"{"n":21.50,"a":[1]}"#)
                #expect(push.collapseKey == "k")
                await client.close()
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a message of the application's own type comes out as that type, over each carrier and after a restart`(
        _ store: TestStore
    ) async throws {
        try await withServer(store: store) { server in
            var order = Hermes_V1_ReadMark()
            order.uid = 21
            let bytes = Data(try order.wireBytes(as: [UInt8].self)).base64EncodedString()
            let (mqtt, http) = (server.port("mqtt"), server.port("http"))
            let addresses = [
                "tcp://127.0.0.1:\(server.port("delimited"))", "ws://127.0.0.1:\(http)", "mqtt://127.0.0.1:\(mqtt)",
                "ws://127.0.0.1:\(http)/mqtt",
            ]
            var clients: [HermesClient] = []
            for (number, text) in addresses.enumerated() {
                let address = try #require(ServerAddress(text))
                let device = DeviceDescription(id: "device-\(number)")
                let client = try HermesClient(HermesClient.Configuration(server: address, device: device))
                clients.append(client)
                let login: Hermes.Credential =
                    number == 0
                    ? .register(nickName: "ann", password: "secret1") : .password(nickName: "ann", password: "secret1")
                _ = try await client.logIn(login)
            }
            let body = #"{"to":{"user":"ann"},"message":{"type":"hermes.v1.ReadMark","bytes":"\#(bytes)"}}"#
            let api = try await APIClient(server)
            #expect(try await api.send("POST", "/v1/push", body).status == 202)
            for client in clients {
                let push = try await Self.push(of: client)
                #expect(try push.message(as: Hermes_V1_ReadMark.self) == order)
                #expect(try push.message(as: Hermes_V1_Typing.self) == nil)
                await client.close()
            }
            // The push is stored next to its row, not in memory.
            let later = #"{"to":{"user":"ann"},"title":"later","message":{"type":"shop.Order","bytes":"AP8H"}}"#
            #expect(try await api.send("POST", "/v1/push", later).status == 202)
            try await server.restart()
            _ = try await clients[2].logIn(.password(nickName: "ann", password: "secret1"))
            let push = try await Self.push(of: clients[2])
            #expect(push.messageType == "shop.Order" && push.messageBytes == [0, 0xFF, 7])
            await clients[2].close()
        }
    }

    @Test
    func `a message that is none is refused by name`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let long = String(repeating: "AAAA", count: 5_463)
            let name = String(repeating: "t", count: 129)
            for (message, field) in [
                (#"{"type":"1shop","bytes":""}"#, "message.type"), (#"{"type":"a"}"#, "message.bytes"),
                (#"{"type":"a","bytes":"?"}"#, "message.bytes"), (#"{"type":"a","bytes":"AAA"}"#, "message.bytes"),
                (#"{"bytes":"AAAA"}"#, "message.type"), (#"{"type":"\#(name)","bytes":""}"#, "message.type"),
                (#"{"type":"a","bytes":"\#(long)"}"#, "message.bytes"),
            ] {
                let answer = try await api.send("POST", "/v1/push", #"{"to":{"everyone":true},"message":\#(message)}"#)
                let isTooLong = message.contains(name) || message.contains(long)
                #expect(answer.status == (isTooLong ? 413 : 422), "\(message.prefix(40))")
                #expect(answer.body["code"]?.integer == (isTooLong ? 2006 : 2001), "\(message.prefix(40))")
                #expect(answer.body.text.contains(field), "\(answer.body.text.prefix(200))")
            }
        }
    }

    @Test
    func `for one device, the others show nothing and miss nothing`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let phone = try Self.client(server, device: "phone")
            let tablet = try Self.client(server, device: "tablet")
            _ = try await phone.logIn(.register(nickName: "ann", password: "secret1"))
            _ = try await tablet.logIn(.password(nickName: "ann", password: "secret1"))
            let body = #"{"to":{"device":{"user":"ann","device_id":"phone"}},"title":"phone"}"#
            #expect(try await api.send("POST", "/v1/push", body).status == 202)
            #expect(try await api.send("POST", "/v1/push", #"{"to":{"user":"ann"},"title":"all"}"#).status == 202)
            #expect(try await Self.push(of: phone).title == "phone")
            #expect(try await Self.push(of: tablet).title == "all")
            let nobody = #"{"to":{"device":{"user":"ann","device_id":"watch"}},"title":"x"}"#
            #expect(try await api.send("POST", "/v1/push", nobody).status == 404)
            await phone.close()
            await tablet.close()
        }
    }

    @Test(arguments: TestStore.allCases)
    func `several users: those who have no account are named`(_ store: TestStore) async throws {
        try await withServer(store: store) { server in
            let api = try await APIClient(server)
            let messenger = try server.messenger()
            for index in 1...70 {
                _ = try await messenger.accounts.createAccount(nickName: "user\(index)", password: "secret1")
            }
            let names = (1...70).map { "\"user\($0)\"" }.joined(separator: ",")
            let body = #"{"to":{"users":[\#(names),"nobody",1]},"title":"x"}"#
            let answer = try await api.send("POST", "/v1/push", body)
            #expect(answer.status == 202)
            #expect(answer.body["recipients"]?.integer == 70)
            #expect(answer.body["unknown"]?.array == ["nobody"])
            #expect(answer.body["unknown_count"]?.integer == 1)
            for index in 1...70 {
                let user = try #require(UserID(index))
                while try await messenger.messageStore.position(of: user).head == 0 { await Task.yield() }
                #expect(try await messenger.messageStore.position(of: user).head == 1)
            }
            #expect(try await api.send("POST", "/v1/push", #"{"to":{"user":"nobody"},"title":"x"}"#).status == 404)
            #expect(try await api.send("POST", "/v1/push", #"{"to":{"users":["nobody"]},"title":"x"}"#).status == 404)
        }
    }

    @Test
    func `everyone gets it, also where the server stops right after it was accepted`() async throws {
        try await withServer(store: .sqlite) { server in
            let api = try await APIClient(server)
            for index in 1...12 {
                _ = try await server.messenger().accounts.createAccount(nickName: "user\(index)", password: "secret1")
            }
            let body = #"{"to":{"everyone":true},"title":"x"}"#
            #expect(try await api.send("POST", "/v1/push", body).status == 202)
            try await server.restart()
            let store = try server.messenger().messageStore
            for index in 1...12 {
                let user = try #require(UserID(index))
                while try await store.position(of: user).head == 0 { await Task.yield() }
                #expect(try await store.position(of: user).head == 1)
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `the same idempotency key gets the first answer; other content is a conflict`(_ store: TestStore) async throws
    {
        try await withServer(store: store) { server in
            let api = try await APIClient(server)
            _ = try await server.messenger().accounts.createAccount(nickName: "ann", password: "secret1")
            let key = [("Idempotency-Key", "order-7")]
            for target in [#"{"user":"ann"}"#, #"{"topic":{"name":"a"}}"#, #"{"room":"lobby"}"#] {
                let key = [("Idempotency-Key", "order-\(target.utf8.count)")]
                let body = #"{"to":\#(target),"title":"x"}"#
                let first = try await api.send("POST", "/v1/push", body, headers: key)
                let again = try await api.send("POST", "/v1/push", body, headers: key)
                #expect(first.status == 202)
                #expect(first.headers["idempotency-replayed"] == nil)
                #expect(again.body == first.body)
                #expect(again.headers["idempotency-replayed"] == "true")
                let other = #"{"to":\#(target),"title":"y"}"#
                #expect(try await api.send("POST", "/v1/push", other, headers: key).status == 409)
            }
            let user = try #require(UserID(1))
            #expect(try await server.messenger().messageStore.position(of: user).head == 1)
            let other = try await APIClient(server)
            let body = #"{"to":{"user":"ann"},"title":"z"}"#
            #expect(try await other.send("POST", "/v1/push", body, headers: key).status == 202)
            let bad = try await api.send("POST", "/v1/push", body, headers: [("Idempotency-Key", "ä")])
            #expect(bad.status == 400)
        }
    }

    @Test
    func `a topic's pushes are numbered, and the last is retained where that is asked`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            for _ in 1...3 {
                let body = #"{"to":{"topic":{"name":"news","retain":true}},"title":"News"}"#
                #expect(try await api.send("POST", "/v1/push", body).status == 202)
            }
            let retained = try await api.send("GET", "/v1/topics/retained?topic=news").body["text"]?.string
            let push = try JSONParser.parse(Array(try #require(retained).utf8))
            #expect(push["title"]?.string == "News")
            #expect(push["topic"]?.string == "news")
            #expect(push["topicSeq"]?.string == "3")
        }
    }

    @Test
    func `who is in a room hears it; who is removed does not`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let client = try Self.client(server, device: "phone")
            _ = try await client.logIn(.register(nickName: "ann", password: "secret1"))
            let events = client.ephemeralEvents
            _ = try await client.enterRoom("lobby", as: RoomUser(name: "ann"))
            #expect(
                try await api.send("GET", "/v1/rooms").body["rooms"]?.array?.first?["name"]?.string == "lobby"
            )
            let said = try await api.send("POST", "/v1/rooms/lobby/messages", #"{"text":"hi","name":"shop"}"#)
            #expect(said.body["members"]?.integer == 1)
            let pushed = try await api.send("POST", "/v1/push", #"{"to":{"room":"lobby"},"title":"A","body":"B"}"#)
            #expect(pushed.body["recipients"]?.integer == 1)
            for more in [#""data":{"a":1}"#, #""ttl_seconds":60"#, #""priority":"high""#, #""collapse_key":"k""#] {
                let body = #"{"to":{"room":"lobby"},"body":"never",\#(more)}"#
                #expect(try await api.send("POST", "/v1/push", body).status == 422, "a room cannot carry it")
            }
            #expect(try await api.send("POST", "/v1/push", #"{"to":{"room":"lobby"}}"#).status == 422)
            var heard: [String] = []
            for await event in events {
                switch event.room?.kind {
                case .text(let text): heard.append(text)
                case .notice(let text): heard.append(text)
                default: break
                }
                if heard.count == 2 { break }
            }
            #expect(heard == ["hi", "[A] B"])
            #expect(try await api.send("DELETE", "/v1/rooms/lobby/members/ann").status == 204)
            for await event in events {
                if case .kicked = event.room?.kind { break }
            }
            #expect(try await api.send("DELETE", "/v1/rooms/lobby/members/ann").status == 404)
            #expect(try await api.send("GET", "/v1/rooms").body["rooms"]?.array?.isEmpty == true)
            await client.close()
        }
    }
}
