// Hermes
// SPDX-License-Identifier: Apache-2.0

import CryptoExtras
import Foundation
package import HermesCore
import HermesWire

/// Sends through Firebase Cloud Messaging, HTTP v1: a service account signs a request for an access token (RFC 7523).
/// The token is used until it has nearly expired.
///
/// https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages
package final class FCMSender: PushSender {
    /// The largest size of a message's title, body and data together, in bytes (Google's limit: 4,096 bytes).
    static let maxPayloadBytes = 4_000
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"

    /// The parts of a service account's file that the sender needs.
    private struct ServiceAccount: Decodable {
        let projectID: String
        let privateKey: String
        let privateKeyID: String?
        let clientEmail: String
        let tokenURI: String

        private enum CodingKeys: String, CodingKey {
            case projectID = "project_id"
            case privateKey = "private_key"
            case privateKeyID = "private_key_id"
            case clientEmail = "client_email"
            case tokenURI = "token_uri"
        }
    }

    private struct AccessToken: Decodable {
        let accessToken: String
        let expiresIn: Int

        private enum CodingKeys: String, CodingKey {
            case accessToken = "access_token"
            case expiresIn = "expires_in"
        }
    }

    /// The longest time in seconds for which an access token is kept, even if the endpoint names a longer lifetime.
    private static let longestLifetime = 86_400

    private struct Assertion: Encodable {
        let iss: String
        let scope: String
        let aud: String
        let iat: Int64
        let exp: Int64
    }

    /// The token endpoint gave no access token.
    private struct TokenRefused: Error, CustomStringConvertible {
        let description: String
    }

    private let url: String
    private let http: PushHTTPClient
    private let credential: CachedCredential
    private let time: any TimeSource

    /// Reads the service account.
    ///
    /// - Parameters:
    ///   - endpoint: the origin to use instead of Google's host; empty to use Google's host.
    /// - Throws: ``PushConfigurationError``.
    package init(
        serviceAccountFile path: String,
        endpoint: String = "",
        http: PushHTTPClient,
        time: any TimeSource
    ) throws(PushConfigurationError) {
        let setting = "push.fcm.serviceAccountFile"
        let data = try KeyFile.read(path, setting: setting)
        guard let account = try? JSONDecoder().decode(ServiceAccount.self, from: data) else {
            throw PushConfigurationError(setting, "\"\(path)\" is not a service account's JSON file")
        }
        guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: account.privateKey) else {
            throw PushConfigurationError(setting, "\"\(path)\" holds no RSA key of 2048 bits or more (private_key)")
        }
        let project = account.projectID
        guard (1...64).contains(project.utf8.count),
            project.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-.:".contains($0)) })
        else {
            throw PushConfigurationError(setting, "\"\(path)\" names no project (project_id)")
        }
        self.http = http
        self.time = time
        let host = endpoint.isEmpty ? "https://fcm.googleapis.com" : endpoint
        url = "\(host)/v1/projects/\(account.projectID)/messages:send"
        let signer = TokenSigner(key: .rsa(key), keyID: account.privateKeyID)
        credential = CachedCredential(time: time) {
            try await Self.fetch(account, signer, http, now: time.latest())
        }
    }

    private static func fetch(
        _ account: ServiceAccount,
        _ signer: TokenSigner,
        _ http: PushHTTPClient,
        now: Timestamp
    ) async throws -> CachedCredential.Fresh {
        let seconds = now.rawValue / 1000
        let assertion = Assertion(
            iss: account.clientEmail,
            scope: scope,
            aud: account.tokenURI,
            iat: seconds,
            exp: seconds + 3600
        )
        let text = try signer.token(assertion)
        let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(text)"
        let answer = try await http.post(
            account.tokenURI,
            headers: [("content-type", "application/x-www-form-urlencoded")],
            body: Data(form.utf8)
        )
        guard answer.status == 200, let token = try? JSONDecoder().decode(AccessToken.self, from: answer.body) else {
            throw TokenRefused(description: "no access token: status \(answer.status), \(answer.excerpt)")
        }
        // The token becomes a field of a request's head.
        guard (1...16_384).contains(token.accessToken.utf8.count),
            token.accessToken.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw TokenRefused(description: "the access token is not of visible ASCII") }
        // The assumed lifetime is slightly shorter than the token's actual lifetime, so that the token does not
        // expire while a request is in transit. The number comes from another server and may have any value.
        let lifetime = min(max(0, token.expiresIn), longestLifetime) - 120
        return .init(text: token.accessToken, lifetime: .seconds(max(30, lifetime)))
    }

    package func send(_ delivery: PushDelivery) async -> PushSendOutcome { await send(delivery, isSecondTry: false) }

    private func send(_ delivery: PushDelivery, isSecondTry: Bool) async -> PushSendOutcome {
        let answer: PushHTTPClient.Answer
        let token: String
        do {
            token = try await credential.text()
            guard await delivery.isDue() else { return .withdrawn }
            answer = try await http.post(
                url,
                headers: [("authorization", "Bearer \(token)"), ("content-type", "application/json")],
                body: Self.payload(of: delivery, now: time.now())
            )
        } catch {
            return .retry(after: nil, isService: true, reason: "\(error)")
        }
        let outcome = Self.outcome(answer)
        // The access token itself was refused, and not only the project's key for APNs or Web Push.
        if answer.status == 401, case .retry(_, isService: true, _) = outcome {
            if await credential.refused(token), !isSecondTry { return await send(delivery, isSecondTry: true) }
        }
        return outcome
    }

    private struct Sent: Decodable {
        let name: String
    }

    private static func outcome(_ answer: PushHTTPClient.Answer) -> PushSendOutcome {
        if answer.status == 200 {
            let sent = try? JSONDecoder().decode(Sent.self, from: answer.body)
            return .delivered(id: sent?.name ?? "")
        }
        let error = (try? JSONParser.parse(Array(answer.body)))?["error"]
        let detail = error?["details"]?.array?.lazy.compactMap { $0["errorCode"]?.string }.first
        let code = detail ?? error?["status"]?.string ?? "status \(answer.status)"
        switch (answer.status, code) {
        case (404, "UNREGISTERED"):
            return .tokenGone(since: nil)
        case (_, "THIRD_PARTY_AUTH_ERROR"):
            // The project lacks the key for APNs or Web Push. Tokens of Android devices do not need it, so other
            // notifications are not delayed.
            return .retry(after: answer.retryAfter ?? .seconds(60), isService: false, reason: code)
        case (401, _), (403, "PERMISSION_DENIED"):
            // The service account is wrong. Sending works again after an operator has fixed it.
            return .retry(after: answer.retryAfter ?? .seconds(60), isService: true, reason: code)
        case (429, _):
            // This answer may concern only this one device, if somebody sends too much to it.
            return .retry(after: answer.retryAfter, isService: false, reason: code)
        case (500..., _):
            return .retry(after: answer.retryAfter, isService: true, reason: code)
        default:
            return .refused(reason: code)
        }
    }

    /// Returns the request's body. The values of FCM data are texts, so JSON is sent as text.
    static func payload(of delivery: PushDelivery, now: Timestamp) -> Data {
        var empty = delivery.notification
        empty.title = ""
        empty.body = ""
        let fixed = message(empty, token: delivery.token.text, now: now, data: [:]).text.utf8.count
        return PayloadFitting.fit(delivery.notification, limit: fixed + maxPayloadBytes) { notification, isTruncated in
            let hasData = PayloadFitting.data(of: notification) != nil
            let data = JSON.members([
                "data": hasData ? notification.data.map { .string($0) } : nil,
                "hermes": .string(PayloadFitting.reference(notification, isTruncated: isTruncated).text),
            ])
            return message(notification, token: delivery.token.text, now: now, data: data)
        }
    }

    private static func message(
        _ notification: PushNotification,
        token: String,
        now: Timestamp,
        data: JSON
    ) -> JSON {
        let collapse = JSON.string(APNsSender.collapseID(notification.collapseKey))
        let isHigh = notification.priority == .high
        let badge = notification.badge.map { JSON.integer($0) }
        // The lifetime is at most four weeks (Google's limit).
        let lifetime = min(max(0, (notification.expiresAt.rawValue &- now.rawValue) / 1000), 28 * 86_400)
        let android = JSON.members([
            "collapse_key": collapse,
            "notification": .members([
                "default_sound": notification.hasSound ? true : nil,
                "notification_count": badge,
                "tag": collapse,
            ]),
            "priority": isHigh ? "HIGH" : "NORMAL",
            "ttl": .string("\(lifetime)s"),
        ])
        let apns: JSON = [
            "headers": [
                "apns-collapse-id": collapse,
                "apns-expiration": .string(String(max(1, notification.expiresAt.rawValue / 1000))),
                "apns-priority": isHigh ? "10" : "5",
            ],
            "payload": [
                "aps": .members([
                    "badge": badge,
                    "mutable-content": 1,
                    "sound": notification.hasSound ? "default" : nil,
                ])
            ],
        ]
        return [
            "message": [
                "android": android,
                "apns": apns,
                "data": data,
                "notification": ["title": .string(notification.title), "body": .string(notification.body)],
                "token": .string(token),
            ]
        ]
    }
}
