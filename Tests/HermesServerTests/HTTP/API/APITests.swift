// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import Hermes
import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite("The HTTP API", .inTurns)
struct APITests {
    // MARK: What all routes share

    /// The scope of each route, by the route's id.
    private static let scopes: [String: APIScope?] = [
        "getDocument": nil,
        "push": .push, "sendCommand": .push,
        "listUsers": .usersRead, "getUser": .usersRead, "listDevices": .usersRead, "listTokens": .usersRead,
        "listInvitations": .usersRead,
        "createUser": .usersWrite, "changeUser": .usersWrite, "deleteUser": .usersWrite, "removeDevice": .usersWrite,
        "createInvitation": .usersWrite, "revokeInvitation": .usersWrite,
        "issueToken": .tokensWrite, "revokeTokens": .tokensWrite,
        "readMessages": .messagesRead, "listConversations": .messagesRead, "sendMessage": .messagesWrite,
        "listRooms": .roomsRead, "sayInRoom": .roomsWrite, "removeFromRoom": .roomsWrite,
        "getRetained": .topicsRead, "publish": .topicsWrite, "deleteRetained": .topicsWrite,
        "getFigures": .statsRead, "getDeliveryStatistics": .statsRead, "getDeliverySeries": .statsRead,
        "streamEvents": .eventsRead, "traceMessage": .traceRead,
        "listClients": .clientsRead, "disconnectClient": .clientsWrite,
        "listAdministrators": .auditRead, "listAudit": .auditRead,
    ]

    @Test
    func `every route asks for a key, and for its scope`() async throws {
        try await withServer { server in
            var client = try await APIClient(server, scopes: [.statsRead])
            let scopes = Dictionary(uniqueKeysWithValues: client.routes.map { ($0.id, $0.scope) })
            #expect(scopes == Self.scopes)
            for route in client.routes where route.scope != nil {
                let path =
                    "/v1"
                    + route.path.replacing("{user}", with: "1").replacing("{device_id}", with: "d")
                    .replacing("{room}", with: "lobby")
                let forbidden = try await client.send(route.method.rawValue, path)
                #expect(forbidden.status == (route.scope == .statsRead ? forbidden.status : 403), "\(route.id)")
            }
            let key = client.key
            for wrong in ["", "hk_", "hk_nonsense", String(key.dropLast()), key + "A", key.lowercased()] {
                client.key = wrong
                let answer = try await client.send("POST", "/v1/push", "{}")
                #expect(answer.status == 401)
                #expect(answer.headers["www-authenticate"] != nil)
            }
        }
    }

