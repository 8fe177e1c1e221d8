// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A notification for a device.
package struct PushNotification: Sendable, Hashable {
    /// The urgency of the delivery.
    package enum Priority: Sendable, Hashable {
        /// The notification is delivered at once and wakes the device.
        case high
        /// The notification is delivered at a time that saves the device's battery.
        case normal
    }

    /// The inbox entry of the notification, so that the app can fetch the entry.
    package struct Reference: Sendable, Hashable {
        /// The conversation, as `direct/<the peer's uid>` or `group/<id>`; nil if the entry belongs to no conversation.
        package var conversation: String?
        package var inboxSeq: UInt64
        package var messageID: String?
        /// The account whose inbox has the entry; nil if the app knows the account. An app may use several accounts.
        package var user: UserID?

        package init(conversation: String?, inboxSeq: UInt64, messageID: String? = nil, user: UserID? = nil) {
            self.conversation = conversation
            self.inboxSeq = inboxSeq
            self.messageID = messageID
            self.user = user
        }
    }

    /// The id: a lower-case UUID. It stays the same when the notification is sent again.
    package var id: String
    package var title: String
    package var body: String
    /// The number on the app's icon; nil leaves it unchanged.
    package var badge: Int?
    package var hasSound: Bool
    package var reference: Reference
    /// The back end's JSON object for the app; nil if there is none.
    package var data: String?
    /// A notification replaces an earlier notification with the same key, both during the delivery and on the screen.
    package var collapseKey: String
    /// The time after which the notification is not shown.
    package var expiresAt: Timestamp
    package var priority: Priority

    package init(
        id: String,
        title: String,
        body: String,
        badge: Int? = nil,
        hasSound: Bool = true,
        reference: Reference,
        data: String? = nil,
        collapseKey: String,
        expiresAt: Timestamp,
        priority: Priority = .high
    ) {
        self.id = id
        self.title = title
        self.body = body
        self.badge = badge
        self.hasSound = hasSound
        self.reference = reference
        self.data = data
        self.collapseKey = collapseKey
        self.expiresAt = expiresAt
        self.priority = priority
    }
}

/// A notification on its way to one device.
package struct PushDelivery: Sendable {
    package let notification: PushNotification
    package let token: PushToken
    /// The token's account; nil if there is none. The delivery counts towards the limits of this account.
    package let user: UserID?
    /// Whether the device may still get the notification. This is checked right before each request, because the steps
    /// before a request (getting a credential, resolving a name) can take many seconds.
    package let isDue: @Sendable () async -> Bool

    package init(
        _ notification: PushNotification,
        to token: PushToken,
        of user: UserID? = nil,
        isDue: @escaping @Sendable () async -> Bool = { true }
    ) {
        self.notification = notification
        self.token = token
        self.user = user
        self.isDue = isDue
    }
}

/// The answer of a push service.
package enum PushSendOutcome: Sendable, Hashable {
    /// The service has accepted the notification, and gave it this id.
    case delivered(id: String)
    /// The token is invalid. If the service names the time since which the token has been invalid, `since` is this
    /// time. Delete the token, but keep it if it was registered again after this time.
    case tokenGone(since: Timestamp?)
    /// The notification could not be delivered now. If `isService` is true, the whole service fails; otherwise, only
    /// this notification fails. For Web Push, the service is everything at the token's origin.
    case retry(after: Duration?, isService: Bool, reason: String)
    /// The service refuses the notification, and a retry would not help. The reason is for logs.
    case refused(reason: String)
    /// Nothing was sent, because the device may not get the notification any more (``PushDelivery/isDue``).
    case withdrawn
}

extension PushSendOutcome {
    /// The largest number of bytes that are kept of a text from a push service. The text is an id, or the reason for a
    /// refusal.
    private static let maxTextBytes = 200

    /// The outcome with texts of bounded length. A service may send any text, and each text is stored for the webhook.
    var cut: PushSendOutcome {
        func cut(_ text: String) -> String {
            guard text.utf8.count > Self.maxTextBytes else { return text }
            return String(decoding: text.utf8.prefix(Self.maxTextBytes), as: UTF8.self)
        }
        return switch self {
        case .delivered(let id): .delivered(id: cut(id))
        case .retry(let after, let isService, let reason):
            .retry(after: after, isService: isService, reason: cut(reason))
        case .refused(let reason): .refused(reason: cut(reason))
        case .tokenGone, .withdrawn: self
        }
    }

    /// The outcome in words, for people.
    var words: String {
        switch self {
        case .delivered: "delivered"
        case .tokenGone: "token gone"
        case .retry(_, _, let reason): "retry: \(reason)"
        case .refused(let reason): "refused: \(reason)"
        case .withdrawn: "withdrawn"
        }
    }
}
