// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite("Texts in the HTTP API", .inTurns)
struct APITextTests {
    /// A name of 40 characters with 80 code points and 240 bytes.
    private static let name = String(repeating: "\u{915}\u{93F}", count: 40)

    private static func escaped(_ text: String) -> String {
        text.utf8.map { "%" + (String($0, radix: 16).count < 2 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test(arguments: TestStore.allCases)
    func `an account whose characters have many code points is made and found by its name`(
        _ store: TestStore
    ) async throws {
        try await withServer(store: store) { server in
            let client = try await APIClient(server)
            let made = try await client.send(
                "POST",
                "/v1/users",
                #"{"nick_name":"\#(Self.name)","password":"secret1"}"#
            )
            #expect(made.status == 201)
            let uid = try #require(made.body["uid"]?.integer)
            for text in [Self.name, "@" + Self.name] {
                let found = try await client.send("GET", "/v1/users/" + Self.escaped(text))
                #expect(found.body["uid"]?.integer == uid)
            }
            let push = #"{"to":{"user":"\#(Self.name)"},"title":"hello"}"#
            #expect(try await client.send("POST", "/v1/push", push).status == 202)
            let long = String(repeating: "a", count: 65)
            let refused = try await client.send("POST", "/v1/users", #"{"nick_name":"\#(long)","password":"secret1"}"#)
            #expect(refused.status == 422)
            #expect(try await client.send("GET", "/v1/users/\(long)").status == 404)
        }
    }

    @Test
    func `a text may be empty, but must be given`() async throws {
        let keeping: (inout ServerSettings) -> Void = { $0.historyDays = 1 }
        try await withServer(store: .sqlite, configure: keeping) { server in
            let client = try await APIClient(server)
            for name in ["ann", "bob"] {
                try await client.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"secret1"}"#)
            }
            let empty = #"{"to":{"user":"bob"},"text":""}"#
            #expect(try await client.send("POST", "/v1/users/ann/messages", empty).status == 201)
            for body in [#"{"to":{"user":"bob"}}"#, #"{"to":{"user":"bob"},"text":null}"#] {
                #expect(try await client.send("POST", "/v1/users/ann/messages", body).status == 422, "\(body)")
            }
            let read = try await client.send("GET", "/v1/users/bob/messages?with=ann").body["messages"]?.array
            #expect(read?.map { $0["text"]?.string } == [""])

            #expect(try await client.send("POST", "/v1/rooms/lobby/messages", #"{"text":""}"#).status == 202)
            #expect(try await client.send("POST", "/v1/rooms/lobby/messages", #"{"name":"ann"}"#).status == 422)
        }
    }

    @Test(arguments: ["99", "0", "-5", "2147483648", "99999999999999999999", #""0""#, #""2147483648""#])
    func `a uid that no account can have is answered like one that no account has`(uid: String) async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            // A number is never a name.
            for name in ["ann", "-5"] {
                try await client.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"secret1"}"#)
            }
            let message = #"{"to":{"user":\#(uid)},"text":"hi"}"#
            let push = #"{"to":{"user":\#(uid)},"title":"hi"}"#
            for (path, body) in [("/v1/users/ann/messages", message), ("/v1/push", push)] {
                let answer = try await client.send("POST", path, body)
                #expect(answer.status == 404, "\(path)")
                #expect(answer.body["code"]?.integer == 2002, "\(path)")
            }
            let some = #"{"to":{"users":["ann",\#(uid)]},"title":"hi"}"#
            #expect(try await client.send("POST", "/v1/push", some).body["unknown_count"]?.integer == 1)
        }
    }

    @Test
    func `a selector is as long as a name may be, with an @ before it`() {
        let name = "\u{301}bob"
        for text in ["", String(repeating: "x", count: 258)] { #expect(APIUserSelector(text) == nil) }
        for text in [Self.name, name, "@" + name] { #expect(APIUserSelector(text)?.key != nil, "\(text)") }
        #expect(APIUserSelector("@" + name)?.key == (try? NickName(name)).map(AccountKey.nickName))
        // There can be no account with this name.
        let long = APIUserSelector(String(repeating: "x", count: 257))
        #expect(long != nil && long?.key == nil)
    }

    @Test
    func `the filters of a key count for nobody who logs in`() {
        let key = APIKey(id: 1, name: "shop", scopes: [.eventsRead], createdAt: Timestamp(rawValue: 0))
        guard case .subject(let name) = APICore.payer(key) else {
            Issue.record("not a subject")
            return
        }
        #expect(throws: HermesError.self) { try NickName(name) }
    }
}
