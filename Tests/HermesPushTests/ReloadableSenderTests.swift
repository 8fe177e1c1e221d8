// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesCore
import HermesTestKit
import Testing

@testable import HermesPush

@Suite("Keys that are read again")
struct ReloadableSenderTests {
    private let folder: PushFixtures.Folder
    private let clock = ManualClock(now: PushFixtures.now)

    init() throws { folder = try PushFixtures.Folder() }

    /// Runs `body` with a sender for APNs whose key is in the file "key". `send` sends a notification and returns the
    /// parts of its authorization token.
    private func withSender(
        keyID: String = "KEY1234567",
        _ body: (ReloadableSender, _ send: () async throws -> PushFixtures.TokenParts) async throws -> Void
    ) async throws {
        let endpoint = try await FakeEndpoint.start()
        let http = try PushFixtures.client()
        let result: Result<Void, any Error>
        do {
            let configuration = APNsSender.Configuration(
                keyFile: folder.path + "/key",
                keyID: keyID,
                teamID: "TEAM123456",
                topic: "org.example.app",
                endpoint: endpoint.url
            )
            let time = clock
            let sender = try await ReloadableSender(file: configuration.keyFile, setting: "push.apns.keyFile") {
                () async throws(PushConfigurationError) in
                try APNsSender(configuration, http: http, time: time)
            }
            try await body(sender) {
                let delivery = PushDelivery(PushFixtures.notification(), to: PushFixtures.apnsToken)
                #expect(await sender.send(delivery) == .delivered(id: delivery.notification.id))
                let header = try #require(endpoint.received.last?.headers["authorization"])
                return try PushFixtures.TokenParts(header.dropFirst("bearer ".count))
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await http.shutdown()
        await endpoint.stop()
        try result.get()
    }

    private static func isSigned(_ token: PushFixtures.TokenParts, by key: P256.Signing.PrivateKey) throws -> Bool {
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: token.signature)
        return key.publicKey.isValidSignature(signature, for: token.signed)
    }

    @Test
    func `another key signs from the next request on; the same one keeps its token, an unusable one changes nothing`()
        async throws
    {
        let (old, new) = (P256.Signing.PrivateKey(), P256.Signing.PrivateKey())
        _ = try folder.write("key", old.pemRepresentation)
        try await withSender { sender, send in
            let first = try await send()
            #expect(try Self.isSigned(first, by: old))
            #expect(try await sender.reload() == .unchanged)
            clock.advance(by: .seconds(60))
            // Apple refuses tokens that are renewed too often.
            #expect(try await send().signature == first.signature)

            _ = try folder.write("key", "nonsense")
            await #expect(throws: PushConfigurationError.self) { try await sender.reload() }
            try FileManager.default.removeItem(atPath: folder.path + "/key")
            await #expect(throws: PushConfigurationError.self) { try await sender.reload() }
            #expect(try await send().signature == first.signature)

            _ = try folder.write("key", new.pemRepresentation)
            #expect(try await sender.reload() == .changed)
            #expect(try Self.isSigned(try await send(), by: new))
            #expect(try await sender.reload() == .unchanged)
        }
    }

    @Test
    func `without a key id, the name of the file that a link leads to says it, also after the link has moved`()
        async throws
    {
        let keys = [P256.Signing.PrivateKey(), P256.Signing.PrivateKey()]
        let files = try zip(["AAAAAAAAA1", "BBBBBBBBB2"], keys).map { id, key in
            try folder.write("AuthKey_\(id).p8", key.pemRepresentation)
        }
        let link = folder.path + "/key"
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: files[0])
        try await withSender(keyID: "") { sender, send in
            #expect(try await send().header["kid"] as? String == "AAAAAAAAA1")
            try FileManager.default.removeItem(atPath: link)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: files[1])
            #expect(try await sender.reload() == .changed)
            let token = try await send()
            #expect(token.header["kid"] as? String == "BBBBBBBBB2")
            #expect(try Self.isSigned(token, by: keys[1]))
        }
        let unnamed = try folder.write("apple.p8", keys[0].pemRepresentation)
        try FileManager.default.removeItem(atPath: link)
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: unnamed)
        await #expect(throws: PushConfigurationError.self) { try await withSender(keyID: "") { _, _ in } }
    }
}
