// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a push service is to show on a device.
package struct PushNotification: Sendable, Hashable {
    /// How soon.
    package enum Priority: Sendable, Hashable {
        /// At once, waking the device.
        case high
        /// When it suits the device's battery.
        case normal
    }

    /// The inbox entry it stands for, so that the app can fetch exactly that.
    package struct Reference: Sendable, Hashable {
        /// `direct/<the other's uid>` or `group/<id>`; nil where the entry belongs to none.
        package var conversation: String?
        package var inboxSeq: UInt64
        package var messageID: String?

        package init(conversation: String?, inboxSeq: UInt64, messageID: String? = nil) {
            self.conversation = conversation
            self.inboxSeq = inboxSeq
            self.messageID = messageID
        }
    }

    /// A UUID in lower case; stays the same when the notification is sent again.
    package var id: String
    package var title: String
    package var body: String
    /// What the app's icon shows; nil leaves it.
    package var badge: Int?
    package var hasSound: Bool
    package var reference: Reference
    /// A JSON object for the app, from the back end that pushed; nil: none.
    package var data: String?
    /// Notifications with the same one take each other's place, on the way and on the screen.
    package var collapseKey: String
    /// Not to be shown after this.
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

    package init(_ notification: PushNotification, to token: PushToken) {
        self.notification = notification
        self.token = token
    }
}

/// What a push service said.
package enum PushSendOutcome: Sendable, Hashable {
    /// Taken; the service's id for it.
    case delivered(id: String)
    /// The token is no longer one, since `since` if the service says: forget it, unless it was given again after that.
    case tokenGone(since: Timestamp?)
    /// Not now. `isService`: nobody's notifications go through; else only this one's.
    case retry(after: Duration?, isService: Bool, reason: String)
    /// Never: trying the same again would not help. For logs.
    case refused(reason: String)
}
