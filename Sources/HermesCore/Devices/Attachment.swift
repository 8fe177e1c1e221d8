// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A live, authenticated connection of one device. The gateways implement this protocol.
///
/// The core calls these methods on any thread and never waits. The attachment hops to its own event loop through the
/// loop's mailbox, so that many calls cost only one hop. It applies its own limits to its output.
package protocol Attachment: AnyObject, Sendable {
    var principal: Principal { get }

    /// The place of the request in which the client asked for the device.
    var order: AttachmentOrder { get }

    /// Whether the attachment receives entries and ephemeral events. An attachment that does not receive them is
    /// registered so that it ends with the account and counts towards the account's presence.
    var takesEvents: Bool { get }

    /// Whether very much work waits for the attachment's event loop. If so, notices of presence are sent later.
    var isBehind: Bool { get }

    /// Receives entries that were committed to the user's inbox. They are contiguous within one call. If entries are
    /// missing between calls, ``InboxFeed`` notices this and fetches them.
    func inboxAdvanced(_ entries: [InboxEntry])

    /// Receives an ephemeral event.
    ///
    /// - Returns: whether the event was accepted; false if it was dropped, because very much work waits for the
    ///   attachment's event loop. Notices of presence are always accepted.
    func ephemeralArrived(_ event: EphemeralEvent) -> Bool

    /// Called when the account has a new name (``Principal/nickName``). The topic rules for the new name apply from now
    /// on.
    func renamed()

    /// Ends the connection. The attachment tells the client the reason, and then closes the connection.
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
    /// Set-up data for peer-to-peer links and calls: a `hermes.v1.Signal`. IMPB's p2p bodies are translated to it. The
    /// data is opaque to the core.
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
    /// The account was renamed. This ends the connections whose permissions depend on the name: the MQTT connections.
    case accountRenamed
    /// The token was revoked, the password was changed, or the device was removed.
    case revoked
    case shuttingDown

    /// Whether the account's kept sessions also end.
    package var endsKeptSessions: Bool { self == .accountDeleted }

    /// Whether another account may get the account's former name from now on.
    package var freesName: Bool { self == .accountDeleted || self == .accountRenamed }
}
