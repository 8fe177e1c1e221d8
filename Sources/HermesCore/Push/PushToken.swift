// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A device's push token, as the service gave it to the app.
package struct PushToken: Sendable, Hashable {
    /// The push service. The numbers are stored. They are the numbers of `hermes.v1.PushToken.Service`.
    package enum Service: UInt8, Sendable, CaseIterable {
        /// Apple's production service.
        case apns = 1
        /// Apple's sandbox service.
        case apnsSandbox = 2
        /// Google's Firebase Cloud Messaging.
        case fcm = 3
        /// Web Push (RFC 8030).
        case webPush = 4
    }

    /// The longest token, in bytes.
    package static let maxBytes = 4_096
    /// The longest app identifier, in bytes.
    package static let maxAppIDBytes = 128

    package let service: Service
    /// The token. An APNs token is in hexadecimal; a token for Web Push is the subscription as JSON. A token that a
    /// client sets gets its canonical spelling. A token that an earlier version stored can have another spelling.
    package let text: String
    /// The app's bundle or package identifier. If it is empty, the identifier of the configuration is used.
    package let appID: String

    /// Creates a token that was stored.
    package init(stored service: Service, text: String, appID: String) {
        self.service = service
        self.text = text
        self.appID = appID
    }

    /// Checks the length and the alphabet of a client's token. For Web Push, checks that the subscription is complete
    /// and names a public host. Sets ``text`` to the token's canonical spelling: hexadecimal digits are in lower case,
    /// and a subscription is ``WebPushSubscription/text``.
    ///
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    package init(_ service: Service, text: String, appID: String) throws(HermesError) {
        guard text.utf8.count <= Self.maxBytes else {
            throw HermesError(.tooLarge, "a push token is at most \(Self.maxBytes) bytes")
        }
        guard appID.utf8.count <= Self.maxAppIDBytes else {
            throw HermesError(.tooLarge, "app_id is at most \(Self.maxAppIDBytes) bytes")
        }
        guard appID.utf8.allSatisfy(Self.isIdentifier) else {
            throw HermesError(.invalidArgument, "app_id is letters, digits, dots, hyphens and underscores")
        }
        let spelling: String
        switch service {
        case .apns, .apnsSandbox:
            guard (32...200).contains(text.utf8.count), text.utf8.allSatisfy(\.isHexadecimal) else {
                throw HermesError(.invalidArgument, "an APNs token is written in hexadecimal")
            }
            spelling = text.lowercased()
        case .fcm:
            guard !text.isEmpty, text.utf8.allSatisfy({ Self.isIdentifier($0) || $0 == UInt8(ascii: ":") }) else {
                throw HermesError(.invalidArgument, "an FCM token is letters, digits and : . - _")
            }
            spelling = text
        case .webPush:
            spelling = try WebPushSubscription(parsing: text).text
        }
        self.init(stored: service, text: spelling, appID: appID)
    }

    /// The text by which the service recognizes the token. Two tokens of one service with the same text are the same
    /// token, although they may be spelled differently or have different app identifiers. For Web Push, the text is the
    /// endpoint. If a stored Web Push subscription cannot be parsed, the whole text is the identity.
    ///
    /// Stores keep this text. If the rule changes, they need a migration.
    package var identity: String {
        switch service {
        case .apns, .apnsSandbox: text.lowercased()
        case .fcm: text
        case .webPush: (try? WebPushSubscription(parsing: text))?.endpoint ?? text
        }
    }

    /// Whether a byte is an ASCII letter or digit, or one of `.`, `-` and `_`.
    static func isIdentifier(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

extension UInt8 {
    fileprivate var isHexadecimal: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}

extension PushToken.Service {
    /// The name for metrics and webhooks.
    package var name: String {
        switch self {
        case .apns: "apns"
        case .apnsSandbox: "apns_sandbox"
        case .fcm: "fcm"
        case .webPush: "web_push"
        }
    }
}
