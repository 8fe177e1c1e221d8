// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A live, authenticated connection of one device. Implemented by the gateways.
///
/// The core calls these methods on any thread and never waits. The attachment hops to its own event loop (through its
/// loop's mailbox, so that many calls cost one hop) and applies its own limits to its output.
package protocol Attachment: AnyObject, Sendable {
    var principal: Principal { get }

    /// The place of the request with which the client became the device.
    var order: AttachmentOrder { get }

    /// Whether the attachment takes entries and ephemeral events. An attachment that does not take them is registered
    /// so that it ends with the account and counts for the account's presence.
    var takesEvents: Bool { get }

    /// Whether very much work waits for the attachment's event loop. If so, notices of presence are sent later.
    var isBehind: Bool { get }

    /// Takes entries that were committed to the user's inbox. They are contiguous within one call; ``InboxFeed``
    /// notices and fetches what is missing between calls.
    func inboxAdvanced(_ entries: [InboxEntry])

    /// Takes an ephemeral event.
    ///
    /// - Returns: whether the event was taken; false: it was dropped, because very much work waits for the attachment's
    ///   event loop. Notices of presence are always taken.
    func ephemeralArrived(_ event: EphemeralEvent) -> Bool

    /// Notes that the account has a new name (``Principal/nickName``). The topic rules for the new name apply from now
    /// on.
    func renamed()

    /// Ends the connection: tells the client the reason, then closes.
    func ended(_ reason: AttachmentEnd)
}

extension Attachment {
    package var takesEvents: Bool { true }
    package var isBehind: Bool { false }
}

/// An event that only connected devices get.
package enum EphemeralEvent: Sendable, Hashable {
    case typing(ConversationID, by: UserID, stopped: Bool)
    case presence(UserID, isOnline: Bool, lastSeen: Timestamp?)
    /// Set-up data for peer-to-peer links and calls; opaque to the core (`hermes.v1.Signal`, or IMPB's p2p bodies
    /// translated to it).
    case signal(from: UserID, device: DeviceID, payload: [UInt8])
    /// A back end's command to the application, opaque to the server. Only IMPB carries it.
    case command([UInt8])
}

/// The reason why the server ends a connection.
package enum AttachmentEnd: Sendable, Hashable {
    /// The same device authenticated again.
    case replaced
    case accountDisabled
    case accountDeleted
    /// The account was renamed. This ends the connections whose permissions depend on the name: those of MQTT.
    case accountRenamed
    /// The token was revoked, the password changed or the device removed.
    case revoked
    case shuttingDown

    /// Whether the account's kept sessions also end.
    package var endsKeptSessions: Bool { self == .accountDeleted }

    /// Whether another account may get the account's former name from now on.
    package var freesName: Bool { self == .accountDeleted || self == .accountRenamed }
}
