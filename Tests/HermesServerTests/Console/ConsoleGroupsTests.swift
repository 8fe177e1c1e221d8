// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import HermesTestKit
import HermesWire
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ConsoleGroupsTests {
    /// Creates a group. Ann owns it; Bob and Cat are members.
    private func makeGroup(_ name: String, _ server: TestServer) async throws -> GroupID {
        let messenger = try server.messenger()
        var people: [Principal] = []
        for name in ["ann", "bob", "cat"] {
            let key = AccountKey.nickName(try NickName(name))
            var account = try await messenger.accounts.account(key)
            if account == nil {
                account = try await messenger.accounts.createAccount(nickName: name, password: "secret1")
            }
            let known = try #require(account)
            let device = try #require(DeviceID("phone"))
            people.append(Principal(user: known.id, nickName: known.nickName, device: device))
        }
        let members = people.dropFirst().map(\.user)
        return try await messenger.groups.apply(.create(name: name, members: members), by: people[0]).id
    }

    private func roles(_ group: GroupID, _ probe: ConsoleProbe) async throws -> [String: String] {
        let answer = try await probe.send("GET", "/groups/\(group.rawValue)")
        #expect(answer.status == 200, "\(answer.text)")
        let members = try #require(try JSONParser.parse(Array(answer.text.utf8))["members"]?.array)
        return Dictionary(
            members.compactMap { member in
                member["nick_name"]?.string.flatMap { name in member["role"]?.string.map { (name, $0) } }
            },
            uniquingKeysWith: { $1 }
        )
    }

    @Test
    func `groups are listed page by page, and found by a part of their names`() async throws {
        try await withServer(store: .sqlite) { server in
            let viewer = try await ConsoleProbe(server, .viewer)
            for name in ["<b>Garden", "kitchen", "GARDEN shed"] { _ = try await makeGroup(name, server) }
            let all = try await viewer.send("GET", "/groups")
            #expect(
                all.text.contains("<b>Garden") && all.text.contains(#""members":3"#)
                    && all.text.contains(#""next":null"#)
            )
            let found = try await viewer.send("GET", "/groups?text=garden").text
            #expect(found.contains("<b>Garden") && found.contains("GARDEN shed") && !found.contains("kitchen"))
            let first = try await viewer.send("GET", "/groups?limit=2").text
            #expect(first.contains("kitchen") && !first.contains("shed") && first.contains(#""next":2"#))
            let rest = try await viewer.send("GET", "/groups?limit=2&after=2").text
            #expect(rest.contains("shed") && rest.contains(#""next":null"#))
            for bad in ["text=", "limit=0", "limit=201", "after=-1", "text=\(String(repeating: "x", count: 257))"] {
                #expect(try await viewer.send("GET", "/groups?\(bad)").status == 400, "\(bad)")
            }
            for none in ["0", "-1", "99", "x", "99999999999999999999"] {
                #expect(try await viewer.send("GET", "/groups/\(none)").status == 404, "\(none)")
            }
        }
    }

    @Test
    func `members are removed, get other roles, and groups are dissolved, by the roles that may do so`() async throws {
        try await withServer(store: .sqlite) { server in
            let viewer = try await ConsoleProbe(server, .viewer)
            let olga = try await ConsoleProbe(server, .operator)
            let eve = try await ConsoleProbe(server, .administrator)
            let group = try await makeGroup("garden", server)
            let path = "/groups/\(group.rawValue)"
            #expect(try await roles(group, viewer) == ["ann": "owner", "bob": "member", "cat": "member"])

            let role = #"{"role":"administrator"}"#
            #expect(try await viewer.send("DELETE", "\(path)/members/bob").status == 403)
            #expect(try await olga.send("PATCH", "\(path)/members/bob", role).status == 403)
            #expect(try await olga.send("DELETE", path).status == 403)
            #expect(try await eve.send("PATCH", "\(path)/members/bob", role).status == 204)
            #expect(try await roles(group, viewer)["bob"] == "administrator")
            #expect(try await eve.send("PATCH", "\(path)/members/bob", #"{"role":"owner"}"#).status == 204)
            #expect(try await roles(group, viewer) == ["ann": "administrator", "bob": "owner", "cat": "member"])
            // No request can leave the group without an owner.
            #expect(try await eve.send("PATCH", "\(path)/members/bob", #"{"role":"member"}"#).status == 422)
            #expect(try await olga.send("DELETE", "\(path)/members/bob").status == 422)
            #expect(try await olga.send("DELETE", "\(path)/members/nobody").status == 404)
            #expect(try await eve.send("PATCH", "\(path)/members/cat", #"{"role":"king"}"#).status == 422)
            #expect(try await olga.send("DELETE", "\(path)/members/ann").status == 204)
            #expect(try await olga.send("DELETE", "\(path)/members/ann").status == 404)
            #expect(try await roles(group, viewer) == ["bob": "owner", "cat": "member"])
            // The members get events.
            let cat = try #require(try await server.messenger().accounts.account(.nickName(try NickName("cat"))))
            let answer = try await server.messenger().inbox.answer(.page(after: 0, limit: 20), for: cat.id)
            guard case .page(let page) = answer else { throw HermesError(.internalError, "not a page") }
            let kinds = page.entries.compactMap { entry -> GroupEvent.Kind? in
                if case .group(let event) = entry.event { event.kind } else { nil }
            }
            #expect(kinds == [.created, .changed, .changed, .membersRemoved])
            #expect(try await eve.send("DELETE", path).status == 204)
            #expect(try await eve.send("DELETE", path).status == 404)
            #expect(try await viewer.send("GET", path).status == 404)

            let log = try await server.assembly().administrators.auditLog(before: nil, limit: 30).map(\.event)
            let number = "\(group.rawValue)"
            #expect(log.contains { $0.action == "removeFromGroup" && $0.target == "\(number) ann" && !$0.isRefused })
            #expect(
                log.contains { $0.action == "changeRoleInGroup" && $0.target == "\(number) bob owner" && !$0.isRefused }
            )
            #expect(
                log.contains {
                    $0.action == "dissolveGroup" && $0.target == number && $0.who == "operator" && $0.isRefused
                }
            )
        }
    }
}
#endif