    @Test
    func `a key that was revoked does nothing more`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            #expect(try await client.send("GET", "/v1/users").status == 200)
            let keys = try #require(try server.assembly().api).core.keys
            let key = try #require(try await keys.keys().first)
            #expect(key.lastUsedAt != nil)
            try await keys.revoke(name: key.name)
            #expect(try await client.send("GET", "/v1/users").status == 401)
        }
    }

    @Test
    func `unknown paths are 404, other methods 405 with Allow`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            #expect(try await client.send("GET", "/v1/nothing").body["code"]?.integer == 2002)
            #expect(try await client.send("GET", "/v1/users/1/nothing").status == 404)
            let answer = try await client.send("DELETE", "/v1/users")
            #expect(answer.status == 405)
            #expect(answer.headers["allow"] == "GET, POST")
        }
    }

    @Test
    func `what is not JSON, not what the document says, or too large is refused with words that help`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            let cases: [(String, Int, String)] = [
                ("", 400, "not JSON"), ("{", 400, "not JSON"), (#"{"to":1,"to":2}"#, 400, "is a duplicate"),
                ("[1]", 422, "must be an object"), ("{}", 422, "to is missing"),
                (#"{"to":{"user":"a"},"titel":"x"}"#, 422, "titel is unknown"),
                (#"{"to":{"user":"a","room":"b"}}"#, 422, "exactly one of"),
                (#"{"to":{"user":true}}"#, 422, "to.user must be"),
                (#"{"to":{"user":1.5}}"#, 422, "to.user must be"),
                (#"{"to":{"everyone":false},"title":"a"}"#, 422, "must be true"),
                (#"{"to":{"everyone":true},"title":7}"#, 422, "title must be a text, but is a number"),
                (#"{"to":{"everyone":true},"title":"a","ttl_seconds":0}"#, 422, "ttl_seconds must be"),
                (#"{"to":{"everyone":true}}"#, 422, "is empty"),
                (#"{"to":{"topic":{"name":"a/#"}},"title":"a"}"#, 422, "to.topic.name must be"),
            ]
            for (body, status, words) in cases {
                let answer = try await client.send("POST", "/v1/push", body)
                #expect(answer.status == status, "\(body)")
                #expect(answer.body["detail"]?.string?.contains(words) == true, "\(body): \(answer.body.text)")
            }
            let plain = try await client.send("POST", "/v1/push", "{}", headers: [("Content-Type", "text/plain")])
            #expect(plain.status == 415)
            let data = String(repeating: "x", count: 17_000)
            let large = try await client.send("POST", "/v1/push", #"{"to":{"everyone":true},"data":{"a":"\#(data)"}}"#)
            #expect(large.status == 413)
            // The body has all fields that the schema allows, and one more field.
            let user = #"{"nick_name":"y","password":"secret-6","extra":1}"#
            let extra = try await client.send("POST", "/v1/users", user)
            #expect(extra.status == 422)
            #expect(extra.body["detail"]?.string?.contains("extra is unknown") == true)
            #expect(try await client.send("GET", "/v1/users?limit=0").status == 400)
            #expect(try await client.send("GET", "/v1/users?wrong=1").status == 400)
            #expect(try await client.send("GET", "/v1/users?limit=1&limit=2").status == 400)
        }
    }

    @Test func `a key has a bound for what its rate does not see, above that rate`() async throws {
        let limited: (inout ServerSettings) -> Void = { $0.api = APISettings(requestsPerSecond: 1, burst: 5) }
        try await withServer(time: StandingTime(), configure: limited) { server in
            let client = try await APIClient(server)
            var scoped: [Int] = []
            for _ in 0..<6 { scoped.append(try await client.send("GET", "/v1/rooms").status) }
            #expect(scoped == [200, 200, 200, 200, 200, 429])
            var others: [Int] = []
            // Refusals by the port itself are plain text.
            for _ in 0..<40 {
                let headers = [("Authorization", "Bearer \(client.key)")]
                let answer = try await HTTPProbe.send("GET", "/v1/openapi.json", headers: headers, port: client.port)
                others.append(answer.status)
            }
            #expect(others.prefix(10).allSatisfy { $0 == 200 })
            #expect(others.contains(429))
        }
    }

    @Test func `a push to many names counts as many requests`() async throws {
        let limited: (inout ServerSettings) -> Void = { $0.api = APISettings(requestsPerSecond: 1, burst: 5) }
        try await withServer(time: StandingTime(), configure: limited) { server in
            let client = try await APIClient(server)
            let names = (0..<300).map { "\"nobody\($0)\"" }.joined(separator: ",")
            let none = try await client.send("POST", "/v1/push", #"{"to":{"users":[\#(names)]},"title":"x"}"#)
            #expect(none.status == 404)
            #expect(none.headers["ratelimit-limit"] == "5")
            #expect(none.headers["ratelimit-remaining"] == "1")
            #expect(none.headers["ratelimit-reset"] == "4")
            #expect(try await client.send("GET", "/v1/rooms").headers["ratelimit-remaining"] == "0")
            #expect(try await client.send("GET", "/v1/rooms").status == 429)
        }
    }

    @Test func `rooms come in pages, by name, and by a part of it`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            let member = try server.mqtt(as: nil, id: "member")
            try await member.connect()
            for name in ["b", "a", "Ab", "c"] { try await member.subscribe(to: "room/\(name)") }
            func list(_ query: String) async throws -> (names: [String], total: Int64?) {
                let body = try await client.send("GET", "/v1/rooms\(query)").body
                return (body["rooms"]?.array?.compactMap { $0["name"]?.string } ?? [], body["total"]?.integer)
            }
            #expect(try await list("") == (["Ab", "a", "b", "c"], 4))
            #expect(try await list("?limit=2") == (["Ab", "a"], 4))
            #expect(try await list("?limit=2&after=a") == (["b", "c"], 4))
            #expect(try await list("?after=c") == ([], 4))
            #expect(try await list("?text=B") == (["Ab", "b"], 2))
            await member.close()
        }
    }

    @Test
    func `a key that asks too often is told when to come back`() async throws {
        let limited: (inout ServerSettings) -> Void = { $0.api = APISettings(requestsPerSecond: 1, burst: 2) }
        try await withServer(time: StandingTime(), configure: limited) { server in
            let client = try await APIClient(server)
            let first = try await client.send("GET", "/v1/rooms")
            #expect(first.headers["ratelimit-limit"] == "2")
            #expect(first.headers["ratelimit-remaining"] == "1")
            var last = first
            for _ in 0..<5 where last.status == 200 { last = try await client.send("GET", "/v1/rooms") }
            #expect(last.status == 429)
            #expect(last.headers["retry-after"] == "1")
        }
    }

    @Test
    func `tokens come back with time, up to the burst, for each key apart`() {
        let limit = APIRateLimit(rate: 2, burst: 3)
        for remaining in [2, 1, 0] {
            let decision = limit.request(of: 1, now: .zero)
            #expect(decision.isAllowed)
            #expect(decision.remaining == remaining)
        }
        let refused = limit.request(of: 1, now: .milliseconds(100))
        #expect(!refused.isAllowed)
        #expect(refused.secondsToRetry == 1)
        #expect(refused.secondsToReset == 2)
        #expect(limit.request(of: 2, now: .milliseconds(100)).isAllowed)
        #expect(limit.request(of: 1, now: .milliseconds(600)).isAllowed)
        #expect(!limit.request(of: 1, now: .milliseconds(600)).isAllowed)
        #expect(limit.request(of: 1, now: .seconds(900)).remaining == 2)
    }

    @Test
    func `of very many keys, those that have not used up anything are forgotten, and no other`() {
        let limit = APIRateLimit(rate: 2, burst: 3)
        for key in Int64(1)...5_000 { #expect(limit.request(of: key, now: .zero).isAllowed) }
        #expect(limit.charge(1_000, to: 1)?.remaining == 0)
        #expect(limit.request(of: 5_001, now: .seconds(10)).isAllowed)
        #expect(limit.count == 2)
        #expect(!limit.request(of: 1, now: .seconds(10)).isAllowed)
        // An allowed request is charged even if its key was dropped in the meantime.
        #expect(limit.charge(1_000, to: 2)?.remaining == 0)
        #expect(!limit.request(of: 2, now: .seconds(11)).isAllowed)
    }

    @Test
    func `the API can be switched off`() async throws {
        let off: (inout ServerSettings) -> Void = { $0.api.isEnabled = false }
        try await withServer(configure: off) { server in
            let status = try await HTTPProbe.get("/v1/openapi.json", port: server.port("http")).status
            #expect(status == 404)
        }
    }

    @Test
    func `the document names every route, its statuses and what it takes`() async throws {
        try await withServer { server in
            var client = try await APIClient(server)
            client.key = ""
            let document = try await client.send("GET", "/v1/openapi.json").body
            #expect(document["openapi"]?.string == "3.1.0")
            for route in client.routes {
                let operation = document["paths"]?["/v1" + route.path]?[route.method.rawValue.lowercased()]
                #expect(operation?["operationId"]?.string == route.id)
                for status in route.allFailures + [route.success] {
                    #expect(operation?["responses"]?[String(status.code)] != nil, "\(route.id) \(status)")
                }
                #expect((operation?["requestBody"] != nil) == (route.body != nil))
                // The port's refusals before the API are plain text.
                #expect(operation?["responses"]?["431"]?["content"]?["text/plain"] != nil, "\(route.id)")
            }
            let long = "/v1/stats/figures?figure=" + String(repeating: "x", count: 9000)
            let refused = try await HTTPProbe.send("GET", long, port: server.port("http"))
            #expect(refused.status == 431)
            #expect(refused.headers["content-type"]?.hasPrefix("text/plain") == true)
            #expect(Set(client.routes.map(\.id)).count == client.routes.count)
        }
    }

    // MARK: Resources

    @Test(arguments: TestStore.allCases)
    func `accounts are made, read, changed and listed`(_ store: TestStore) async throws {
        try await withServer(store: store) { server in
            let client = try await APIClient(server)
            let made = try await client.send("POST", "/v1/users", #"{"nick_name":"Änne","password":"secret1"}"#)
            #expect(made.status == 201)
            let uid = try #require(made.body["uid"]?.integer)
            let again = try await client.send("POST", "/v1/users", #"{"nick_name":"änne","password":"secret1"}"#)
            #expect(again.status == 409)
            #expect(again.body["code"]?.integer == 1006)
            #expect(try await client.send("GET", "/v1/users/%C3%84nne").body["uid"]?.integer == uid)
            #expect(try await client.send("GET", "/v1/users/@%C3%84nne").body["uid"]?.integer == uid)
            #expect(try await client.send("GET", "/v1/users/\(uid)").body["nick_name"]?.string == "Änne")
            #expect(try await client.send("GET", "/v1/users/nobody").status == 404)
            let changed = try await client.send("PATCH", "/v1/users/\(uid)", #"{"nick_name":"Anna","disabled":true}"#)
            #expect(changed.body["nick_name"]?.string == "Anna")
            #expect(changed.body["disabled"]?.boolean == true)
            #expect(try await client.send("PATCH", "/v1/users/\(uid)", #"{"password":"x"}"#).status == 422)
            let listed = try await client.send("GET", "/v1/users?limit=1&after=0").body["users"]?.array
            #expect(listed?.count == 1)
            let token = try await client.send("POST", "/v1/users/Anna/tokens", #"{"device_id":"tv"}"#)
            #expect(token.status == 403, "the account is disabled")
        }
    }

    @Test
    func `a token lets a device in until it is revoked`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            try await client.send("POST", "/v1/users", #"{"nick_name":"ann","password":"secret1"}"#)
            let issued = try await client.send(
                "POST",
                "/v1/users/ann/tokens",
                #"{"device_id":"tv","device_name":"TV"}"#
            )
            #expect(issued.status == 201)
            let token = try #require(issued.body["token"]?.string)
            let device = try #require(DeviceID("tv"))
            let accounts = try server.messenger().accounts
            let description = DeviceDescription(id: device)
            _ = try await accounts.logIn(.token(token), device: description, address: nil)
            let devices = try await client.send("GET", "/v1/users/ann/devices").body["devices"]?.array
            #expect(devices?.compactMap { $0["device_id"]?.string } == ["tv"])
            let tokens = try await client.send("GET", "/v1/users/ann/tokens").body["tokens"]?.array
            #expect(tokens?.compactMap { $0["device_id"]?.string } == ["tv"])
            #expect(tokens?.first?["issued_at_ms"]?.integer ?? 0 > 0)
            #expect(try await client.send("DELETE", "/v1/users/ann/tokens").status == 204)
            await #expect(throws: HermesError.self) {
                try await accounts.logIn(.token(token), device: description, address: nil)
            }
            #expect(try await client.send("DELETE", "/v1/users/ann/devices/tv").status == 204)
            #expect(try await client.send("DELETE", "/v1/users/ann/devices/tv").status == 404)
        }
    }

    @Test
    func `messages are sent and read as one of those who take part`() async throws {
        let keeping: (inout ServerSettings) -> Void = { $0.store.historyPeriod = .seconds(86_400) }
        try await withServer(store: .sqlite, configure: keeping) { server in
            let client = try await APIClient(server)
            for name in ["ann", "bob"] {
                try await client.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"secret1"}"#)
            }
            let body = #"{"to":{"user":"bob"},"text":"hi \ud83d\ude00","client_id":"c1"}"#
            let sent = try await client.send("POST", "/v1/users/ann/messages", body)
            #expect(sent.status == 201)
            let again = try await client.send("POST", "/v1/users/ann/messages", body)
            #expect(again.body["duplicate"]?.boolean == true)
            let other = #"{"to":{"user":"bob"},"text":"other","client_id":"c1"}"#
            #expect(try await client.send("POST", "/v1/users/ann/messages", other).status == 409)
            let group = #"{"to":{"group":7},"text":"x"}"#
            #expect(try await client.send("POST", "/v1/users/ann/messages", group).status == 403)
            let read = try await client.send("GET", "/v1/users/bob/messages?with=ann").body["messages"]?.array
            #expect(read?.compactMap { $0["text"]?.string } == ["hi 😀"])
            #expect(try await client.send("GET", "/v1/users/bob/messages").status == 400)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `nothing is sent in the name of a disabled account, but an operator reads and changes it`(
        _ store: TestStore
    ) async throws {
        let keeping: (inout ServerSettings) -> Void = { $0.store.historyPeriod = .seconds(86_400) }
        try await withServer(store: store, configure: keeping) { server in
            let client = try await APIClient(server)
            for name in ["ann", "bob"] {
                try await client.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"secret1"}"#)
            }
            func write(_ text: String, from sender: String, to receiver: String) async throws -> APIClient.Answer {
                let body = #"{"to":{"user":"\#(receiver)"},"text":"\#(text)"}"#
                return try await client.send("POST", "/v1/users/\(sender)/messages", body)
            }
            #expect(try await write("before", from: "ann", to: "bob").status == 201)
            #expect(try await client.send("PATCH", "/v1/users/ann", #"{"disabled":true}"#).status == 200)
            let refused = try await write("during", from: "ann", to: "bob")
            #expect(refused.status == 403)
            #expect(refused.body["code"]?.integer == 1005)

            #expect(try await write("to ann", from: "bob", to: "ann").status == 201)
            for path in ["", "/messages?with=bob", "/conversations", "/devices", "/tokens"] {
                #expect(try await client.send("GET", "/v1/users/ann" + path).status == 200, "\(path)")
            }
            #expect(try await client.send("DELETE", "/v1/users/ann/tokens").status == 204)
            #expect(try await client.send("PATCH", "/v1/users/ann", #"{"disabled":false}"#).status == 200)
            #expect(try await write("after", from: "ann", to: "bob").status == 201)
            let read = try await client.send("GET", "/v1/users/ann/messages?with=bob").body["messages"]?.array
            #expect(read?.compactMap { $0["text"]?.string } == ["before", "to ann", "after"])
            #expect(try await client.send("PATCH", "/v1/users/ann", #"{"disabled":true}"#).status == 200)
            #expect(try await client.send("DELETE", "/v1/users/ann").status == 204)
        }
    }

    @Test
    func `what is published with retain can be read and removed`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            let body = #"{"topic":"a/b","payload":{"json":{"t":21.50}},"retain":true}"#
            #expect(try await client.send("POST", "/v1/topics/publish", body).status == 202)
            let read = try await client.send("GET", "/v1/topics/retained?topic=a/b")
            #expect(read.body["text"]?.string == #"{"t":21.50}"#)
            #expect(try await client.send("DELETE", "/v1/topics/retained?topic=a%2Fb").status == 204)
            #expect(try await client.send("GET", "/v1/topics/retained?topic=a/b").status == 404)
            let bytes = #"{"topic":"a/b","payload":{"base64":"/w=="},"retain":true,"qos":2}"#
            #expect(try await client.send("POST", "/v1/topics/publish", bytes).status == 202)
            #expect(try await client.send("GET", "/v1/topics/retained?topic=a/b").body["base64"]?.string == "/w==")
            let noText = #"{"topic":"a/c","payload":{"text":"x"},"retain":true,"content_type":"a\u0000b"}"#
            #expect(try await client.send("POST", "/v1/topics/publish", noText).status == 422)
            #expect(try await client.send("GET", "/v1/topics/retained?topic=a/c").status == 404)
            let reserved = #"{"topic":"hermes/v1/down","payload":{"text":""}}"#
            #expect(try await client.send("POST", "/v1/topics/publish", reserved).status == 422)
        }
    }
}

/// A stopped clock, so that the bucket gets no new tokens.
struct StandingTime: TimeSource {
    private let system = SystemTime()

    func now() -> Timestamp { system.now() }

    func uptime() -> Duration { .zero }
}
