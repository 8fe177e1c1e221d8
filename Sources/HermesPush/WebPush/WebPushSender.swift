// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
package import HermesCore
import HermesWire
import Synchronization

/// Sends notifications to browsers (RFC 8030). Messages are encrypted (RFC 8291), and a signed token identifies the
/// server (VAPID, RFC 8292).
///
/// Endpoints come from clients. So they must use https at a public name (``WebPushSubscription``) of a configured host,
/// and the name must not lead to a private address. State: a `Mutex` around the tokens by origin.
package final class WebPushSender: PushSender {
    package struct Configuration: Sendable {
        /// The public key in the browsers' form (`applicationServerKey`): 65 bytes in base64url.
        package var publicKey: String
        /// The file of the matching private key: PEM, or 32 bytes in base64url.
        package var privateKeyFile: String
        /// A `mailto:` or `https:` URL: the contact that a push service uses for complaints.
        package var subject: String
        /// The hosts of push services. `*.` before a name means all hosts below that name, and `*` means any host. If
        /// `:` and a port follow the host, this port is allowed instead of 443.
        package var hosts: [String]
        /// The origin to use instead of each endpoint's origin, for tests; empty to use the endpoint's origin.
        package var endpoint: String

        package init(
            publicKey: String,
            privateKeyFile: String,
            subject: String,
            hosts: [String] = WebPushSender.knownHosts,
            endpoint: String = ""
        ) {
            self.publicKey = publicKey
            self.privateKeyFile = privateKeyFile
            self.subject = subject
            self.hosts = hosts
            self.endpoint = endpoint
        }
    }

    /// The hosts of today's browsers: Chrome, Firefox, Edge, Safari.
    package static let knownHosts = [
        "fcm.googleapis.com", "*.push.services.mozilla.com", "*.notify.windows.com", "*.push.apple.com",
    ]
    /// The lifetime of a token, in seconds. The longest allowed lifetime is a day (RFC 8292, section 2).
    private static let tokenLifetime: Int64 = 12 * 3600
    private static let maxTokens = 1_000
    /// The time for which a host must lead nowhere before its subscriptions count as gone.
    private static let lostAfter = Duration.seconds(24 * 3600)

    private struct SignedToken: Sendable {
        let text: String
        let expiresAt: Int64
    }

    private struct Claims: Encodable {
        let aud: String
        let exp: Int64
        let sub: String
    }

    private let configuration: Configuration
    private let publicKey: String
    private let signer: TokenSigner
    private let http: PushHTTPClient
    private let names: PublicNames
    private let time: any TimeSource
    private let tokens = Mutex<[String: SignedToken]>([:])

    /// Reads the key.
    ///
    /// - Parameter names: resolves the hosts. If this is nil, the sender creates its own resolver.
    /// - Throws: ``PushConfigurationError``.
    package init(
        _ configuration: Configuration,
        http: PushHTTPClient,
        time: any TimeSource,
        names: PublicNames? = nil
    ) throws(PushConfigurationError) {
        let setting = "push.webPush.privateKeyFile"
        let file = try KeyFile.read(configuration.privateKeyFile, setting: setting)
        guard let key = Self.privateKey(file) else {
            throw PushConfigurationError(setting, "\"\(configuration.privateKeyFile)\" holds no P-256 key")
        }
        let own = key.publicKey.x963Representation
        guard Data(base64URL: configuration.publicKey) == own else {
            throw PushConfigurationError(
                "push.webPush.publicKey",
                "it does not belong to the private key, whose public key is \(own.base64URL)"
            )
        }
        guard configuration.subject.hasPrefix("mailto:") || configuration.subject.hasPrefix("https:") else {
            throw PushConfigurationError("push.webPush.subject", "it must begin with mailto: or https:")
        }
        self.configuration = configuration
        publicKey = own.base64URL
        signer = TokenSigner(key: .p256(key))
        self.http = http
        self.names = names ?? PublicNames(time: time)
        self.time = time
    }

    private static func privateKey(_ file: Data) -> P256.Signing.PrivateKey? {
        let text = String(decoding: file, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        if let key = try? P256.Signing.PrivateKey(pemRepresentation: text) { return key }
        return Data(base64URL: text).flatMap { try? P256.Signing.PrivateKey(rawRepresentation: $0) }
    }

    package func send(_ delivery: PushDelivery) async -> PushSendOutcome {
        let subscription: WebPushSubscription
        do throws(HermesError) {
            subscription = try WebPushSubscription(parsing: delivery.token.text)
        } catch {
            return .tokenGone(since: nil)
        }
        guard configuration.allows(subscription) else {
            return .refused(reason: "\(subscription.place) is not among push.webPush.hosts")
        }
        var route: PushHTTPClient.Route?
        if configuration.endpoint.isEmpty {
            switch await names.address(of: subscription.host, for: delivery.user) {
            case .address(let address): route = .init(host: subscription.host, address: address)
            case .nowhere(let age):
                let reason = "\(subscription.host) resolves to a private address or to no address"
                // The host exists if the operator's configuration names it or a host above it. In that case the
                // resolver failed, and the failure is temporary.
                if configuration.names(subscription) { return .retry(after: nil, isService: true, reason: reason) }
                return age >= Self.lostAfter ? .tokenGone(since: nil) : .refused(reason: reason)
            case .unknown(let wait):
                return .retry(after: wait, isService: false, reason: "\(subscription.host) cannot be resolved")
            }
        }
        let notification = delivery.notification
        let answer: PushHTTPClient.Answer
        do {
            let body: Data
            do {
                body = try WebPushEncryption.encrypt(
                    Self.payload(of: notification),
                    for: subscription.publicKey,
                    secret: subscription.secret
                )
            } catch {
                // The browser's key is not a point of the curve, so nothing can be sent to the browser.
                return .tokenGone(since: nil)
            }
            guard await delivery.isDue() else { return .withdrawn }
            let lifetime = max(0, (notification.expiresAt.rawValue &- time.now().rawValue) / 1000)
            answer = try await http.post(
                url(of: subscription),
                over: route,
                headers: [
                    ("authorization", "vapid t=\(try token(for: subscription.origin)), k=\(publicKey)"),
                    ("content-encoding", "aes128gcm"),
                    ("content-type", "application/octet-stream"),
                    ("ttl", String(min(lifetime, 28 * 86_400))),
                    ("urgency", notification.priority == .high ? "high" : "normal"),
                    ("topic", Self.topic(notification.collapseKey)),
                ],
                body: body
            )
        } catch {
            if let route { await names.unreachable(route.host, at: route.address) }
            // There was no answer at all, so requests for the service's other subscriptions would wait as long.
            return .retry(after: nil, isService: true, reason: "\(error)")
        }
        switch answer.status {
        case 200..<300:
            return .delivered(id: answer.headers["location"] ?? "")
        case 404, 410: return .tokenGone(since: nil)
        case 429, 500...:
            // This answer may concern only this one subscription, because the subscription's owner chooses the path.
            // So other subscriptions are not delayed.
            return .retry(after: answer.retryAfter, isService: false, reason: "status \(answer.status)")
        default: return .refused(reason: "status \(answer.status): \(answer.excerpt)")
        }
    }

    /// Returns the topic for a collapse key: 32 characters of base64url, which is the longest allowed topic (RFC
    /// 8030, section 5.4).
    static func topic(_ key: String) -> String {
        Data(SHA256.hash(data: Data(key.utf8)).prefix(24)).base64URL
    }

    static func payload(of notification: PushNotification) -> Data {
        PayloadFitting.fit(notification, limit: WebPushEncryption.maxMessageBytes) { notification, isTruncated in
            .members([
                "title": .string(notification.title),
                "body": .string(notification.body),
                "tag": .string(APNsSender.collapseID(notification.collapseKey)),
                "badge": notification.badge.map { .integer($0) },
                "data": PayloadFitting.data(of: notification),
                "hermes": PayloadFitting.reference(notification, isTruncated: isTruncated),
            ])
        }
    }

    private func token(for origin: String) throws -> String {
        // The service compares the token's time with its own clock, so the token contains the time of the wall clock
        // as it is set.
        let now = time.latest().rawValue / 1000
        if let token = tokens.withLock({ $0[origin] }) {
            let rest = token.expiresAt - now
            // The remaining time is longer than the lifetime if the clock was set back. A service may refuse such a
            // token.
            if rest > Self.tokenLifetime / 2, rest <= Self.tokenLifetime { return token.text }
        }
        let claims = Claims(aud: origin, exp: now + Self.tokenLifetime, sub: configuration.subject)
        let token = SignedToken(text: try signer.token(claims), expiresAt: claims.exp)
        tokens.withLock { tokens in
            if tokens.count >= Self.maxTokens { tokens.removeAll() }
            tokens[origin] = token
        }
        return token.text
    }

    // MARK: Connections

    /// Returns the URL. It is built from the parts that were checked, because another parser of the endpoint might
    /// find another host.
    private func url(of subscription: WebPushSubscription) -> String {
        let parts = URLComponents(string: subscription.endpoint)
        let path = parts?.percentEncodedPath ?? ""
        guard configuration.endpoint.isEmpty else { return configuration.endpoint + path }
        return subscription.origin + path + (parts?.percentEncodedQuery.map { "?" + $0 } ?? "")
    }
}

extension WebPushSender.Configuration {
    /// Whether the operator allows the host and port of a subscription.
    package func allows(_ subscription: WebPushSubscription) -> Bool {
        hosts.contains { Self.matches($0, subscription, anyHost: true) }
    }

    /// Whether the operator has named the host, or a host above it, and not only allowed any host (`*`).
    func names(_ subscription: WebPushSubscription) -> Bool {
        hosts.contains { Self.matches($0, subscription, anyHost: false) }
    }

    private static func matches(_ entry: String, _ subscription: WebPushSubscription, anyHost: Bool) -> Bool {
        let parts = entry.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let port = parts.count > 1 ? Int(parts[1]) : WebPushSubscription.usualPort
        guard let pattern = parts.first, port == subscription.port else { return false }
        if pattern == "*" { return anyHost }
        if pattern.hasPrefix("*.") { return subscription.host.hasSuffix(pattern.dropFirst()) }
        return subscription.host == pattern
    }
}

extension WebPushSubscription {
    /// The host for people, with its port if the port is not the usual one.
    fileprivate var place: String { port == Self.usualPort ? host : "\(host):\(port)" }
}
