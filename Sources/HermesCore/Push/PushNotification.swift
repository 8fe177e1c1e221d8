// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A notification for a device.
package struct PushNotification: Sendable, Hashable {
    /// The urgency of the delivery.
    package enum Priority: Sendable, Hashable {
        /// At once, waking the device.
        case high
        /// When it suits the device's battery.
        case normal
    }

    /// The inbox entry of the notification, so that the app can fetch it.
    package struct Reference: Sendable, Hashable {
        /// `direct/<the other's uid>` or `group/<id>`; nil if the entry belongs to no conversation.
        package var conversation: String?
        package var inboxSeq: UInt64
        package var messageID: String?
        /// The account whose inbox has the entry, because an app may have several; nil: the app knows.
        package var user: UserID?

        package init(conversation: String?, inboxSeq: UInt64, messageID: String? = nil, user: UserID? = nil) {
            self.conversation = conversation
            self.inboxSeq = inboxSeq
            self.messageID = messageID
            self.user = user
        }
    }

    /// A lower-case UUID; the same when the notification is sent again.
    package var id: String
    package var title: String
    package var body: String
    /// The number on the app's icon; nil leaves it.
    package var badge: Int?
    package var hasSound: Bool
    package var reference: Reference
    /// The back end's JSON object for the app; nil: none.
    package var data: String?
    /// Notifications with the same key replace each other, on the way and on the screen.
    package var collapseKey: String
    /// The time after which it is not shown.
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
package struct PushDelivery: Sendable, Hashable {
    package let notification: PushNotification
    package let token: PushToken
    /// The token's account, which bears the costs; nil: none.
    package let user: UserID?

    package init(_ notification: PushNotification, to token: PushToken, of user: UserID? = nil) {
        self.notification = notification
        self.token = token
        self.user = user
    }
}

/// The answer of a push service.
package enum PushSendOutcome: Sendable, Hashable {
    /// Accepted, with the service's id.
    case delivered(id: String)
    /// The token is invalid, since `since` if the service names the time. Delete it, unless it was registered again
    /// after that.
    case tokenGone(since: Timestamp?)
    /// Not delivered now. `isService`: the whole service fails (for Web Push, everything at the token's origin);
    /// otherwise only this notification fails.
    case retry(after: Duration?, isService: Bool, reason: String)
    /// Refused for good: a retry would not help. For logs.
    case refused(reason: String)
}

extension PushSendOutcome {
    /// For people.
    var words: String {
        switch self {
        case .delivered: "delivered"
        case .tokenGone: "token gone"
        case .retry(_, _, let reason): "retry: \(reason)"
        case .refused(let reason): "refused: \(reason)"
        }
    }
}
