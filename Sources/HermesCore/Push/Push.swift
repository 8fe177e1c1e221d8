// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A push from a back end: an inbox entry that is not a message and has no sender.
package struct Push: Sendable, Hashable {
    /// The urgency of waking a sleeping device. A connected device gets every push at once.
    package enum Priority: UInt8, Sendable, Hashable, CaseIterable {
        /// The device is woken at a time that saves its battery.
        case normal = 0
        /// The device is woken at once.
        case high = 1
    }

    package let id: MessageID
    /// The content.
    package let content: PushContent
    package let priority: Priority
    /// The time after which the push is not delivered.
    package let expiresAt: Timestamp
    /// The only device that shows the push; nil if all devices of the account show it. On the account's other devices,
    /// the entry has a seq but shows nothing.
    package let device: DeviceID?

    package init(
        id: MessageID,
        content: PushContent,
        priority: Priority = .normal,
        expiresAt: Timestamp,
        device: DeviceID? = nil
    ) {
        self.id = id
        self.content = content
        self.priority = priority
        self.expiresAt = expiresAt
        self.device = device
    }

    /// Whether this device shows the push.
    package func isFor(_ device: DeviceID) -> Bool { self.device.map { $0 == device } ?? true }

    /// The approximate size of the push, in bytes.
    package var weight: Int { content.weight &+ 64 }

    /// Returns the same push with another expiry.
    package func expiring(at time: Timestamp) -> Push {
        Push(id: id, content: content, priority: priority, expiresAt: time, device: device)
    }

    /// Creates the same push with another id.
    package init(_ push: Push, id: MessageID) {
        self.init(
            id: id,
            content: push.content,
            priority: push.priority,
            expiresAt: push.expiresAt,
            device: push.device
        )
    }
}

/// The content of a push.
package struct PushContent: Sendable, Hashable {
    /// The longest title, in characters (Unicode scalars).
    package static let maxTitleCharacters = 256
    /// The longest body, in characters.
    package static let maxBodyCharacters = 4_096
    /// The longest data, in bytes.
    package static let maxDataBytes = 16_384
    /// The longest collapse key, in bytes: the limit of Apple's service.
    package static let maxCollapseKeyBytes = 64

    package var title: String
    package var body: String
    /// The application's own JSON object; empty if there is none.
    package var dataJSON: String
    /// The collapse key; empty if there is none. A newer push with the same key replaces an older push that is not
    /// delivered yet.
    package var collapseKey: String
    /// The application's own message; nil if there is none.
    package var message: TypedMessage?

    package init(
        title: String = "",
        body: String = "",
        dataJSON: String = "",
        collapseKey: String = "",
        message: TypedMessage? = nil
    ) {
        self.title = title
        self.body = body
        self.dataJSON = dataJSON
        self.collapseKey = collapseKey
        self.message = message
    }

    var weight: Int {
        title.utf8.count &+ body.utf8.count &+ dataJSON.utf8.count &+ collapseKey.utf8.count &+ (message?.weight ?? 0)
    }

    /// - Throws: `.invalidArgument`, `.tooLarge`; the error's message names the field.
    package func check() throws(HermesError) {
        guard !title.isEmpty || !body.isEmpty || !dataJSON.isEmpty || message != nil else {
            throw HermesError(.invalidArgument, "the push is empty: give it a title, a body, data or a message")
        }
        try message?.check()
        guard title.unicodeScalars.count <= Self.maxTitleCharacters else {
            throw HermesError(.tooLarge, "the title is longer than \(Self.maxTitleCharacters) characters")
        }
        guard body.unicodeScalars.count <= Self.maxBodyCharacters else {
            throw HermesError(.tooLarge, "the body is longer than \(Self.maxBodyCharacters) characters")
        }
        guard dataJSON.utf8.count <= Self.maxDataBytes else {
            throw HermesError(.tooLarge, "the data is larger than \(Self.maxDataBytes) bytes")
        }
        let key = collapseKey.utf8
        guard key.count <= Self.maxCollapseKeyBytes, key.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw HermesError(
                .ofValue(key.count, atMost: Self.maxCollapseKeyBytes),
                "the collapse key is at most \(Self.maxCollapseKeyBytes) characters of printable ASCII without blanks"
            )
        }
    }
}
