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
            #expect(refused.status == 413 && refused.body["code"]?.integer == 2006)
            #expect(try await client.send("GET", "/v1/users/\(long)").status == 404)
        }
    }

    /// Requests with one text, each with the longest text that it accepts.
    private static let limited: [(path: String, body: @Sendable (String) -> String, bytes: Int, success: Int)] = [
        ("/v1/users/ann/messages", { #"{"to":{"user":"ann"},"text":"hi","client_id":"\#($0)"}"# }, 64, 201),
        ("/v1/rooms/lobby/messages", { #"{"text":"\#($0)"}"# }, 4_096, 202),
        ("/v1/rooms/lobby/messages", { #"{"text":"hi","name":"\#($0)"}"# }, 256, 202),
        ("/v1/topics/publish", { #"{"topic":"\#($0)","payload":{"text":"hi"}}"# }, 65_535, 202),
        ("/v1/topics/publish", { #"{"topic":"a","content_type":"\#($0)","payload":{"text":""}}"# }, 65_535, 202),
    ]

    @Test
    func `a text may have as many bytes as in every other protocol`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            try await client.send("POST", "/v1/users", #"{"nick_name":"ann","password":"secret1"}"#)
            let uuid = #"{"to":{"user":"ann"},"text":"hi","client_id":"123e4567-e89b-12d3-a456-426614174000"}"#
            #expect(try await client.send("POST", "/v1/users/ann/messages", uuid).status == 201)
            for (path, body, bytes, success) in Self.limited {
                // These texts have characters of one byte and of two bytes.
                let ascii = String(repeating: "x", count: bytes)
                let accented = String(repeating: "é", count: bytes / 2) + (bytes % 2 > 0 ? "x" : "")
                for text in [ascii, accented] {
                    let taken = try await client.send("POST", path, body(text))
                    #expect(taken.status == success, "\(body("")): \(taken.body.text.prefix(200))")
                    let refused = try await client.send("POST", path, body(text + "x"))
                    #expect(refused.status == 413, "\(body("")): \(refused.status)")
                    #expect(refused.body["code"]?.integer == 2006, "\(body(""))")
                }
            }
            // A device name that is too long is cut.
            let token = #"{"device_id":"phone","device_name":"\#(String(repeating: "n", count: 100))"}"#
            #expect(try await client.send("POST", "/v1/users/ann/tokens", token).status == 201)
            let devices = try await client.send("GET", "/v1/users/ann/devices").body["devices"]?.array
            #expect(devices?.map { $0["name"]?.string } == [String(repeating: "n", count: 64)])
        }
    }

    @Test
    func `what is too long in a path or a query has the number of what is too long`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            try await client.send("POST", "/v1/users", #"{"nick_name":"ann","password":"secret1"}"#)
            let long = String(repeating: "x", count: 65)
            for (method, path) in [
                ("DELETE", "/v1/users/ann/devices/\(long)"), ("DELETE", "/v1/rooms/\(long)/members/ann"),
                ("GET", "/v1/messages/\(long)/trace"), ("GET", "/v1/rooms?after=\(long)"),
                ("GET", "/v1/users/" + String(repeating: "x", count: 258)),
            ] {
                let answer = try await client.send(method, path)
                #expect(answer.status == 400, "\(path)")
                #expect(answer.body["code"]?.integer == 2006, "\(path)")
            }
            let none = try await client.send("DELETE", "/v1/users/ann/devices/a%20b")
            #expect(none.status == 400 && none.body["code"]?.integer == 2001)
        }
    }

    @Test
    func `the document gives the bytes as the most characters, and names them`() {
        let schema = APISchema.object([APISchema.Field("id", .text(bytes: 1...64), "Its id.")])
        let field = schema.document["properties"]?["id"]
        #expect(field?["type"]?.string == "string")
        #expect(field?["minLength"]?.integer == 1 && field?["maxLength"]?.integer == 64)
        #expect(field?["description"]?.string == "Its id. At most 64 bytes of UTF-8.")
    }

    @Test
    func `a text may be empty, but must be given`() async throws {
        let keeping: (inout ServerSettings) -> Void = { $0.store.historyPeriod = .seconds(86_400) }
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
            // A JSON number is never read as a name.
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
        // No account can have this name.
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
