// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Who is connected: the attachments of each user, by device. Also presence, which follows from it.
///
/// State: one `Mutex` around a dictionary (sharded by user if profiling asks for it); no attachment is called under it.
package final class SessionRegistry: Sendable {
    /// Adds an attachment. One with the same user and device is ended with ``SessionEnd/replaced``.
    /// Watchers of the user's presence are told if it was offline.
    package func attach(_ attachment: any Attachment) {}

    /// Removes an attachment; does nothing if it was replaced.
    package func detach(_ attachment: any Attachment) {}

    /// Whether any device of the user is connected.
    package func isOnline(_ user: UserID) -> Bool { false }

    /// The devices of the user that are connected.
    package func attachedDevices(of user: UserID) -> [DeviceID] { [] }

    /// Ends sessions of a user: those for which `matching` holds.
    package func end(_ user: UserID, _ reason: SessionEnd, where matching: (Principal) -> Bool = { _ in true }) {}

    /// Passes an ephemeral event to all attachments of a user.
    /// - Returns: how many there were.
    @discardableResult
    package func notify(_ user: UserID, _ event: EphemeralEvent) -> Int { 0 }

    /// From now on the attachment gets presence events of these users; at most 1,000 per attachment.
    package func watch(_ users: [UserID], by attachment: any Attachment) {}

    /// No more presence events of these users.
    package func unwatch(_ users: [UserID], by attachment: any Attachment) {}

    init() {}
}
