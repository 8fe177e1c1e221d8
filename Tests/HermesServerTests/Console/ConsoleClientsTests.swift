// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import Hermes
import HermesTestKit
import HermesWire
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(2))) struct ConsoleClientsTests {
    private func array(_ name: String, _ path: String, _ probe: ConsoleProbe) async throws -> [JSON] {
        let answer = try await probe.send("GET", path)
        #expect(answer.status == 200, "\(path): \(answer.text)")
        return try #require(try JSONParser.parse(Array(answer.text.utf8))[name]?.array)
    }

    private func addUser(_ name: String, _ server: TestServer) async throws {
        _ = try await server.messenger().accounts.createAccount(nickName: name, password: "secret1")
    }

    @Test
    func `connected MQTT clients are listed page by page, searched, and disconnected with a reason`() async throws {
        try await withServer(store: .sqlite) { server in
            try await addUser("ann", server)
            let olga = try await ConsoleProbe(server, .operator)
            #expect(try await array("clients", "/clients", olga).isEmpty)
            let ann = try server.mqtt(as: "ann", id: "Lamp-<b>", keeps: true)
            _ = try await ann.connect()
            _ = try await ann.subscribe(to: "a/#", qos: .atLeastOnce)
            var others: [MQTTClient] = []
            for number in 0..<7 {
                let client = try server.mqtt(as: nil, id: "meter-\(number)")
                _ = try await client.connect()
                others.append(client)
            }
            // The pages together contain each client once.
            var seen: [String] = []
            var after: Int64 = 0
            while true {
                try Task.checkCancellation()
                let page = try await array("clients", "/clients?limit=3&after=\(after)", olga)
                guard let last = page.last?["number"]?.integer else { break }
                #expect(page.count <= 3 && last > after)
                after = last
                seen += page.compactMap { $0["client_id"]?.string }
            }
            #expect(seen.sorted() == ["Lamp-<b>"] + (0..<7).map { "meter-\($0)" })
            let found = try await array("clients", "/clients?text=LAMP", olga)
            let lamp = try #require(found.first)
            #expect(found.count == 1 && lamp["owner"]?.string == "ann" && lamp["version"]?.string == "MQTT 5.0")
            #expect(lamp["address"]?.string == "127.0.0.1" && lamp["listener"]?.string == "mqtt")
            #expect(lamp["subscriptions"]?.integer == 1 && lamp["kept"]?.boolean == true)
            #expect(try await array("clients", "/clients?text=ann", olga).count == 1)
            #expect(
                try await array("clients", "/clients?text=\(String(repeating: "x", count: 256))", olga).isEmpty
            )

            let number = try #require(lamp["number"]?.integer)
            #expect(try await olga.send("DELETE", "/clients/\(number)").status == 200)
            for await state in ann.states {
                guard case .stopped(let reason) = state else { continue }
                #expect("\(String(describing: reason))".contains("operator"), "\(state)")
                break
            }
            #expect(try await olga.send("DELETE", "/clients/\(number)").status == 404)
            for bad in ["0", "-1", "x", "99999999999999999999"] {
                #expect(try await olga.send("DELETE", "/clients/\(bad)").status == 400, "\(bad)")
            }
            for bad in ["limit=0", "limit=201", "after=-1", "text=\(String(repeating: "x", count: 257))"] {
                #expect(try await olga.send("GET", "/clients?\(bad)").status == 400, "\(bad)")
                #expect(try await olga.send("GET", "/sessions?\(bad)").status == 400, "\(bad)")
            }
            let log = try await server.assembly().administrators.auditLog(before: nil, limit: 9).map(\.event)
            let ended = log.filter { $0.action == "disconnectClient" && !$0.isRefused }
            #expect(ended.map(\.target) == ["\(number) Lamp-<b>"])
            for client in others + [ann] { await client.close() }
        }
    }

    @Test(arguments: [TestStore.sqlite])
    func `kept sessions are listed with what waits for them`(store: TestStore) async throws {
        try await withServer(store: store) { server in
            let olga = try await ConsoleProbe(server, .operator)
            let away = try server.mqtt(as: nil, id: "Away", keeps: true)
            _ = try await away.connect()
            _ = try await away.subscribe(to: "a", qos: .atLeastOnce)
            await away.close()
            let durable = try server.messenger().durable
            while durable.statistics.online > 0 {
                try Task.checkCancellation()
                await Task.yield()
            }
            let here = try server.mqtt(as: nil, id: "here", keeps: true)
            _ = try await here.connect()
            for _ in 0..<3 { try await here.publish("text", to: "a", qos: .atLeastOnce) }
            let all = try await array("sessions", "/sessions", olga)
            #expect(all.map { $0["client_id"]?.string } == ["Away", "here"])
            #expect(all.map { $0["online"]?.boolean } == [false, true])
            #expect(all.map { $0["queued"]?.integer } == [3, 0] && (all[0]["expires_at_ms"]?.integer ?? 0) > 0)
            #expect(try await array("sessions", "/sessions?text=AWA", olga).count == 1)
            let first = try #require(all.first?["number"]?.integer)
            #expect(try await array("sessions", "/sessions?after=\(first)", olga).count == 1)
            #expect(try await array("sessions", "/sessions?limit=1", olga).count == 1)
            #expect(try await array("sessions", "/sessions?text=%25", olga).isEmpty, "no pattern")
            await here.close()
        }
    }

    @Test
    func `a kept session is listed under the name that its account has now`() async throws {
        try await withServer(store: .sqlite) { server in
            try await addUser("Ann", server)
            let olga = try await ConsoleProbe(server, .operator)
            let ann = try server.mqtt(as: "ann", id: "lamp", keeps: true)
            _ = try await ann.connect()
            await ann.close()
            func owners(_ text: String) async throws -> [String?] {
                try await array("sessions", "/sessions?text=\(text)", olga).map { $0["owner"]?.string }
            }
            #expect(try await owners("ANN") == ["ann"])
            let accounts = try server.messenger().accounts
            let user = try #require(try await accounts.account(.nickName(NickName("ann")))).id
            _ = try await accounts.changeProfile(of: user, nickName: "Zoe", avatarURL: nil)
            #expect(try await owners("ann").isEmpty)
            #expect(try await owners("zo") == ["zoe"])
        }
    }

    @Test
    func `accounts are found by a part of their names, in either case and page by page`() async throws {
        try await withServer(store: .sqlite) { server in
            for name in ["Anna", "joanna", "Bob", "ÄNNE", "50%_off"] { try await addUser(name, server) }
            let viewer = try await ConsoleProbe(server, .viewer)
            func found(_ query: String) async throws -> [String] {
                try await array("users", "/search/users?\(query)", viewer).compactMap { $0["nick_name"]?.string }
            }
            #expect(try await found("text=ANN") == ["Anna", "joanna"])
            #expect(try await found("text=%C3%A4nn") == ["ÄNNE"])
            #expect(try await found("text=%25_") == ["50%_off"])
            #expect(try await found("text=%25o").isEmpty)
            #expect(try await found("text=%00").isEmpty)
            #expect(try await found("text=ann%00").isEmpty)
            #expect(try await found("text='%20OR%201%3D1").isEmpty)
            let first = try await viewer.send("GET", "/search/users?text=ann&limit=1").text
            let next = try #require(try JSONParser.parse(Array(first.utf8))["next"]?.integer)
            #expect(first.contains("Anna") && !first.contains("joanna"))
            #expect(try await found("text=ann&after=\(next)") == ["joanna"])
            #expect(try await viewer.send("GET", "/search/users?text=").status == 400)
            #expect(
                try await viewer.send("GET", "/search/users?text=\(String(repeating: "x", count: 257))").status == 400
            )
        }
    }

    @Test
    func `the last attempts of webhooks are shown, and an event is sent again under its id`() async throws {
        let backEnd = try await FakeEndpoint.start()
        let configure: (inout ServerSettings) -> Void = { $0.webhooks.url = backEnd.url + "/hook" }
        try await withServer(store: .sqlite, configure: configure) { server in
            let olga = try await ConsoleProbe(server, .operator)
            try await addUser("ann", server)
            let client = try HermesClient(
                .init(server: ServerAddress(port: server.port("delimited")), device: .init(id: "phone"))
            )
            _ = try await client.logIn(.password(nickName: "ann", password: "secret1"))
            _ = await backEnd.requests(1)
            var attempts: [JSON] = []
            while attempts.isEmpty {
                try Task.checkCancellation()
                attempts = try await array("attempts", "/webhooks", olga)
            }
            let attempt = attempts[0]
            #expect(attempt["type"]?.string == "online" && attempt["failure"] == .null && attempt["user"]?.integer == 1)
            #expect((200..<300).contains(attempt["status"]?.integer ?? 0) && attempt["attempt"]?.integer == 1)
            let id = try #require(attempt["event"]?.string)
            #expect(try await olga.send("POST", "/webhooks/\(id)/again").status == 202)
            let requests = await backEnd.requests(2)
            #expect(requests[1].headers["hermes-event-id"] == id && requests[1].body == requests[0].body)
            for unknown in ["x", "%00", "..%2F..", String(repeating: "x", count: 64)] {
                #expect(try await olga.send("POST", "/webhooks/\(unknown)/again").status == 404, "\(unknown)")
            }
            let tooLong = String(repeating: "x", count: 65)
            #expect(try await olga.send("POST", "/webhooks/\(tooLong)/again").status == 400)
            await client.close()
        }
        await backEnd.stop()
        try await withServer(store: .sqlite) { server in
            let olga = try await ConsoleProbe(server, .operator)
            #expect(try await olga.send("GET", "/webhooks").text.contains(#""enabled":false"#))
            #expect(try await olga.send("POST", "/webhooks/x/again").status == 404)
        }
    }
}
#endif
