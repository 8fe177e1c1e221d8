// Hermes
// SPDX-License-Identifier: Apache-2.0

import CryptoExtras
import Foundation
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesPush

@Suite("FCM")
struct FCMTests {
    private static let token = PushToken(stored: .fcm, text: "d-VwX:APA91b", appID: "")

    private let folder: PushFixtures.Folder
    private let key: _RSA.Signing.PrivateKey
    private let clock = ManualClock(now: PushFixtures.now)

    init() throws {
        folder = try PushFixtures.Folder()
        key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    }

    private func send(
        _ times: Int = 1,
        every interval: Duration = .zero,
        afterJump jump: Duration = .zero,
        expiresIn: Int = 3600,
        token: String = "access",
        isDue: @escaping @Sendable () async -> Bool = { true },
        _ answer: @escaping @Sendable (FakeEndpoint.Request, Int) -> FakeEndpoint.Answer
    ) async throws -> (outcomes: [PushSendOutcome], requests: [FakeEndpoint.Request], url: String) {
        let endpoint = try await FakeEndpoint.start { request, count in
            request.path == "/token"
                ? .init(200, body: #"{"access_token":"\#(token)-\#(count)","expires_in":\#(expiresIn)}"#)
                : answer(request, count)
        }
        let account: [String: String] = [
            "project_id": "example-project", "private_key": key.pemRepresentation, "private_key_id": "key-1",
            "client_email": "push@example.org", "token_uri": "\(endpoint.url)/token",
        ]
        let text = String(decoding: try JSONSerialization.data(withJSONObject: account), as: UTF8.self)
        let http = try PushFixtures.client()
        let sender = try FCMSender(
            serviceAccountFile: try folder.write("account.json", text),
            endpoint: endpoint.url,
            http: http,
            time: SteadyTime(clock)
        )
        clock.jump(by: jump)
        var outcomes: [PushSendOutcome] = []
        for _ in 0..<times {
            let notification = PushFixtures.notification(data: #"{"order":17}"#)
            outcomes.append(await sender.send(PushDelivery(notification, to: Self.token, isDue: isDue)))
            clock.advance(by: interval)
        }
        await http.shutdown()
        await endpoint.stop()
        return (outcomes, endpoint.received, endpoint.url)
    }

    @Test
    func `what is not due any more is not sent, nor a second time after 401`() async throws {
        let asked = Mutex(0)
        let isDueOnce: @Sendable () async -> Bool = {
            asked.withLock { asked in
                asked += 1
                return asked == 1
            }
        }
        let never: @Sendable () async -> Bool = { false }
        let first = try await send(isDue: never) { _, _ in .init(200) }
        #expect(first.outcomes == [.withdrawn])
        #expect(first.requests.map(\.path) == ["/token"])
        let second = try await send(isDue: isDueOnce) { _, _ in .init(401) }
        #expect(second.outcomes == [.withdrawn])
        #expect(second.requests.count { $0.path != "/token" } == 1)
    }

    @Test(arguments: [#"a\nb"#, "a b", "ü"])
    func `an access token that cannot stand in a head is not kept`(token: String) async throws {
        let sent = try await send(2, token: token) { _, _ in .init(200) }
        #expect(sent.requests.map(\.path) == ["/token", "/token"])
        for outcome in sent.outcomes {
            guard case .retry(_, isService: true, _) = outcome else {
                Issue.record("not tried again")
                continue
            }
        }
    }

    @Test(arguments: [(Int.min, 3), (-1, 3), (0, 3), (Int.max, 1)])
    func `the lifetime of an access token may be any number: at least 30 s, at most a day`(
        _ expiresIn: Int,
        _ tokens: Int
    ) async throws {
        let sent = try await send(3, every: .seconds(31), expiresIn: expiresIn) { _, _ in
            .init(200, body: #"{"name":"projects/p/messages/1"}"#)
        }
        #expect(sent.outcomes.count == 3)
        #expect(sent.requests.count { $0.path == "/token" } == tokens)
    }

    @Test
    func `a signed assertion is exchanged for an access token, which is used for the message`() async throws {
        let sent = try await send { _, _ in .init(200, body: #"{"name":"projects/p/messages/1"}"#) }
        #expect(sent.outcomes == [.delivered(id: "projects/p/messages/1")])
        #expect(sent.requests.map(\.path) == ["/token", "/v1/projects/example-project/messages:send"])
        let form = String(decoding: sent.requests[0].body, as: UTF8.self)
        #expect(form.hasPrefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="))
        let parts = try PushFixtures.TokenParts(form.split(separator: "=").last ?? "")
        #expect(parts.header["alg"] as? String == "RS256")
        #expect(parts.header["kid"] as? String == "key-1")
        #expect(parts.payload["iss"] as? String == "push@example.org")
        #expect(parts.payload["aud"] as? String == "\(sent.url)/token")
        #expect(parts.payload["scope"] as? String == "https://www.googleapis.com/auth/firebase.messaging")
        #expect(parts.payload["iat"] as? Int == 1_800_000_000)
        #expect(parts.payload["exp"] as? Int == 1_800_003_600)
        let signature = _RSA.Signing.RSASignature(rawRepresentation: parts.signature)
        #expect(key.publicKey.isValidSignature(signature, for: parts.signed, padding: .insecurePKCS1v1_5))

        #expect(sent.requests[1].headers["authorization"] == "Bearer access-1")
        let message = try #require(try PushFixtures.json(sent.requests[1].body)["message"] as? [String: Any])
        #expect(message["token"] as? String == Self.token.text)
        #expect(message["notification"] as? [String: String] == ["title": "Ann", "body": "Hello"])
        #expect((message["data"] as? [String: String])?["data"] == #"{"order":17}"#)
        let android = try #require(message["android"] as? [String: Any])
        #expect(android["ttl"] as? String == "3600s")
        #expect(android["priority"] as? String == "HIGH")
        #expect(android["collapse_key"] as? String == "direct/1-2")
    }

    @Test
    func `the assertion has the time of a clock that was set ahead at once`() async throws {
        let sent = try await send(afterJump: .seconds(7200)) { _, _ in .init(200, body: #"{"name":"n"}"#) }
        let form = String(decoding: sent.requests[0].body, as: UTF8.self)
        let parts = try PushFixtures.TokenParts(form.split(separator: "=").last ?? "")
        #expect(parts.payload["iat"] as? Int == 1_800_007_200)
        #expect(parts.payload["exp"] as? Int == 1_800_010_800)
    }

    @Test
    func `the access token is used until shortly before its end`() async throws {
        let sent = try await send(3, every: .seconds(1740)) { _, _ in .init() }
        #expect(sent.requests.map { $0.path == "/token" } == [true, false, false, true, false])
    }

    @Test
    func `an access token that is refused is fetched again, once`() async throws {
        let sent = try await send { request, _ in
            request.headers["authorization"] == "Bearer access-1" ? .init(401) : .init(200, body: #"{"name":"n"}"#)
        }
        #expect(sent.outcomes == [.delivered(id: "n")])
        #expect(sent.requests.count == 4)
    }

    @Test(arguments: [
        (404, "UNREGISTERED", PushSendOutcome.tokenGone(since: nil)),
        (404, "NOT_FOUND", .refused(reason: "NOT_FOUND")),
        (400, "INVALID_ARGUMENT", .refused(reason: "INVALID_ARGUMENT")),
        (429, "QUOTA_EXCEEDED", .retry(after: .seconds(9), isService: false, reason: "QUOTA_EXCEEDED")),
        (401, "THIRD_PARTY_AUTH_ERROR", .retry(after: .seconds(9), isService: false, reason: "THIRD_PARTY_AUTH_ERROR")),
        (403, "THIRD_PARTY_AUTH_ERROR", .retry(after: .seconds(9), isService: false, reason: "THIRD_PARTY_AUTH_ERROR")),
        (401, "S", .retry(after: .seconds(9), isService: true, reason: "S")),
        (403, "PERMISSION_DENIED", .retry(after: .seconds(9), isService: true, reason: "PERMISSION_DENIED")),
        (503, "UNAVAILABLE", .retry(after: .seconds(9), isService: true, reason: "UNAVAILABLE")),
    ])
    func `what Google refuses`(status: Int, code: String, expected: PushSendOutcome) async throws {
        let sent = try await send { _, _ in
            .init(
                status,
                headers: ["retry-after": "9"],
                body: """
                    {"error":{"code":\(status),"message":"m","status":"S","details":[{"@type":"t","errorCode":"\(code)"}]}}
                    """
            )
        }
        #expect(sent.outcomes == [expected])
        // An error about one device says nothing about the access token.
        let isTokenKept = code != "S"
        #expect(sent.requests.count { $0.path == "/token" } == (isTokenKept ? 1 : 2))
    }

    @Test
    func `the message without its token is never over 4,000 bytes`() throws {
        let notification = PushFixtures.notification(body: String(repeating: "🙂\n", count: 3_000))
        let payload = FCMSender.payload(of: PushDelivery(notification, to: Self.token), now: PushFixtures.now)
        #expect(payload.count < 4_800)
        _ = try PushFixtures.json(payload)
    }
}
