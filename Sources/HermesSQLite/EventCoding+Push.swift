// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The layout of pushes. Append only, like all of ``EventCoding``.
extension EventCoding {
    static func append(_ push: Push, to bytes: inout [UInt8]) {
        append(push.id.high, count: 8, to: &bytes)
        append(push.id.low, count: 8, to: &bytes)
        append(UInt64(push.priority.rawValue), count: 1, to: &bytes)
        append(UInt64(bitPattern: push.expiresAt.rawValue), count: 8, to: &bytes)
        append(push.device?.rawValue ?? "", to: &bytes)
        append(push.content.title, to: &bytes)
        append(push.content.body, to: &bytes)
        append(push.content.dataJSON, to: &bytes)
        append(push.content.collapseKey, to: &bytes)
        guard let message = push.content.message else { return }
        append(message.type, to: &bytes)
        append(UInt64(message.bytes.count), count: 4, to: &bytes)
        bytes.append(contentsOf: message.bytes)
    }

    /// The message behind a push; nil if there is none, as in pushes of older versions.
    ///
    /// - Throws: DamagedMessage if its bytes are cut off.
    private static func takeMessage(from bytes: inout ArraySlice<UInt8>) throws(DamagedMessage) -> TypedMessage? {
        guard !bytes.isEmpty else { return nil }
        guard let type = takeText(from: &bytes), let count = take(4, from: &bytes).flatMap({ Int(exactly: $0) }),
            count <= bytes.count
        else { throw DamagedMessage() }
        let message = TypedMessage(type: type, bytes: Array(bytes.prefix(count)))
        bytes = bytes.dropFirst(count)
        return message
    }

    private struct DamagedMessage: Error {}

    static func takePush(from bytes: inout ArraySlice<UInt8>) -> Push? {
        guard let high = take(8, from: &bytes), let low = take(8, from: &bytes),
            let priority = take(1, from: &bytes).flatMap({ Push.Priority(rawValue: UInt8(clamping: $0)) }),
            let expiresAt = take(8, from: &bytes),
            let device = takeText(from: &bytes),
            let title = takeText(from: &bytes),
            let body = takeText(from: &bytes),
            let dataJSON = takeText(from: &bytes),
            let collapseKey = takeText(from: &bytes)
        else { return nil }
        let message: TypedMessage?
        do { message = try takeMessage(from: &bytes) } catch { return nil }
        return Push(
            id: MessageID(high: high, low: low),
            content: PushContent(
                title: title,
                body: body,
                dataJSON: dataJSON,
                collapseKey: collapseKey,
                message: message
            ),
            priority: priority,
            expiresAt: Timestamp(rawValue: Int64(bitPattern: expiresAt)),
            device: DeviceID(device)
        )
    }

    /// Encodes a push, for jobs.
    static func encode(_ push: Push) -> [UInt8] {
        var bytes: [UInt8] = []
        append(push, to: &bytes)
        return bytes
    }

    /// Encodes users, 4 bytes each.
    static func encode(_ users: [UserID]) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(4 * users.count)
        for user in users { append(UInt64(user.rawValue), count: 4, to: &bytes) }
        return bytes
    }

    /// Returns up to `limit` users after the first `cursor` ones.
    static func users(_ bytes: [UInt8], from cursor: Int, limit: Int) -> [UserID] {
        var rest = bytes.dropFirst(4 * cursor).prefix(4 * limit)
        var users: [UserID] = []
        while let user = take(4, from: &rest).flatMap({ UserID($0) }) { users.append(user) }
        return users
    }
}
