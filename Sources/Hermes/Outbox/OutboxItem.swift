// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A stored entry of the outbox.
struct OutboxItem: Hashable, Sendable {
    /// The number in the order of the app's calls.
    var number: UInt64
    /// The account that sends the message.
    var uid: UInt32
    var send: Hermes_V1_Send
    var queuedAtMilliseconds: Int64
    /// The permanent refusal of the message; nil if there was none.
    var failure: HermesClientError?

    private static let version: UInt8 = 1
    private static let prefix = "outbox/"

    /// The record's key. The order of the keys is the order of the numbers.
    var key: String {
        let digits = String(number, radix: 16)
        return Self.prefix + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Encodes the item as the version (u8), the uid (u32), the time (i64), the failure's code (u32, 0 if there is
    /// none), the length of the failure's text (u16), the failure's text, and the message.
    func record() throws -> LocalChange {
        var buffer = ByteBuffer()
        buffer.writeInteger(Self.version)
        buffer.writeInteger(uid)
        buffer.writeInteger(queuedAtMilliseconds)
        buffer.writeInteger(failure?.code.rawValue ?? 0)
        let text = Array((failure?.message ?? "").utf8.prefix(1024))
        buffer.writeInteger(UInt16(text.count))
        buffer.writeBytes(text)
        buffer.writeBytes(try send.wireBytes(as: [UInt8].self))
        return LocalChange(key: key, value: Array(buffer.readableBytesView))
    }

    init(
        number: UInt64,
        uid: UInt32,
        send: Hermes_V1_Send,
        queuedAtMilliseconds: Int64,
        failure: HermesClientError? = nil
    ) {
        self.number = number
        self.uid = uid
        self.send = send
        self.queuedAtMilliseconds = queuedAtMilliseconds
        self.failure = failure
    }

    /// Decodes a record; nil if it is not a valid outbox record of this version.
    init?(_ record: LocalRecord) {
        guard record.key.hasPrefix(Self.prefix), let number = UInt64(record.key.dropFirst(Self.prefix.count), radix: 16)
        else { return nil }
        var buffer = ByteBuffer(bytes: record.value)
        guard buffer.readInteger(as: UInt8.self) == Self.version, let uid = buffer.readInteger(as: UInt32.self),
            let time = buffer.readInteger(as: Int64.self), let code = buffer.readInteger(as: UInt32.self),
            let length = buffer.readInteger(as: UInt16.self), let text = buffer.readBytes(length: Int(length)),
            let send = try? Hermes_V1_Send(wire: buffer, maxParts: nil)
        else { return nil }
        let message = String(decoding: text, as: UTF8.self)
        self.init(
            number: number,
            uid: uid,
            send: send,
            queuedAtMilliseconds: time,
            failure: code == 0 ? nil : HermesClientError(.init(rawValue: code), message)
        )
    }

    /// Returns the entry as the app sees it.
    func entry(_ status: OutboxEntry.Status) -> OutboxEntry {
        OutboxEntry(
            id: send.clientID,
            conversation: Conversation(send.to),
            content: MessageContent(send.content),
            attributes: send.content.attributes,
            queuedAt: Date(milliseconds: queuedAtMilliseconds),
            status: status
        )
    }
}
