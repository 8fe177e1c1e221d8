// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Push: DurableKind {
    package static let storedKind = InboxEvent.StoredKind.push

    package func store(into bytes: inout [UInt8]) {
        StoredForm.append(id, to: &bytes)
        StoredForm.append(UInt64(priority.rawValue), count: 1, to: &bytes)
        StoredForm.append(expiresAt, to: &bytes)
        StoredForm.append(device?.rawValue ?? "", to: &bytes)
        StoredForm.append(content.title, to: &bytes)
        StoredForm.append(content.body, to: &bytes)
        StoredForm.append(content.dataJSON, to: &bytes)
        StoredForm.append(content.collapseKey, to: &bytes)
        guard let message = content.message else { return }
        StoredForm.append(message.type, to: &bytes)
        StoredForm.append(UInt64(message.bytes.count), count: 4, to: &bytes)
        bytes.append(contentsOf: message.bytes)
    }

    package init?(stored bytes: inout ArraySlice<UInt8>) {
        guard let id = StoredForm.takeMessageID(from: &bytes),
            let priority = StoredForm.take(1, from: &bytes).flatMap({ Priority(rawValue: UInt8(clamping: $0)) }),
            let expiresAt = StoredForm.takeTime(from: &bytes),
            let device = StoredForm.takeText(from: &bytes),
            let title = StoredForm.takeText(from: &bytes),
            let body = StoredForm.takeText(from: &bytes),
            let dataJSON = StoredForm.takeText(from: &bytes),
            let collapseKey = StoredForm.takeText(from: &bytes)
        else { return nil }
        let message: TypedMessage?
        do { message = try Self.takeMessage(from: &bytes) } catch { return nil }
        self.init(
            id: id,
            content: PushContent(
                title: title,
                body: body,
                dataJSON: dataJSON,
                collapseKey: collapseKey,
                message: message
            ),
            priority: priority,
            expiresAt: expiresAt,
            device: DeviceID(device)
        )
    }

    private struct DamagedMessage: Error {}

    /// Reads the message at the end of a push. Returns nil if there is none, as in pushes that older versions stored.
    ///
    /// - Throws: DamagedMessage if the message's bytes are cut off.
    private static func takeMessage(from bytes: inout ArraySlice<UInt8>) throws(DamagedMessage) -> TypedMessage? {
        guard !bytes.isEmpty else { return nil }
        guard let type = StoredForm.takeText(from: &bytes),
            let count = StoredForm.take(4, from: &bytes).flatMap({ Int(exactly: $0) }), count <= bytes.count
        else { throw DamagedMessage() }
        let message = TypedMessage(type: type, bytes: Array(bytes.prefix(count)))
        bytes = bytes.dropFirst(count)
        return message
    }

    package var actor: UserID? { nil }

    package func alert(for user: UserID) -> EventAlert? {
        var alert = EventAlert(id: id, title: content.title, body: content.body)
        alert.dataJSON = content.dataJSON
        alert.collapseKey = content.collapseKey
        alert.expiresAt = expiresAt
        alert.priority = priority == .high ? .high : .normal
        return alert
    }

    package var bytes: Int { weight }
    package var expiry: Timestamp? { expiresAt }
}
