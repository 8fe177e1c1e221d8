// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
package import HermesCore
import HermesWire
import NIOCore

/// Sends notifications to the Apple Push Notification service over HTTP/2. A token with an ES256 signature
/// authenticates the server.
///
/// https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns
package final class APNsSender: PushSender {
    /// The operator's data from Apple.
    package struct Configuration: Sendable {
        /// The file with the key (.p8), in PEM.
        package var keyFile: String
        /// The key's id. If it is empty, it is taken from the file's name (`AuthKey_<id>.p8`) after links are resolved.
        package var keyID: String
        package var teamID: String
        /// The app's bundle id, for tokens without one.
        package var topic: String
        /// Whether a token belongs to Apple's sandbox if the app has not specified this.
        package var isSandbox: Bool
        /// The origin to use instead of Apple's hosts; empty to use Apple's hosts.
        package var endpoint: String

        package init(
            keyFile: String,
            keyID: String,
            teamID: String,
            topic: String,
            isSandbox: Bool = false,
            endpoint: String = ""
        ) {
            self.keyFile = keyFile
            self.keyID = keyID
            self.teamID = teamID
            self.topic = topic
            self.isSandbox = isSandbox
            self.endpoint = endpoint
        }
    }

    /// The largest size of a payload, in bytes (Apple's limit).
    static let maxPayloadBytes = 4_096
    /// The longest collapse id, in bytes (Apple's limit).
    static let maxCollapseBytes = 64
    /// The time after which a token is renewed. Apple accepts a token for an hour, and refuses tokens that are renewed
    /// more often than every 20 minutes.
    private static let tokenLifetime = Duration.seconds(45 * 60)
    private static let tokenMinimumAge = Duration.seconds(20 * 60)

    private let configuration: Configuration
    private let http: PushHTTPClient
    private let credential: CachedCredential

    /// Reads the key.
    ///
    /// - Throws: ``PushConfigurationError``.
    package init(
        _ configuration: Configuration,
        http: PushHTTPClient,
        time: any TimeSource
    ) throws(PushConfigurationError) {
        let pem = String(decoding: try KeyFile.read(configuration.keyFile, setting: "push.apns.keyFile"), as: UTF8.self)
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: pem) else {
            throw PushConfigurationError("push.apns.keyFile", "\"\(configuration.keyFile)\" holds no P-256 key (.p8)")
        }
        let keyID = configuration.keyID.isEmpty ? try Self.keyID(of: configuration.keyFile) : configuration.keyID
        self.configuration = configuration
        self.http = http
        let signer = TokenSigner(key: .p256(key), keyID: keyID)
        let team = configuration.teamID
        // The token contains the time of its signature, so a new token is signed after the clock was set.
        credential = CachedCredential(time: time, followsClock: true) {
            let payload = ProviderToken(iss: team, iat: time.latest().rawValue / 1000)
            return .init(text: try signer.token(payload), lifetime: Self.tokenLifetime)
        }
    }

    /// Returns the key's id from a file name of Apple's form.
    private static func keyID(of file: String) throws(PushConfigurationError) -> String {
        let name = URL(fileURLWithPath: file).resolvingSymlinksInPath().lastPathComponent
        let id = name.dropFirst("AuthKey_".count).dropLast(".p8".count)
        guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8"), id.utf8.count == 10,
            id.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) })
        else {
            throw PushConfigurationError(
                "push.apns.keyID",
                "it is not set, and the file name \"\(name)\" is not of the form AuthKey_<id>.p8"
            )
        }
        return String(id)
    }

    private struct ProviderToken: Encodable {
        let iss: String
        let iat: Int64
    }

    package func send(_ delivery: PushDelivery) async -> PushSendOutcome { await send(delivery, isSecondTry: false) }

    private func send(_ delivery: PushDelivery, isSecondTry: Bool) async -> PushSendOutcome {
        let answer: PushHTTPClient.Answer
        let token: String
        do {
            token = try await credential.text()
            guard await delivery.isDue() else { return .withdrawn }
            answer = try await post(
                "\(host(of: delivery.token))/3/device/\(delivery.token.text)",
                headers: headers(of: delivery, authorization: token),
                body: Self.payload(of: delivery.notification)
            )
        } catch {
            return .retry(after: nil, isService: true, reason: "\(error)")
        }
        let reason =
            (try? JSONDecoder().decode(Refusal.self, from: answer.body)) ?? Refusal(reason: nil, timestamp: nil)
        if answer.status == 403, reason.reason == "ExpiredProviderToken" {
            let mayTry = await credential.refused(token, minimumAge: Self.tokenMinimumAge)
            if mayTry, !isSecondTry { return await send(delivery, isSecondTry: true) }
        }
        let isOwnTopic = !delivery.token.appID.isEmpty && delivery.token.appID != configuration.topic
        return Self.outcome(answer, reason, id: delivery.notification.id, isOwnTopic: isOwnTopic)
    }

    /// Posts one body over HTTP/2. If the operator's endpoint has the scheme `http`, it gets HTTP/1.1.
    private func post(
        _ url: String,
        headers: [(String, String)],
        body: Data
    ) async throws -> PushHTTPClient.Answer {
        guard url.hasPrefix("https:") else { return try await http.post(url, headers: headers, body: body) }
        return try await http.http2.post(url, headers: headers, body: ByteBuffer(bytes: body))
    }

    private struct Refusal: Decodable {
        let reason: String?
        /// In milliseconds since 1970.
        let timestamp: Int64?
    }

    /// - Parameter isOwnTopic: whether the client has chosen the topic.
    private static func outcome(
        _ answer: PushHTTPClient.Answer,
        _ refusal: Refusal,
        id: String,
        isOwnTopic: Bool
    ) -> PushSendOutcome {
        let reason = refusal.reason ?? "status \(answer.status)"
        switch (answer.status, refusal.reason) {
        case (200, _):
            return .delivered(id: answer.headers["apns-id"] ?? id)
        case (410, _):
            return .tokenGone(since: refusal.timestamp.map(Timestamp.init(rawValue:)))
        case (400, "BadDeviceToken"):
            return .tokenGone(since: nil)
        case (429, "TooManyRequests"):
            // Too many notifications were sent to this one device.
            return .retry(after: answer.retryAfter, isService: false, reason: reason)
        case (403, _):
            // The key, the team or the clock is wrong. Sending works again after an operator has fixed this. Apple
            // may also refuse only the topic. So a topic that a client has chosen does not delay other devices.
            return .retry(after: answer.retryAfter ?? .seconds(60), isService: !isOwnTopic, reason: reason)
        case (429, _), (500..., _):
            return .retry(after: answer.retryAfter, isService: true, reason: reason)
        default:
            return .refused(reason: reason)
        }
    }

    private func host(of token: PushToken) -> String {
        if !configuration.endpoint.isEmpty { return configuration.endpoint }
        let isSandbox = token.service == .apnsSandbox || configuration.isSandbox
        return isSandbox ? "https://api.sandbox.push.apple.com" : "https://api.push.apple.com"
    }

    private func headers(of delivery: PushDelivery, authorization: String) -> [(String, String)] {
        let notification = delivery.notification
        return [
            ("authorization", "bearer \(authorization)"),
            ("apns-id", notification.id),
            ("apns-topic", delivery.token.appID.isEmpty ? configuration.topic : delivery.token.appID),
            ("apns-push-type", "alert"),
            ("apns-priority", notification.priority == .high ? "10" : "5"),
            ("apns-expiration", String(max(1, notification.expiresAt.rawValue / 1000))),
            ("apns-collapse-id", Self.collapseID(notification.collapseKey)),
            ("content-type", "application/json"),
        ]
    }

    /// Returns the collapse key itself, or its hash if it is empty, too long, or not visible ASCII.
    static func collapseID(_ key: String) -> String {
        let isPlain = key.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        if isPlain, (1...maxCollapseBytes).contains(key.utf8.count) { return key }
        return Data(SHA256.hash(data: Data(key.utf8))).base64URL
    }

    /// Returns the payload of a notification. It has at most ``maxPayloadBytes``. If the notification is too long,
    /// `data` is left out first; then the body is cut, then the title.
    static func payload(of notification: PushNotification) -> Data {
        PayloadFitting.fit(notification, limit: maxPayloadBytes) { notification, isTruncated in
            .members([
                "aps": .members([
                    "alert": .members([
                        "title": notification.title.isEmpty ? nil : .string(notification.title),
                        "body": .string(notification.body),
                    ]),
                    "badge": notification.badge.map { .integer($0) },
                    // Lets an extension of the app fetch the message and show it in full.
                    "mutable-content": 1,
                    "sound": notification.hasSound ? "default" : nil,
                    "thread-id": notification.reference.conversation.map { .string($0) },
                ]),
                "data": PayloadFitting.data(of: notification),
                "hermes": PayloadFitting.reference(notification, isTruncated: isTruncated),
            ])
        }
    }
}
