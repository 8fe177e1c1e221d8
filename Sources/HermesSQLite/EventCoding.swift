// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The stored form of inbox events that are not messages. Kinds and layouts are append only: files outlive versions.
enum EventCoding {
    static let messageKind: Int64 = 0
    private static let readMarkKind: Int64 = 1
    private static let recalledKind: Int64 = 2
    private static let contactKind: Int64 = 3
    private static let groupKind: Int64 = 4
    private static let pushKind: Int64 = 5

    /// - Returns: nil for an event that is not stored this way.
    static func encode(_ event: InboxEvent) -> (kind: Int64, payload: [UInt8])? {
        var bytes: [UInt8] = []
        switch event {
        case .message, .expired:
            return nil
        case .readMark(let conversation, let user, let seq):
            append(conversation, to: &bytes)
            append(UInt64(user.rawValue), count: 4, to: &bytes)
            append(seq, count: 8, to: &bytes)
            return (readMarkKind, bytes)
        case .recalled(let conversation, let id, let seq, let user):
            append(conversation, to: &bytes)
            append(UInt64(user.rawValue), count: 4, to: &bytes)
            append(seq, count: 8, to: &bytes)
            append(id.high, count: 8, to: &bytes)
            append(id.low, count: 8, to: &bytes)
            return (recalledKind, bytes)
        case .contact(let contact):
            append(contact, to: &bytes)
            return (contactKind, bytes)
        case .group(let group):
            append(group, to: &bytes)
            return (groupKind, bytes)
        case .push(let push):
            append(push, to: &bytes)
            return (pushKind, bytes)
        }
    }

    /// - Returns: nil if the payload is damaged.
    static func decode(kind: Int64, payload: [UInt8]) -> InboxEvent? {
        var bytes = payload[...]
        switch kind {
        case contactKind: return takeContact(from: &bytes).map(InboxEvent.contact)
        case groupKind: return takeGroup(from: &bytes).map(InboxEvent.group)
        case pushKind: return takePush(from: &bytes).map(InboxEvent.push)
        default: return decode(kind: kind, &bytes)
        }
    }

    private static func decode(kind: Int64, _ bytes: inout ArraySlice<UInt8>) -> InboxEvent? {
        guard let conversation = takeConversation(from: &bytes),
            let user = take(4, from: &bytes).flatMap({ UserID($0) }),
            let seq = take(8, from: &bytes)
        else { return nil }
        switch kind {
        case readMarkKind:
            return .readMark(conversation, by: user, upTo: seq)
        case recalledKind:
            guard let high = take(8, from: &bytes), let low = take(8, from: &bytes) else { return nil }
            return .recalled(conversation, MessageID(high: high, low: low), conversationSeq: seq, by: user)
        default:
            return nil
        }
    }

    private static func append(_ conversation: ConversationID, to bytes: inout [UInt8]) {
        let columns = ConversationColumns(conversation)
        append(UInt64(columns.kind), count: 1, to: &bytes)
        append(UInt64(columns.a), count: 4, to: &bytes)
        append(UInt64(columns.b), count: 4, to: &bytes)
    }

    private static func takeConversation(from bytes: inout ArraySlice<UInt8>) -> ConversationID? {
        guard let kind = take(1, from: &bytes), let a = take(4, from: &bytes), let b = take(4, from: &bytes) else {
            return nil
        }
        return ConversationColumns(kind: Int64(kind), a: Int64(a), b: Int64(b)).conversation
    }

    /// Little-endian.
    static func append(_ value: UInt64, count: Int, to bytes: inout [UInt8]) {
        for shift in 0..<count {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift * 8)))
        }
    }

    static func take(_ count: Int, from bytes: inout ArraySlice<UInt8>) -> UInt64? {
        guard bytes.count >= count else { return nil }
        let value = bytes.prefix(count).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        bytes = bytes.dropFirst(count)
        return value
    }
}

/// A conversation as the columns `kind`, `a`, `b`.
struct ConversationColumns {
    let kind: Int64
    let a: Int64
    let b: Int64

    init(kind: Int64, a: Int64, b: Int64) {
        self.kind = kind
        self.a = a
        self.b = b
    }

    init(_ conversation: ConversationID) {
        switch conversation {
        case .direct(let low, let high): self.init(kind: 1, a: Int64(low.rawValue), b: Int64(high.rawValue))
        case .group(let group): self.init(kind: 2, a: Int64(group.rawValue), b: 0)
        }
    }

    /// Nil if the columns are damaged.
    var conversation: ConversationID? {
        switch kind {
        case 1:
            guard let low = UserID(a), let high = UserID(b) else { return nil }
            return .direct(between: low, and: high)
        case 2:
            return Int32(exactly: a).flatMap(GroupID.init(rawValue:)).map(ConversationID.group)
        default:
            return nil
        }
    }
}

/// The inbox seqs of a message: 12 bytes per recipient, the user in 4 and the seq in 8, little-endian.
enum DeliveryList {
    static func append(_ user: UserID, _ seq: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: UInt32(bitPattern: user.rawValue).littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: seq.littleEndian) { bytes.append(contentsOf: $0) }
    }

    static func decode(_ bytes: [UInt8]) throws -> [(user: UserID, seq: UInt64)] {
        var rest = bytes[...]
        var deliveries: [(user: UserID, seq: UInt64)] = []
        while !rest.isEmpty {
            guard let user = EventCoding.take(4, from: &rest).flatMap({ UserID($0) }),
                let seq = EventCoding.take(8, from: &rest)
            else { throw StoreFailure.damagedRow }
            deliveries.append((user, seq))
        }
        return deliveries
    }
}

extension MessageContent {
    /// FNV-1a, 64 bits: distinguishes a repetition from a mistake; the same in every process.
    var stableHash: Int64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        return Int64(bitPattern: hash)
    }
}
