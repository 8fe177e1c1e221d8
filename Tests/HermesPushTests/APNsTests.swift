// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesPush

@Suite("APNs")
struct APNsTests {
    private let folder: PushFixtures.Folder
    private let key = P256.Signing.PrivateKey()
    private let clock = ManualClock(now: PushFixtures.now)

    init() throws { folder = try PushFixtures.Folder() }

    /// Runs `body` with a sender whose service is `endpoint`.
    private func withSender<Value>(
        _ endpoint: FakeEndpoint,
        _ body: (APNsSender) async throws -> Value
    ) async throws -> Value {
        let file = try folder.write("key.p8", key.pemRepresentation)
        let http = try PushFixtures.client()
        let sender = try APNsSender(
            .init(
                keyFile: file,
                keyID: "KEY1234567",
                teamID: "TEAM123456",
                topic: "org.example.app",
                endpoint: endpoint.url
            ),
            http: http,
            time: SteadyTime(clock)
        )
        let result: Result<Value, any Error>
        do { result = .success(try await body(sender)) } catch { result = .failure(error) }
        await http.shutdown()
        await endpoint.stop()
        return try result.get()
    }

    private func send(
        _ notification: PushNotification = PushFixtures.notification(),
        to endpoint: FakeEndpoint
    ) async throws -> PushSendOutcome {
        try await withSender(endpoint) { sender in
            await sender.send(PushDelivery(notification, to: PushFixtures.apnsToken))
        }
    }

