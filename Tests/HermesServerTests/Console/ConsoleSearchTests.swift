// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import Hermes
import HermesTestKit
import HermesWire
import Logging
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ConsoleSearchTests {
    private func found(_ text: String, _ probe: ConsoleProbe) async throws -> [String] {
        let answer = try await probe.send("GET", "/search?text=\(text)")
        #expect(answer.status == 200, "\(text): \(answer.text)")
        let results = try #require(try JSONParser.parse(Array(answer.text.utf8))["results"]?.array)
        return results.map { "\($0["kind"]?.string ?? "") \($0["id"]?.string ?? "") \($0["title"]?.string ?? "")" }
    }

    @Test
    func `one text is found in all that the role may see, and in nothing else`() async throws {
        let configure: (inout ServerSettings) -> Void = { settings in
            settings.inForce = [ConfiguredValue(key: "lamp.colour", text: "lamp", origin: "default")]
        }
        try await withServer(store: .sqlite, configure: configure) { server in
            let messenger = try server.messenger()
            let ann = try await messenger.accounts.createAccount(nickName: "Lamp-<b>", password: "secret1")
            let phone = HermesCore.DeviceID("phone")
            let device = try #require(phone)
            let owner = Principal(user: ann.id, nickName: ann.nickName, device: device)
            let group = try await messenger.groups.apply(.create(name: "lamps", members: []), by: owner)
            let lamp = try server.mqtt(as: nil, id: "my-lamp", keeps: true)
            _ = try await lamp.connect()
            _ = try await lamp.subscribe(to: "room/lamproom", qos: .atLeastOnce)
            _ = try await server.assembly().core.keys.create(name: "lampkey", scopes: [.push])
            let olga = try await ConsoleProbe(server, .operator)
            let viewer = try await ConsoleProbe(server, .viewer)
            let body = #"{"topic":"lamp","payload":{"text":"x"},"retain":true}"#
            #expect(try await olga.send("POST", "/topics/publish", body).status == 202)

            let seen = ["account \(ann.id) Lamp-<b>", "group \(group.id.rawValue) lamps", "room lamproom lamproom"]
            let hidden = [
                "retained lamp lamp", "client my-lamp my-lamp", "session my-lamp my-lamp", "key lampkey lampkey",
                "setting lamp.colour lamp.colour",
            ]
            #expect(try await found("lamp", viewer) == seen)
            // The results also contain entries of the audit log and lines of the log. They have a separate test.
            let all = try await found("lamp", olga).filter { !$0.hasPrefix("audit ") && !$0.hasPrefix("log ") }
            #expect(all == seen + hidden)
            #expect(try await found("LAMP", viewer) == seen)
            #expect(try await found("%20lamp-%3Cb%3E%20", viewer) == [seen[0]])
            // A number finds an account and a group.
            #expect(try await found("\(ann.id)", viewer) == [seen[0], seen[1]])
            #expect(try await found("nothing-has-this", olga).isEmpty)
            #expect(try await found("%20", olga).isEmpty)
            #expect(try await ConsoleProbe(server).send("GET", "/search?text=lamp").status == 401)
            for bad in ["", "?text=", "?text=\(String(repeating: "x", count: 257))"] {
                #expect(try await olga.send("GET", "/search\(bad)").status == 400, "\(bad)")
            }
            await lamp.close()
        }
    }

    @Test
    func `of each kind ten are found, and the answer says where there are more; messages are found by both ids`()
        async throws
    {
        try await withServer(store: .sqlite) { server in
            let messenger = try server.messenger()
            for number in 0..<12 {
                _ = try await messenger.accounts.createAccount(nickName: "many\(number)", password: "secret1")
            }
            let olga = try await ConsoleProbe(server, .operator)
            let answer = try await olga.send("GET", "/search?text=many").text
            #expect(try await found("many", olga).count == 10 && answer.contains(#""more":["account"]"#))
            // The exact name comes first, regardless of how many names contain it.
            #expect(try await found("many11", olga) == ["account 12 many11"])
            #expect(try await found("many1", olga).first == "account 2 many1")

            let client = try HermesClient(
                .init(server: ServerAddress(port: server.port("delimited")), device: .init(id: "phone"))
            )
            let session = try await client.logIn(.register(nickName: "ann", password: "secret1"))
            let receipt = try await client.send("hi", to: .user(session.uid)).receipt()
            let id = "\(receipt.messageID)"
            #expect(try await found(id, olga) == ["message \(id) \(id)"])
            await client.close()
        }
    }

    @Test
    func `devices, invitations, administrators, audit entries and log lines are found, each by its role`() async throws
    {
        try await withServer(store: .sqlite) { server in
            let messenger = try server.messenger()
            let configuration = HermesClient.Configuration(
                server: ServerAddress(port: server.port("delimited")),
                device: .init(id: "Zebra-7", name: "the Striped one")
            )
            let client = try HermesClient(configuration)
            let uid = try await client.logIn(.register(nickName: "ann", password: "secret1")).uid
            await client.close()
            _ = try await messenger.accounts.invitations.create(name: "zebras", uses: 1, days: 0)
            let viewer = try await ConsoleProbe(server, .viewer)
            let olga = try await ConsoleProbe(server, .operator)
            let root = try await ConsoleProbe(server, .administrator)
            _ = try await server.assembly().administrators.create(
                name: "zebra-keeper",
                role: .viewer,
                password: ConsoleProbe.password
            )
            let refused = try await ConsoleProbe(server).logIn("zebra-thief", "a wrong password")
            #expect(refused.status == 401 || refused.status == 403)

            let seen = ["device \(uid) Zebra-7", "invitation zebras zebras"]
            #expect(try await found("zEBRa", viewer) == seen)
            #expect(try await found("striped", viewer) == [seen[0]])
            let operators = try await found("zebra", olga)
            #expect(Array(operators.prefix(2)) == seen)
            let entries = operators.filter { $0.hasPrefix("audit ") }
            #expect(entries.contains { $0.hasSuffix("zebra-thief: logIn") }, "\(operators)")
            #expect(!operators.contains { $0.hasPrefix("administrator ") })
            // The number identifies the entry in its view.
            let id = try #require(entries.first?.split(separator: " ").dropFirst().first.flatMap { Int64($0) })
            let page = try await olga.send("GET", "/audit?limit=1&before=\(id + 1)").text
            #expect(page.contains("zebra-thief"))
            let keeper = try await found("zebra-keeper", root)
            #expect(keeper.last == "administrator zebra-keeper zebra-keeper", "\(keeper)")
            #expect(try await found("administrator", viewer).isEmpty)
            #expect(try await found("logIn", viewer).isEmpty)

            let tail = try #require(try server.assembly().tail)
            tail.append(
                time: 1,
                level: .info,
                label: "hermes",
                message: "a Giraffe came",
                fields: [(key: "neck", value: "long-one")]
            )
            #expect(try await found("giraffe", olga) == ["log a Giraffe came a Giraffe came"])
            #expect(try await found("neck=LONG", olga) == ["log a Giraffe came a Giraffe came"])
            #expect(try await found("giraffe", viewer).isEmpty)
        }
    }

    @Test
    func `retained messages are found by a part of their topics, the whole one first`() async throws {
        try await withServer(store: .sqlite) { server in
            let olga = try await ConsoleProbe(server, .operator)
            let topics = ["attic", "attic/Lamp", "cellar/lamp"] + (0..<12).map { "hall/door-\($0)" }
            for topic in topics {
                let body = #"{"topic":"\#(topic)","payload":{"text":"x"},"retain":true}"#
                #expect(try await olga.send("POST", "/topics/publish", body).status == 202)
            }
            func retained(_ text: String) async throws -> [String] {
                try await found(text, olga).filter { $0.hasPrefix("retained ") }
                    .compactMap { $0.split(separator: " ").last.map { String($0) } }
            }
            #expect(try await retained("LAMP") == ["attic/Lamp", "cellar/lamp"])
            #expect(try await retained("attic") == ["attic", "attic/Lamp"])
            #expect(try await retained("cellar/lamp") == ["cellar/lamp"])
            #expect(try await retained("door").count == 10)
            #expect(try await olga.send("GET", "/search?text=door").text.contains(#""retained""#))
            // The exact topic comes first, regardless of how many topics contain it.
            #expect(try await retained("hall/door-1").first == "hall/door-1")
        }
    }

    @Test(arguments: ["text", "%74ext", "t%65x%74"])
    func `searches of a session have a rate, however the parameter's name is written`(name: String) async throws {
        try await withServer(store: .sqlite) { server in
            let viewer = try await ConsoleProbe(server, .viewer)
            var refused = 0
            for _ in 0..<60 {
                let status = try await viewer.send("GET", "/search?\(name)=x").status
                #expect(status == 200 || status == 429)
                if status == 429 { refused += 1 }
            }
            #expect(refused > 0)
            #expect(try await viewer.send("GET", "/overview").status == 200, "views are not limited")
        }
    }
}
#endif
