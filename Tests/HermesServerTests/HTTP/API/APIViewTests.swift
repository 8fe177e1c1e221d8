// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesTestKit
import HermesWire
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite("What the HTTP API shows of accounts, clients and the server", .inTurns, .timeLimit(.minutes(2)))
struct APIViewTests {
    private static let routes: [(method: String, path: String, scope: APIScope)] = [
        ("GET", "/v1/users/1/conversations", .messagesRead),
        ("GET", "/v1/messages/x/trace", .traceRead),
        ("GET", "/v1/mqtt/clients", .clientsRead),
        ("DELETE", "/v1/mqtt/clients/1", .clientsWrite),
        ("GET", "/v1/stats/figures", .statsRead),
        ("GET", "/v1/administrators", .auditRead),
        ("GET", "/v1/audit", .auditRead),
    ]

    private static func users(_ names: [String], _ api: APIClient) async throws {
        for name in names {
            let made = try await api.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"secret1"}"#)
            #expect(made.status == 201)
        }
    }

    private static func say(_ text: String, from: String, to: String, _ api: APIClient) async throws -> JSON {
        let body = #"{"to":{"user":"\#(to)"},"text":"\#(text)"}"#
        let answer = try await api.send("POST", "/v1/users/\(from)/messages", body)
        #expect(answer.status == 201)
        return answer.body
    }

    @Test
    func `each route needs its own scope, and no other`() async throws {
        try await withServer { server in
            for (method, path, scope) in Self.routes {
                let without = try await APIClient(server, scopes: Set(APIScope.allCases).subtracting([scope]))
                #expect(try await without.send(method, path).status == 403, "\(path)")
                let with = try await APIClient(server, scopes: [scope])
                #expect([200, 404].contains(try await with.send(method, path).status), "\(path)")
                var nobody = with
                nobody.key = ""
                #expect(try await nobody.send(method, path).status == 401, "\(path)")
            }
        }
    }

    @Test
    func `limits, places and numbers that cannot be are refused, whatever they are`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            try await Self.users(["ann"], api)
            let long = String(repeating: "9", count: 400)
            for path in [
                "users/ann/conversations?limit=0", "users/ann/conversations?limit=1001",
                "users/ann/conversations?limit=-1", "users/ann/conversations?limit=\(long)",
                "users/ann/conversations?limit=1e3", "users/ann/conversations?after=",
                "users/ann/conversations?after=7", "users/ann/conversations?after=user:0",
                "users/ann/conversations?after=user:2147483648", "users/ann/conversations?after=user:\(long)",
                "users/ann/conversations?after=room:1", "users/ann/conversations?after=user:1%27%20OR%201",
                "users/ann/conversations?after=user:1&after=user:2", "users/ann/conversations?offset=1",
                "mqtt/clients?limit=0", "mqtt/clients?limit=201", "mqtt/clients?after=-1", "mqtt/clients?after=\(long)",
                "mqtt/clients?text=", "mqtt/clients?text=\(long)", "messages/\(long)/trace", "audit?limit=0",
                "audit?limit=201", "audit?before=0", "audit?before=\(long)", "audit?who=olga", "administrators?role=x",
                "stats/figures?span=year", "stats/figures?after_ms=-1", "stats/figures?after_ms=\(long)",
                "stats/figures?figure=", "stats/figures?figure=\(long)", "stats/figures?figure=typo",
                "stats/figures?figure=memory.resident&figure=typo",
            ] {
                let answer = try await api.send("GET", "/v1/" + path)
                #expect(answer.status == 400, "\(path.prefix(80)): \(answer.status)")
            }
            for bad in ["0", "-1", "x", "01x", "99999999999999999999", long] {
                #expect(try await api.send("DELETE", "/v1/mqtt/clients/\(bad)").status == 400, "\(bad.prefix(30))")
            }
            let highest = "\(Int64.max)"
            for path in [
                "users/ann/conversations?after=group:2147483647", "mqtt/clients?after=\(highest)",
                "audit?before=\(highest)", "stats/figures?span=month&after_ms=\(highest)", "stats/figures?after_ms=0",
            ] {
                #expect(try await api.send("GET", "/v1/" + path).status == 200, "\(path)")
            }
            #expect(try await api.send("DELETE", "/v1/mqtt/clients/\(UInt64.max)").status == 404)
            #expect(try await api.send("GET", "/v1/users/nobody/conversations").status == 404)
            #expect(try await api.send("GET", "/v1/messages/%00%27%3Cb%3E/trace").status == 404)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `conversations are listed with what is unread, page by page`(_ store: TestStore) async throws {
        try await withServer(store: store) { server in
            let api = try await APIClient(server)
            try await Self.users(["ann", "bob", "cleo"], api)
            for text in ["1", "2"] { _ = try await Self.say(text, from: "bob", to: "ann", api) }
            _ = try await Self.say("secret words", from: "ann", to: "cleo", api)
            let ann = try #require(try await server.messenger().accounts.account(.nickName(NickName("ann"))))
            let bob = try #require(try await server.messenger().accounts.account(.nickName(NickName("bob"))))
            let device = try #require(DeviceID("phone"))
            _ = try await server.messenger().groups.apply(
                .create(name: "friends", members: [ann.id]),
                by: Principal(user: bob.id, nickName: bob.nickName, device: device)
            )
            let all = try await api.send("GET", "/v1/users/ann/conversations")
            let found = try #require(all.body["conversations"]?.array)
            #expect(found.map { $0["name"]?.string } == ["bob", "cleo", "friends"])
            #expect(found.map { $0["unread"]?.integer } == [2, 0, 0])
            #expect(found.map { $0["last_seq"]?.integer } == [2, 1, 0])
            #expect(found.map { $0["read_seq"]?.integer } == [0, 0, 0])
            #expect(found[0]["user"]?.integer == Int64(bob.id.rawValue) && found[2]["group"]?.integer == 1)
            #expect(found[0]["last_message_at_ms"]?.integer ?? 0 > 0 && found[2]["last_message_at_ms"] == nil)
            #expect(all.body["next"] == nil && !all.body.text.contains("secret words"))
            // The pages together contain each name once.
            var names: [String] = []
            var after = ""
            for _ in 0..<9 {
                let page = try await api.send("GET", "/v1/users/ann/conversations?limit=1\(after)")
                names += page.body["conversations"]?.array?.compactMap { $0["name"]?.string } ?? []
                guard let next = page.body["next"]?.string else { break }
                after = "&after=\(next)"
            }
            #expect(names == ["bob", "cleo", "friends"])
            let mark = InboxRequest.markRead(.direct(between: ann.id, and: bob.id), upTo: 1)
            _ = try await server.messenger().inbox.answer(mark, for: ann.id)
            let again = try await api.send("GET", "/v1/users/ann/conversations?limit=1")
            let first = again.body["conversations"]?.array?.first
            #expect(first?["unread"]?.integer == 1 && first?["read_seq"]?.integer == 1)
        }
    }

    @Test
    func `connected clients are listed, searched and disconnected`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            try await Self.users(["ann"], api)
            let lamp = try server.mqtt(as: "ann", id: "Lamp")
            let meter = try server.mqtt(as: nil, id: "meter")
            for client in [lamp, meter] { _ = try await client.connect() }
            let all = try #require(try await api.send("GET", "/v1/mqtt/clients").body["clients"]?.array)
            #expect(Set(all.compactMap { $0["client_id"]?.string }) == ["Lamp", "meter"])
            let page = try await api.send("GET", "/v1/mqtt/clients?limit=1").body["clients"]?.array
            let first = try #require(page?.first?["number"]?.integer)
            let rest = try await api.send("GET", "/v1/mqtt/clients?limit=200&after=\(first)").body["clients"]?.array
            #expect(page?.count == 1 && rest?.count == 1 && rest?.first?["number"]?.integer ?? 0 > first)
            let found = try await api.send("GET", "/v1/mqtt/clients?text=lAM").body["clients"]?.array
            #expect(found?.count == 1 && found?.first?["owner"]?.string == "ann")
            let number = try #require(found?.first?["number"]?.integer)
            let ended = try await api.send("DELETE", "/v1/mqtt/clients/\(number)")
            #expect(ended.status == 200 && ended.body["client_id"]?.string == "Lamp")
            for await state in lamp.states {
                guard case .stopped(let reason) = state else { continue }
                #expect("\(String(describing: reason))".contains("operator"), "\(state)")
                break
            }
            #expect(try await api.send("DELETE", "/v1/mqtt/clients/\(number)").status == 404)
            for client in [lamp, meter] { await client.close() }
        }
    }

    @Test
    func `the way of a message is told by its id and its client id, without its content`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            try await Self.users(["ann", "bob"], api)
            let body = #"{"to":{"user":"bob"},"text":"secret words","client_id":"order/7"}"#
            let id = try await api.send("POST", "/v1/users/ann/messages", body).body["message_id"]?.string
            for path in ["/v1/messages/\(id ?? "")/trace", "/v1/messages/order%2F7/trace"] {
                let answer = try await api.send("GET", path)
                #expect(answer.status == 200, "\(path)")
                let message = answer.body["messages"]?.array?.first
                #expect(message?["id"]?.string == id && message?["client_id"]?.string == "order/7")
                #expect(message?["steps"]?.array?.prefix(2).map { $0["step"]?.string } == ["accepted", "committed"])
                #expect(!answer.body.text.contains("secret words"))
            }
            _ = try await api.send("POST", "/v1/push", #"{"to":{"user":"bob"},"title":"a"}"#)
            #expect(try await api.send("GET", "/v1/messages/00000000000000000000000001/trace").status == 404)
        }
    }

    @Test
    func `administrators and their log are read without any secret`() async throws {
        try await withServer(store: .sqlite) { server in
            let api = try await APIClient(server)
            #expect(try await api.send("GET", "/v1/administrators").body["administrators"]?.array == [])
            let administrators = try server.assembly().administrators
            _ = try await administrators.create(name: "olga", role: .operator, password: "correct horse")
            let factor = try await administrators.newSecondFactor(of: AdministratorName("olga"))
            for number in 1...3 {
                await administrators.record(
                    AuditEvent(who: "olga", address: "::1", action: "closeRoom", target: "r\(number)", result: "done")
                )
            }
            let listed = try await api.send("GET", "/v1/administrators").body
            let olga = try #require(listed["administrators"]?.array?.first)
            #expect(olga["name"]?.string == "olga" && olga["role"]?.string == "operator")
            #expect(olga["second_factor"]?.boolean == true && olga["last_login_at_ms"] == nil)
            for secret in [factor.secret, "horse", "argon2", "scrypt", "$"] + factor.recovery {
                #expect(!listed.text.contains(secret))
            }
            let entries = try #require(try await api.send("GET", "/v1/audit?limit=2").body["entries"]?.array)
            #expect(entries.map { $0["target"]?.string } == ["r3", "r2"])
            let last = try #require(entries.last?["id"]?.integer)
            let earlier = try await api.send("GET", "/v1/audit?before=\(last)").body["entries"]?.array
            #expect(earlier?.map { $0["target"]?.string } == ["r1"])
        }
    }

    @Test
    func `the figures of the API are those of the console`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let figures = try #require(try server.assembly().figures)
            while figures.history.recent.newest == nil {
                try Task.checkCancellation()
                await Task.yield()
            }
            let hour = try await api.send("GET", "/v1/stats/figures").body
            #expect(hour["interval_ms"]?.integer == FigureHistory.interval && hour["maxima"] == nil)
            for name in figures.history.names { #expect(hour["figures"]?[name]?.array?.isEmpty == false, "\(name)") }
            let refused = try await api.send("GET", "/v1/stats/figures?figure=nonsense")
            #expect(refused.body["detail"]?.string?.contains("\"nonsense\"") == true)
            let path = "/v1/stats/figures?span=month&figure=memory.resident"
            let month = try await api.send("GET", path).body
            #expect(month["interval_ms"]?.integer == FigureHistory.thinInterval)
            for part in ["figures", "maxima"] {
                guard case .object(let members) = month[part] else {
                    Issue.record("no \(part)")
                    return
                }
                #expect(members.map(\.name) == ["memory.resident"])
                #expect(members.first?.value.array?.last != .null)
            }
        }
    }

    @Test
    func `without a console and a control socket, the API alone has the figures kept`() async throws {
        // With the memory store, there is neither a console nor a control socket.
        try await withServer(store: .memory) { server in
            let figures = try server.assembly().figures
            #expect(figures != nil)
        }
        let off: (inout ServerSettings) -> Void = { $0.api.isEnabled = false }
        try await withServer(store: .memory, configure: off) { server in
            let figures = try server.assembly().figures
            #expect(figures == nil)
        }
    }
}
