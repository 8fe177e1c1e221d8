// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A kind of inbox event: how it is stored, who causes it, who sees it, and whom it wakes.
///
/// Every kind but messages, which stores keep apart from the inboxes. A kind is a type that conforms and a case of
/// ``InboxEvent``.
package protocol DurableKind: Sendable, Hashable {
    /// The number of the kind in stores.
    static var storedKind: InboxEvent.StoredKind { get }
    /// Appends the form in which stores keep it. See ``StoredForm``.
    func store(into bytes: inout [UInt8])
    /// Reads it from that form, also if an older version wrote it; nil if the bytes are damaged.
    init?(stored bytes: inout ArraySlice<UInt8>)

    /// The account that causes it; nil: the server or a back end. It decides whether a crowded inbox takes the entry.
    var actor: UserID? { get }
    /// The alert on a sleeping device of `user`; nil: no device is woken for it.
    func alert(for user: UserID) -> EventAlert?

    /// The size that it adds to a page, in bytes; 0 for what is always small.
    var bytes: Int { get }
    /// The time after which it is not delivered; nil: it is delivered as long as it is stored.
    var expiry: Timestamp? { get }
    /// Whether this device of the inbox's account shows it. On the others the entry has a seq and shows nothing.
    func isFor(_ device: DeviceID) -> Bool
}

extension DurableKind {
    package var bytes: Int { 0 }
    package var expiry: Timestamp? { nil }
    package func isFor(_ device: DeviceID) -> Bool { true }
}

/// The alert on a sleeping device for an entry.
package struct EventAlert: Sendable, Hashable {
    /// The time after which an alert is no news for somebody who picks up the device.
    static let lifetime = Duration.seconds(86_400)

    /// The id of the object that the entry is about; nil: there is none.
    package var id: MessageID?
    package var title: String
    package var body: String
    /// The application's own JSON object; empty: none.
    package var dataJSON = ""
    /// A newer alert with the same key replaces this one; empty: none.
    package var collapseKey = ""
    /// The time after which it is not shown; nil: ``lifetime`` after the commit.
    package var expiresAt: Timestamp?
    package var priority = PushNotification.Priority.high

    package init(id: MessageID? = nil, title: String, body: String) {
        self.id = id
        self.title = title
        self.body = body
    }
}
