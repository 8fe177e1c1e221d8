// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A kind of inbox event. The kind defines how an event is stored, who causes it, who sees it, and whom it wakes.
///
/// Every kind has a case of ``InboxEvent``. Every kind except messages has a type that conforms to this protocol. The
/// type of messages does not conform, because stores keep messages separately from the inboxes.
package protocol DurableKind: Sendable, Hashable {
    /// The number of the kind in stores.
    static var storedKind: InboxEvent.StoredKind { get }
    /// Appends the event in the form that stores keep (``StoredForm``).
    func store(into bytes: inout [UInt8])
    /// Reads the event from its stored form, even if an older version wrote it. Returns nil if the bytes are damaged.
    init?(stored bytes: inout ArraySlice<UInt8>)

    /// The account that caused the event; nil if the server or a back end caused it. Whether a crowded inbox accepts
    /// the entry depends on this account.
    var actor: UserID? { get }
    /// Returns the alert for a sleeping device of `user`; nil if the event does not wake a device.
    func alert(for user: UserID) -> EventAlert?

    /// The size that the event adds to a page, in bytes; 0 for a kind that is always small.
    var bytes: Int { get }
    /// The time after which the event is not delivered; nil if it is delivered for as long as it is stored.
    var expiry: Timestamp? { get }
    /// Whether the given device of the inbox's account shows the event. On the account's other devices, the entry has a
    /// seq but shows nothing.
    func isFor(_ device: DeviceID) -> Bool
}

extension DurableKind {
    package var bytes: Int { 0 }
    package var expiry: Timestamp? { nil }
    package func isFor(_ device: DeviceID) -> Bool { true }
}

/// The alert that a sleeping device shows for an entry.
package struct EventAlert: Sendable, Hashable {
    /// The age, counted from the commit, at which an alert is too old to be shown.
    static let lifetime = Duration.seconds(86_400)

    /// The id of the object that the entry is about; nil if there is no such object.
    package var id: MessageID?
    package var title: String
    package var body: String
    /// The application's own JSON object; empty if there is none.
    package var dataJSON = ""
    /// The collapse key; empty if there is none. A newer alert with the same key replaces this alert.
    package var collapseKey = ""
    /// The time after which the alert is not shown; nil means ``lifetime`` after the commit.
    package var expiresAt: Timestamp?
    package var priority = PushNotification.Priority.high

    package init(id: MessageID? = nil, title: String, body: String) {
        self.id = id
        self.title = title
        self.body = body
    }
}