    @Test
    func `a request is as Apple asks for it`() async throws {
        let endpoint = try await FakeEndpoint.start { _, _ in .init(200, headers: ["apns-id": "given"]) }
        let outcome = try await send(PushFixtures.notification(data: #"{"order":17}"#), to: endpoint)
        #expect(outcome == .delivered(id: "given"))
        let request = try #require(endpoint.received.first)
        #expect(request.path == "/3/device/\(PushFixtures.apnsToken.text)")
        #expect(request.headers["apns-topic"] == "org.example.app")
        #expect(request.headers["apns-push-type"] == "alert")
        #expect(request.headers["apns-priority"] == "10")
        #expect(request.headers["apns-expiration"] == "1800003600")
        #expect(request.headers["apns-collapse-id"] == "direct/1-2")
        #expect(request.headers["apns-id"] == "0f8fad5b-d9cb-469f-a165-70867728950e")
        let body = try PushFixtures.json(request.body)
        let aps = try #require(body["aps"] as? [String: Any])
        #expect(aps["badge"] as? Int == 3)
        #expect(aps["sound"] as? String == "default")
        #expect(aps["alert"] as? [String: String] == ["title": "Ann", "body": "Hello"])
        #expect((body["data"] as? [String: Int])?["order"] == 17)
        let reference = try #require(body["hermes"] as? [String: Any])
        #expect(reference["seq"] as? Int == 42)
        #expect(reference["uid"] as? Int == 2)
    }

    @Test
    func `the token is signed by the key, says whose it is, and is used again`() async throws {
        let endpoint = try await FakeEndpoint.start()
        try await withSender(endpoint) { sender in
            for minutes in [0, 44, 2] {
                clock.advance(by: .seconds(60 * minutes))
                _ = await sender.send(PushDelivery(PushFixtures.notification(), to: PushFixtures.apnsToken))
            }
        }
        let tokens = endpoint.received.compactMap { $0.headers["authorization"]?.dropFirst("bearer ".count) }
        #expect(tokens.count == 3)
        #expect(tokens[0] == tokens[1])
        #expect(tokens[1] != tokens[2])
        let parts = try PushFixtures.TokenParts(tokens[0])
        #expect(parts.header["alg"] as? String == "ES256")
        #expect(parts.header["kid"] as? String == "KEY1234567")
        #expect(parts.payload["iss"] as? String == "TEAM123456")
        #expect(parts.payload["iat"] as? Int == 1_800_000_000)
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: parts.signature)
        #expect(key.publicKey.isValidSignature(signature, for: parts.signed))
    }

    @Test
    func `the token is signed again at once after the clock was set ahead or back`() async throws {
        let endpoint = try await FakeEndpoint.start()
        try await withSender(endpoint) { sender in
            for hours in [0, 0, 2, 0, -2, 0] {
                clock.jump(by: .seconds(3600 * hours))
                _ = await sender.send(PushDelivery(PushFixtures.notification(), to: PushFixtures.apnsToken))
            }
        }
        let signed = try endpoint.received.compactMap { $0.headers["authorization"]?.dropFirst("bearer ".count) }
            .map { try PushFixtures.TokenParts($0).payload["iat"] as? Int }
        let (right, ahead) = (1_800_000_000, 1_800_007_200)
        #expect(signed == [right, right, ahead, ahead, right, right])
    }

    @Test(arguments: [("org.example.other", false), ("org.example.app", true), ("", true)])
    func `a topic that a client has chosen does not stop others if Apple refuses it`(
        appID: String,
        isService: Bool
    ) async throws {
        let endpoint = try await FakeEndpoint.start { _, _ in .init(403, body: #"{"reason":"Forbidden"}"#) }
        let token = try PushToken(.apns, text: PushFixtures.apnsToken.text, appID: appID)
        try await withSender(endpoint) { sender in
            let outcome = await sender.send(PushDelivery(PushFixtures.notification(), to: token))
            #expect(outcome == .retry(after: .seconds(60), isService: isService, reason: "Forbidden"))
        }
    }

    @Test
    func `a token that Apple calls expired is renewed once, unless it is young`() async throws {
        let endpoint = try await FakeEndpoint.start { _, count in
            count == 2 || count == 4
                ? .init(403, body: #"{"reason":"ExpiredProviderToken"}"#) : .init()
        }
        try await withSender(endpoint) { sender in
            let delivery = PushDelivery(PushFixtures.notification(), to: PushFixtures.apnsToken)
            #expect(await sender.send(delivery) == .delivered(id: delivery.notification.id))
            clock.advance(by: .seconds(21 * 60))
            #expect(await sender.send(delivery) == .delivered(id: delivery.notification.id))
            guard case .retry(_, isService: true, _) = await sender.send(delivery) else {
                Issue.record("a young token was renewed")
                return
            }
        }
        let tokens = endpoint.received.compactMap { $0.headers["authorization"] }
        #expect(tokens.count == 4)
        #expect(tokens[1] != tokens[2])
        #expect(tokens[2] == tokens[3])
    }

    @Test(arguments: [
        (410, #"{"reason":"Unregistered","timestamp":1799999999000}"#, "gone 1799999999000"),
        (400, #"{"reason":"BadDeviceToken"}"#, "gone"),
        (400, #"{"reason":"BadTopic"}"#, "refused"),
        (413, #"{"reason":"PayloadTooLarge"}"#, "refused"),
        (403, #"{"reason":"InvalidProviderToken"}"#, "retry 60.0 service"),
        (429, #"{"reason":"TooManyRequests"}"#, "retry 7.0"),
        (429, #"{"reason":"TooManyProviderTokenUpdates"}"#, "retry 7.0 service"),
        (503, "not JSON", "retry 7.0 service"),
    ])
    func `what Apple refuses`(status: Int, body: String, expected: String) async throws {
        let endpoint = try await FakeEndpoint.start { _, _ in
            .init(status, headers: status == 403 ? [:] : ["retry-after": "7"], body: body)
        }
        let outcome = try await send(to: endpoint)
        let found =
            switch outcome {
            case .delivered: "delivered"
            case .tokenGone(let since): since.map { "gone \($0.rawValue)" } ?? "gone"
            case .retry(let after, let isService, _):
                "retry" + (after.map { " \($0 / .seconds(1))" } ?? "") + (isService ? " service" : "")
            case .refused: "refused"
            case .withdrawn: "withdrawn"
            }
        #expect(found == expected)
    }

    @Test
    func `what is not due any more once the token is signed is not sent`() async throws {
        let endpoint = try await FakeEndpoint.start()
        try await withSender(endpoint) { sender in
            let delivery = PushDelivery(PushFixtures.notification(), to: PushFixtures.apnsToken) { false }
            #expect(await sender.send(delivery) == .withdrawn)
        }
        #expect(endpoint.received.isEmpty)
    }

    @Test
    func `nobody listens: later`() async throws {
        let endpoint = try await FakeEndpoint.start()
        await endpoint.stop()
        guard case .retry(nil, isService: true, _) = try await send(to: endpoint) else {
            Issue.record("not tried again")
            return
        }
    }

    @Test
    func `a payload is never over 4,096 bytes, and what was left out is said`() throws {
        let huge = String(repeating: "ü\"\\🙂", count: 4_000)
        for (title, body, data) in [
            ("Ann", "Hello", #"{"x":"\#(String(repeating: "y", count: 5_000))"}"#), ("Ann", huge, nil),
            (huge, huge, nil),
            ("Ann", String(repeating: "\u{1}", count: 3_000), nil),
        ] {
            let payload = APNsSender.payload(
                of: PushFixtures.notification(title: title, body: body, data: data)
            )
            #expect(payload.count <= APNsSender.maxPayloadBytes)
            let json = try PushFixtures.json(payload)
            #expect((json["hermes"] as? [String: Any])?["truncated"] as? Bool == true)
            #expect(json["data"] == nil)
        }
        let kept = try PushFixtures.json(APNsSender.payload(of: PushFixtures.notification(data: #"{"x":1}"#)))
        #expect((kept["hermes"] as? [String: Any])?["truncated"] == nil)
    }

    @Test
    func `a collapse id has at most 64 bytes, and different keys stay different`() {
        let long = [String(repeating: "x", count: 65), String(repeating: "x", count: 66), "grün", ""]
        let ids = long.map(APNsSender.collapseID)
        #expect(ids.allSatisfy { (1...64).contains($0.utf8.count) && $0.utf8.allSatisfy { $0 < 0x7F } })
        #expect(Set(ids).count == long.count)
    }

    @Test
    func `a key that cannot be read is named by its setting`() async throws {
        let http = try PushFixtures.client()
        let wrong = try folder.write("wrong.p8", "no key")
        // Reading a pipe would wait for its writer.
        let pipe = folder.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        let cases = [
            (folder.path + "/missing", "cannot be read: No such file"), (wrong, "no P-256 key"),
            (pipe, "cannot be read: it is a pipe"),
        ]
        for (path, part) in cases {
            let error = #expect(throws: PushConfigurationError.self) {
                try APNsSender(.init(keyFile: path, keyID: "", teamID: "", topic: ""), http: http, time: clock)
            }
            #expect(error?.description.contains("push.apns.keyFile") == true)
            #expect(error?.description.contains(part) == true)
        }
        await http.shutdown()
    }
}
