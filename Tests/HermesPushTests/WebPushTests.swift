// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesPush

@Suite("Web Push")
struct WebPushTests {
    private static let browser = P256.KeyAgreement.PrivateKey()
    private static let secret = Data(repeating: 7, count: 16)

    private static func subscription(_ endpoint: String) -> String {
        """
        {"endpoint":"\(endpoint)","expirationTime":null,"keys":{"p256dh":"\(browser.publicKey.x963Representation.base64URL)",\
        "auth":"\(secret.base64URL)"}}
        """
    }

    @Test
    func `RFC 8291, section 5: the example, byte for byte`() throws {
        let sender = try P256.KeyAgreement.PrivateKey(
            rawRepresentation: try #require(Data(base64URL: "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
        )
        let body = try WebPushEncryption.encrypt(
            Data("When I grow up, I want to be a watermelon".utf8),
            for: try #require(
                Data(
                    base64URL:
                        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
                )
            ),
            secret: try #require(Data(base64URL: "BTBZMqHH6r4Tts7J_aSIgg")),
            sender: sender,
            salt: try #require(Data(base64URL: "DGv6ra1nlYgDCS1FRnbzlw"))
        )
        let expected =
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
            + "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        #expect(body.base64URL == expected)
    }

    @Test
    func `a browser's key that is no point of the curve is an error`() {
        #expect(throws: (any Error).self) {
            try WebPushEncryption.encrypt(Data(), for: Data([4] + Array(repeating: 1, count: 64)), secret: Self.secret)
        }
    }

    @Test(arguments: [
        "http://push.example.org/x", "https://127.0.0.1/x", "https://[::1]/x", "https://localhost/x",
        "https://printer.local/x", "https://0x7f.1/x", "https://2130706433/x", "https://user@push.example.org/x",
        "https://push.example.org/x#y", "https://push.example.org:99999/x", "https://push.example.org:0/x",
        "https://push.example.org:65536/x", "https://10.0.0.1./x", "file:///etc/passwd", "https://a..b/x", "",
    ])
    func `endpoints that lead nowhere good are refused`(endpoint: String) {
        #expect(throws: HermesError.self) { try WebPushSubscription(parsing: Self.subscription(endpoint)) }
    }

    @Test
    func `addresses of private networks are told from others`() {
        let inside: [[UInt8]] = [
            [127, 0, 0, 1], [10, 1, 2, 3], [192, 168, 0, 1], [172, 31, 0, 1], [169, 254, 169, 254], [100, 64, 0, 1],
            [0, 0, 0, 0], [224, 0, 0, 1], [255, 255, 255, 255], Array(repeating: 0, count: 15) + [1],
            [0xFE, 0x80] + Array(repeating: 0, count: 14), [0xFC, 0x01] + Array(repeating: 0, count: 14),
            Array(repeating: 0, count: 10) + [0xFF, 0xFF, 127, 0, 0, 1], [],
            [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1],
            [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 1, count: 12),
            [0x20, 0x01, 0, 0] + Array(repeating: 1, count: 12), [0x20, 0x01, 1, 0] + Array(repeating: 1, count: 12),
            [0x20, 0x02] + Array(repeating: 1, count: 14), [0x3F, 0xFF, 0x0F] + Array(repeating: 1, count: 13),
        ]
        for address in inside { #expect(!PublicAddress.isPublic(address), "\(address)") }
        guard case .found(let found) = PublicAddress.resolve("127.0.0.1") else {
            Issue.record("not resolved")
            return
        }
        #expect(Set(found) == [[127, 0, 0, 1]])
        #expect(PublicAddress.text(of: [127, 0, 0, 1]) == "127.0.0.1")
        #expect(
            PublicAddress.text(of: [0x2A, 0x00, 0x14, 0x50] + Array(repeating: 1, count: 12))
                == "2a00:1450:101:101:101:101:101:101"
        )
        let outside: [[UInt8]] = [
            [8, 8, 8, 8], [172, 32, 0, 1], [192, 169, 0, 1], [100, 128, 0, 1],
            [0x2A, 0x00, 0x14, 0x50] + Array(repeating: 1, count: 12),
            [0x20, 0x01, 0x02, 0] + Array(repeating: 1, count: 12),
            [0x3F, 0xFF, 0x10] + Array(repeating: 1, count: 13),
        ]
        for address in outside { #expect(PublicAddress.isPublic(address), "\(address)") }
    }

    private func withSender<Value>(
        _ answer: FakeEndpoint.Answer = .init(201),
        hosts: [String] = ["push.example.org"],
        names: PublicNames? = nil,
        isOpen: Bool = true,
        time: any TimeSource = ManualClock(now: PushFixtures.now),
        _ body: (WebPushSender, P256.Signing.PrivateKey, FakeEndpoint) async throws -> Value
    ) async throws -> Value {
        let folder = try PushFixtures.Folder()
        let endpoint = try await FakeEndpoint.start { _, _ in answer }
        let port = try #require(endpoint.url.split(separator: ":").last)
        let key = P256.Signing.PrivateKey()
        let http = try PushFixtures.client()
        let sender = try WebPushSender(
            .init(
                publicKey: key.publicKey.x963Representation.base64URL,
                privateKeyFile: try folder.write("vapid", key.rawRepresentation.base64URL + "\n"),
                subject: "mailto:push@example.org",
                hosts: hosts + (isOpen ? hosts.map { "\($0):\(port)" } : []),
                endpoint: names == nil ? endpoint.url : ""
            ),
            http: http,
            time: time,
            names: names
        )
        let result: Result<Value, any Error>
        do { result = .success(try await body(sender, key, endpoint)) } catch { result = .failure(error) }
        await http.shutdown()
        await endpoint.stop()
        return try result.get()
    }

    private static let delivery = PushDelivery(
        PushFixtures.notification(),
        to: PushToken(stored: .webPush, text: subscription("https://push.example.org/send/abc"), appID: "")
    )

    @Test
    func `what is not due any more once the host is found is not sent`() async throws {
        try await withSender(.init(201)) { sender, _, endpoint in
            let delivery = PushDelivery(Self.delivery.notification, to: Self.delivery.token) { false }
            #expect(await sender.send(delivery) == .withdrawn)
            #expect(endpoint.received.isEmpty)
        }
    }

    @Test
    func `a request has TTL, Urgency, Topic, and a token for the endpoint's origin`() async throws {
        try await withSender(.init(201, headers: ["location": "/m/1"])) { sender, key, endpoint in
            #expect(await sender.send(Self.delivery) == .delivered(id: "/m/1"))
            let request = try #require(endpoint.received.first)
            #expect(request.path == "/send/abc")
            #expect(request.headers["ttl"] == "3600")
            #expect(request.headers["urgency"] == "high")
            #expect(request.headers["content-encoding"] == "aes128gcm")
            #expect(request.headers["topic"]?.utf8.count == 32)
            let authorization = try #require(request.headers["authorization"])
            let match = try #require(authorization.wholeMatch(of: /vapid t=([^,]+), k=(.+)/))
            #expect(String(match.2) == key.publicKey.x963Representation.base64URL)
            let parts = try PushFixtures.TokenParts(match.1)
            #expect(parts.payload["aud"] as? String == "https://push.example.org")
            #expect(parts.payload["sub"] as? String == "mailto:push@example.org")
            #expect(parts.payload["exp"] as? Int == 1_800_000_000 + 12 * 3600)
            let signature = try P256.Signing.ECDSASignature(rawRepresentation: parts.signature)
            #expect(key.publicKey.isValidSignature(signature, for: parts.signed))
            // A record without padding has a header of 86 bytes, a delimiter of 1 byte and a tag of 16 bytes.
            let message = WebPushSender.payload(of: Self.delivery.notification)
            #expect(request.body.count == 86 + message.count + 1 + 16)
        }
    }

    @Test
    func `a token of the time when the clock was ahead is not used any more`() async throws {
        let ahead = Duration.seconds(48 * 3600)
        let time = ManualClock(now: PushFixtures.now.advanced(by: ahead))
        try await withSender(time: time) { sender, _, endpoint in
            for jump in [Duration.zero, .zero - ahead, .zero] {
                time.jump(by: jump)
                #expect(await sender.send(Self.delivery) == .delivered(id: ""))
            }
            var hours: [Int] = []
            for request in endpoint.received {
                let authorization = try #require(request.headers["authorization"])
                let match = try #require(authorization.wholeMatch(of: /vapid t=([^,]+), k=(.+)/))
                let parts = try PushFixtures.TokenParts(match.1)
                let expiry = try #require(parts.payload["exp"] as? Int)
                hours.append((expiry - 1_800_000_000) / 3600)
            }
            #expect(hours == [48 + 12, 12, 12])
        }
    }

    @Test
    func `a token has the time of a clock that was set ahead at once`() async throws {
        let clock = ManualClock(now: PushFixtures.now)
        try await withSender(time: SteadyTime(clock)) { sender, _, endpoint in
            clock.jump(by: .seconds(24 * 3600))
            #expect(await sender.send(Self.delivery) == .delivered(id: ""))
            let authorization = try #require(endpoint.received.first?.headers["authorization"])
            let match = try #require(authorization.wholeMatch(of: /vapid t=([^,]+), k=(.+)/))
            let parts = try PushFixtures.TokenParts(match.1)
            #expect(parts.payload["exp"] as? Int == 1_800_000_000 + 36 * 3600)
        }
    }

    @Test(arguments: [
        (404, PushSendOutcome.tokenGone(since: nil)), (410, .tokenGone(since: nil)),
        (429, .retry(after: .seconds(3), isService: false, reason: "status 429")),
        (500, .retry(after: .seconds(3), isService: false, reason: "status 500")),
        (403, .refused(reason: "status 403: no")),
    ])
    func `what push services refuse`(status: Int, expected: PushSendOutcome) async throws {
        try await withSender(.init(status, headers: ["retry-after": "3"], body: "no")) { sender, _, _ in
            #expect(await sender.send(Self.delivery) == expected)
        }
    }

    @Test
    func `a host that is not listed is not connected to`() async throws {
        try await withSender(hosts: ["example.org", "*.other.org"]) { sender, _, endpoint in
            guard case .refused = await sender.send(Self.delivery) else {
                Issue.record("sent")
                return
            }
            #expect(endpoint.received.isEmpty)
        }
    }

    @Test(arguments: [
        ("*", "https://push.example.org:81/x", false), ("*", "https://push.example.org:443/x", true),
        ("push.example.org", "https://push.example.org:8443/x", false),
        ("push.example.org:8443", "https://push.example.org:8443/x", true),
        ("push.example.org:8443", "https://push.example.org/x", false),
        ("*.example.org:8443", "https://a.example.org:8443/x", true), ("*:81", "https://any.org:81/x", true),
    ])
    func `a port other than 443 is used only where the operator names it`(
        _ host: String,
        _ endpoint: String,
        _ isSent: Bool
    ) async throws {
        try await withSender(hosts: [host], isOpen: false) { sender, _, service in
            let text = Self.subscription(endpoint)
            let delivery = PushDelivery(Self.delivery.notification, to: .init(stored: .webPush, text: text, appID: ""))
            if case .refused = await sender.send(delivery) { #expect(!isSent) } else { #expect(isSent) }
            #expect(service.received.isEmpty != isSent)
        }
    }

    @Test
    func `a host that leads nowhere is refused, and its subscription is gone after a day`() async throws {
        let reason = "push.example.org resolves to a private address or to no address"
        // A host that the operator names counts as existing. Its subscriptions stay, and failed pushes to it are
        // repeated.
        for (hosts, isNamed) in [(["*"], false), (["push.example.org"], true), (["*", "*.example.org"], true)] {
            let time = ManualClock()
            let names = PublicNames(time: time, lookUp: { _ in .none })
            try await withSender(hosts: hosts, names: names) { sender, _, _ in
                let first: PushSendOutcome =
                    isNamed ? .retry(after: nil, isService: true, reason: reason) : .refused(reason: reason)
                #expect(await sender.send(Self.delivery) == first)
                for hour in 1...24 {
                    time.advance(by: .seconds(3600))
                    let expected = isNamed || hour < 24 ? first : .tokenGone(since: nil)
                    #expect(await sender.send(Self.delivery) == expected, "after \(hour) hours")
                }
            }
        }
    }

    @Test
    func `the host is resolved once: the checked address is the one that is connected to`() async throws {
        let calls = Mutex(0)
        let names = PublicNames(
            time: ManualClock(),
            isPublic: { _ in true },
            lookUp: { _ in
                calls.withLock { $0 += 1 }
                return .found([[127, 0, 0, 1]])
            }
        )
        // The named host includes the endpoint's port.
        try await withSender(hosts: ["push.service.invalid"], names: names) { sender, _, endpoint in
            let port = try #require(endpoint.url.split(separator: ":").last)
            // The name does not exist. A connection that reaches the endpoint fails, because the endpoint does not
            // speak TLS.
            let text = Self.subscription("https://PUSH.service.invalid:\(port)/x")
            let delivery = PushDelivery(Self.delivery.notification, to: .init(stored: .webPush, text: text, appID: ""))
            guard case .retry(after: _, isService: true, reason: let reason) = await sender.send(delivery)
            else {
                Issue.record("not tried")
                return
            }
            #expect(!reason.lowercased().contains("dns") && !reason.contains("UnknownHost"), "\(reason)")
            #expect(calls.withLock { $0 } == 1)
        }
    }

    @Test
    func `A public key that is not the private key's stops the start, and the right one is told`() async throws {
        let folder = try PushFixtures.Folder()
        let key = P256.Signing.PrivateKey()
        let file = try folder.write("vapid.pem", key.pemRepresentation)
        let http = try PushFixtures.client()
        let error = #expect(throws: PushConfigurationError.self) {
            try WebPushSender(
                .init(publicKey: "BAAA", privateKeyFile: file, subject: "mailto:a@example.org"),
                http: http,
                time: ManualClock(now: PushFixtures.now)
            )
        }
        #expect(error?.description.contains(key.publicKey.x963Representation.base64URL) == true)
        await http.shutdown()
    }
}
