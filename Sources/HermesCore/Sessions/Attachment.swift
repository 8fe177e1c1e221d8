// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A live, authenticated connection of one device, as the core sees it. Implemented by the gateways.
///
/// The core calls these from any thread and never waits; the attachment hops to its own event loop (through its
/// loop's mailbox, so that many calls cost one hop) and applies its own limits to what it writes.
package protocol Attachment: AnyObject, Sendable {
    var principal: Principal { get }

    /// Entries were committed to the user's inbox. Contiguous within one call; between calls something may be
    /// missing, which ``InboxFeed`` notices and fetches.
    func inboxAdvanced(_ entries: [InboxEntry])

    /// Something that matters only now.
    func ephemeralArrived(_ event: EphemeralEvent)

    /// The connection must end; tell the client why, then close.
    func ended(_ reason: SessionEnd)
}

/// What is told to those who are connected and to nobody else.
package enum EphemeralEvent: Sendable, Hashable {
    case typing(ConversationID, by: UserID, stopped: Bool)
    case presence(UserID, isOnline: Bool, lastSeen: Timestamp?)
    /// Set-up data for peer-to-peer links and calls; opaque to the core (`hermes.v1.Signal`, or IMPB's p2p bodies
    /// translated to it).
    case signal(from: UserID, device: DeviceID, payload: [UInt8])
}

/// Why the server ends a session.
package enum SessionEnd: Sendable, Hashable {
    /// The same device authenticated again.
    case replaced
    case accountDisabled
    case accountDeleted
    /// The account has another name. Ends connections that go by the name alone, those of MQTT.
    case accountRenamed
    /// The token was revoked, the password changed or the device removed.
    case revoked
    case shuttingDown

    /// Whether what is kept under the account's name goes, too: the name may be another's next.
    package var endsKeptSessions: Bool { self == .accountDeleted || self == .accountRenamed }
}
