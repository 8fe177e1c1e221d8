// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesCore
import HermesPush
import NIOCore
import NIOPosix

/// Fixtures for the tests of senders: notifications, key files and parsed tokens.
enum PushFixtures {
    static let now = Timestamp(rawValue: 1_800_000_000_000)
    static let apnsToken = PushToken(stored: .apns, text: String(repeating: "a1", count: 32), appID: "")

    static func notification(
        title: String = "Ann",
        body: String = "Hello",
        data: String? = nil,
        collapseKey: String = "direct/1-2"
    ) -> PushNotification {
        PushNotification(
            id: "0f8fad5b-d9cb-469f-a165-70867728950e",
            title: title,
            body: body,
            badge: 3,
            reference: .init(conversation: "direct/1", inboxSeq: 42, user: UserID(rawValue: 2)),
            data: data,
            collapseKey: collapseKey,
            expiresAt: now.advanced(by: .seconds(3600))
        )
    }

    static func client() throws -> PushHTTPClient {
        try PushHTTPClient(group: NIOSingletons.posixEventLoopGroup, timeout: .seconds(10))
    }

    /// A folder that is removed with the last reference to it.
    final class Folder: Sendable {
        let path = NSTemporaryDirectory() + "/hermes-push-" + UUID().uuidString

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ name: String, _ text: String) throws -> String {
            let file = path + "/" + name
            try Data(text.utf8).write(to: URL(fileURLWithPath: file))
            return file
        }
    }

    /// The three parts of a token, and the signed bytes.
    struct TokenParts {
        let header: [String: Any]
        let payload: [String: Any]
        let signature: Data
        let signed: Data

        init(_ text: some StringProtocol) throws {
            let parts = String(text).split(separator: ".").map(String.init)
            guard parts.count == 3, let head = Data(base64URL: parts[0]), let body = Data(base64URL: parts[1]),
                let signature = Data(base64URL: parts[2])
            else { throw CocoaError(.coderReadCorrupt) }
            header = try JSONSerialization.jsonObject(with: head) as? [String: Any] ?? [:]
            payload = try JSONSerialization.jsonObject(with: body) as? [String: Any] ?? [:]
            self.signature = signature
            signed = Data("\(parts[0]).\(parts[1])".utf8)
        }
    }

    static func json(_ bytes: some Collection<UInt8>) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] ?? [:]
    }
}
