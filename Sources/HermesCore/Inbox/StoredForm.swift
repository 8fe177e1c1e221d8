// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The encoding of values in stores. A form may only be extended at its end, because new versions read the files of old
/// versions.
///
/// Numbers are little-endian. Each text is preceded by its length.
package enum StoredForm {
    package static func append(_ value: UInt64, count: Int, to bytes: inout [UInt8]) {
        for shift in 0..<count {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift * 8)))
        }
    }

    package static func take(_ count: Int, from bytes: inout ArraySlice<UInt8>) -> UInt64? {
        guard bytes.count >= count else { return nil }
        let value = bytes.prefix(count).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        bytes = bytes.dropFirst(count)
        return value
    }

    /// Appends the length in two bytes, then the text. Text after the first 65,535 bytes is cut off.
    static func append(_ text: String, to bytes: inout [UInt8]) {
        let characters = text.utf8.prefix(Int(UInt16.max))
        append(UInt64(characters.count), count: 2, to: &bytes)
        bytes.append(contentsOf: characters)
    }

    static func takeText(from bytes: inout ArraySlice<UInt8>) -> String? {
        guard let count = take(2, from: &bytes), bytes.count >= Int(count) else { return nil }
        let text = String(decoding: bytes.prefix(Int(count)), as: UTF8.self)
        bytes = bytes.dropFirst(Int(count))
        return text
    }

    static func append(_ user: UserID, to bytes: inout [UInt8]) { append(UInt64(user.rawValue), count: 4, to: &bytes) }

    package static func takeUser(from bytes: inout ArraySlice<UInt8>) -> UserID? {
        take(4, from: &bytes).flatMap { UserID($0) }
    }

    static func append(_ id: MessageID, to bytes: inout [UInt8]) {
        append(id.high, count: 8, to: &bytes)
        append(id.low, count: 8, to: &bytes)
    }

    static func takeMessageID(from bytes: inout ArraySlice<UInt8>) -> MessageID? {
        guard let high = take(8, from: &bytes), let low = take(8, from: &bytes) else { return nil }
        return MessageID(high: high, low: low)
    }

    static func append(_ time: Timestamp, to bytes: inout [UInt8]) {
        append(UInt64(bitPattern: time.rawValue), count: 8, to: &bytes)
    }

    static func takeTime(from bytes: inout ArraySlice<UInt8>) -> Timestamp? {
        take(8, from: &bytes).map { Timestamp(rawValue: Int64(bitPattern: $0)) }
    }

    /// Appends a 1:1 conversation as 1 and the two accounts. Appends a group as 2, the group and four zero bytes.
    static func append(_ conversation: ConversationID, to bytes: inout [UInt8]) {
        switch conversation {
        case .direct(let low, let high):
            append(1, count: 1, to: &bytes)
            append(low, to: &bytes)
            append(high, to: &bytes)
        case .group(let group):
            append(2, count: 1, to: &bytes)
            append(UInt64(group.rawValue), count: 4, to: &bytes)
            append(0, count: 4, to: &bytes)
        }
    }

    static func takeConversation(from bytes: inout ArraySlice<UInt8>) -> ConversationID? {
        guard let kind = take(1, from: &bytes), let a = take(4, from: &bytes), let b = take(4, from: &bytes) else {
            return nil
        }
        // Both numbers have at most four bytes, so they fit into `Int64`.
        return ConversationID(kind: Int64(kind), a: Int64(a), b: Int64(b))
    }
}
