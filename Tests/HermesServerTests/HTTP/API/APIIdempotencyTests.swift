// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite("Pushes to topics under a key", .inTurns, .timeLimit(.minutes(2)))
struct APIIdempotencyTests {
    private static let headers = [("Idempotency-Key", "order-7")]
    private static let id = MessageID(high: 1 << 40, low: 7).description
    private static let body = #"{"to":{"topic":{"name":"news","retain":true}},"title":"News"}"#

    /// The claim that the API makes for ``body``.
    private static func claim(_ server: TestServer, answer: String) async throws -> PushClaim {
        let keys = try await #require(try server.assembly().api).core.keys.keys()
        return PushClaim(
            owner: String(try #require(keys.first).id),
            key: "order-7",
            contentHash: Array(SHA256.hash(data: Array(body.utf8))),
            answer: Array(answer.utf8)
        )
    }

    private static func retained(_ api: APIClient) async throws -> JSON? {
        let text = try await api.send("GET", "/v1/topics/retained?topic=news").body["text"]?.string
        return try text.map { try JSONParser.parse(Array($0.utf8), maxValues: .max) }
    }

    @Test
    func `what a killed server had not done is done when it is asked again, once, with the id it had`() async throws {
        try await withServer(store: .sqlite) { server in
            let api = try await APIClient(server)
            let id = Self.id
            let claim = try await Self.claim(server, answer: #"{"id":"\#(id)"}"#)
            // The server was killed after this step.
            #expect(try await server.messenger().pushes.begin(claim) == .now(claim.answer))
            try await server.restart()
            #expect(try await Self.retained(api) == nil)

            let done = try await api.send("POST", "/v1/push", Self.body, headers: Self.headers)
            #expect(done.status == 202)
            #expect(done.headers["idempotency-replayed"] == nil)
            #expect(done.body["id"]?.string == id)
            #expect(try await Self.retained(api)?["id"]?.string == id)

            try await server.restart()
            #expect(try await api.send("DELETE", "/v1/topics/retained?topic=news").status == 204)
            let again = try await api.send("POST", "/v1/push", Self.body, headers: Self.headers)
            #expect(again.status == 202)
            #expect(again.headers["idempotency-replayed"] == "true")
            #expect(again.body["id"]?.string == id)
            #expect(try await Self.retained(api) == nil, "it is not published again")
        }
    }

    @Test
    func `while one is under way another is told so; one that failed may be tried again`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let pushes = try server.messenger().pushes
            let claim = try await Self.claim(server, answer: #"{"id":"\#(Self.id)"}"#)
            #expect(try await pushes.begin(claim) == .now(claim.answer))
            let refused = try await api.send("POST", "/v1/push", Self.body, headers: Self.headers)
            #expect(refused.status == 409)
            #expect(refused.headers["retry-after"] != nil)
            #expect(try await Self.retained(api) == nil)
            await pushes.end(claim, isDone: false)
            #expect(try await api.send("POST", "/v1/push", Self.body, headers: Self.headers).status == 202)
            #expect(try await Self.retained(api)?["title"]?.string == "News")
            let again = try await api.send("POST", "/v1/push", Self.body, headers: Self.headers)
            #expect(again.headers["idempotency-replayed"] == "true")
        }
    }

    @Test
    func `a repetition gets the first answer although the account is renamed or gone`() async throws {
        try await withServer(store: .sqlite) { server in
            let api = try await APIClient(server)
            _ = try await api.send("POST", "/v1/users", #"{"nick_name":"ann","password":"secret1"}"#)
            func push(_ to: String, _ key: String) async throws -> APIClient.Answer {
                try await api.send(
                    "POST",
                    "/v1/push",
                    #"{"to":\#(to),"title":"News"}"#,
                    headers: [("Idempotency-Key", key)]
                )
            }
            let toOne = try await push(#"{"user":"ann"}"#, "one")
            let toSome = try await push(#"{"users":["ann","nobody"]}"#, "some")
            #expect([toOne.status, toSome.status] == [202, 202])
            #expect(try await api.send("PATCH", "/v1/users/ann", #"{"nick_name":"anna"}"#).status == 200)
            for _ in 1...2 {
                let again = try await push(#"{"user":"ann"}"#, "one")
                #expect(again.status == 202)
                #expect(again.headers["idempotency-replayed"] == "true")
                #expect(again.body["id"]?.string == toOne.body["id"]?.string)
                #expect(try await push(#"{"users":["ann","nobody"]}"#, "some").body["id"] == toSome.body["id"])
            }
            // A failed request only looks the key up, and does not use it.
            #expect(try await push(#"{"user":"ann"}"#, "late").status == 404)
            _ = try await api.send("POST", "/v1/users", #"{"nick_name":"ann","password":"secret1"}"#)
            let late = try await push(#"{"user":"ann"}"#, "late")
            #expect(late.status == 202)
            #expect(late.headers["idempotency-replayed"] == nil)
        }
    }

    @Test
    func `for a request that is no push, the key means nothing`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            for text in ["one", "two"] {
                let body = #"{"topic":"news","payload":{"text":"\#(text)"},"retain":true}"#
                let answer = try await api.send("POST", "/v1/topics/publish", body, headers: Self.headers)
                #expect(answer.status == 202)
                #expect(answer.headers["idempotency-replayed"] == nil)
                #expect(try await api.send("GET", "/v1/topics/retained?topic=news").body["text"]?.string == text)
            }
        }
    }
}
