// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// A message on its way out.
public struct OutboxEntry: Hashable, Sendable, Identifiable {
    /// How far a message has come.
    public enum Status: Hashable, Sendable {
        /// It waits for a connection, or for those before it in its conversation.
        case queued
        /// It is under way to the server.
        case sending
        /// The server has committed it: it is no longer in the outbox.
        case sent(Receipt)
        /// The server refused it for good, because of this: it stays until it is retried or discarded.
        case failed(HermesClientError)
        /// The app discarded it before it was sent: it is no longer in the outbox.
        case discarded
    }

    /// Names the message from the first moment on, also to the server, for which it makes sending again safe.
    public var clientID: String
    /// Where it goes.
    public var conversation: Conversation
    /// What it says.
    public var content: MessageContent
    /// The application's own pairs.
    public var attributes: [String: String]
    /// When the app sent it, by the device's clock, in milliseconds since 1970.
    public var queuedAtMilliseconds: Int64
    /// How far it has come.
    public var status: Status

    /// The client id.
    public var id: String { clientID }
}

/// How much an outbox holds.
public struct OutboxLimits: Hashable, Sendable {
    /// Messages, those that failed included.
    public var maxEntries: Int
    /// Bytes of messages as they are on the wire.
    public var maxBytes: Int
    /// For so many conversations at once a message is under way; within a conversation one comes after the other.
    public var maxSending: Int

    /// Creates limits.
    ///
    /// - Parameters:
    ///   - maxEntries: how many messages, those that failed included.
    ///   - maxBytes: how many bytes of messages.
    ///   - maxSending: for how many conversations at once a message is under way.
    public init(maxEntries: Int = 1000, maxBytes: Int = 4 * 1_048_576, maxSending: Int = 16) {
        self.maxEntries = max(1, maxEntries)
        self.maxBytes = max(1, maxBytes)
        self.maxSending = max(1, maxSending)
    }
}

/// An entry as it is stored.
struct OutboxItem: Hashable, Sendable {
    /// The order in which the app sent them.
    var number: UInt64
    /// Whose it is.
    var uid: UInt32
    var send: Hermes_V1_Send
    var queuedAtMilliseconds: Int64
    /// Why the server does not want it; nil: it does not refuse it so far.
    var failure: HermesClientError?

    private static let version: UInt8 = 1
    private static let prefix = "outbox/"

    /// The record's key, in whose order the numbers are.
    var key: String {
        let digits = String(number, radix: 16)
        return Self.prefix + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Version u8, uid u32, time i64, the failure's code u32 (0: none), length of its text u16, the text, the message.
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

    /// Reads a record; nil if it is none of an outbox, or of a newer version.
    init?(_ record: LocalRecord) {
        guard record.key.hasPrefix(Self.prefix), let number = UInt64(record.key.dropFirst(Self.prefix.count), radix: 16)
        else { return nil }
        var buffer = ByteBuffer(bytes: record.value)
        guard buffer.readInteger(as: UInt8.self) == Self.version, let uid = buffer.readInteger(as: UInt32.self),
            let time = buffer.readInteger(as: Int64.self), let code = buffer.readInteger(as: UInt32.self),
            let length = buffer.readInteger(as: UInt16.self), let text = buffer.readBytes(length: Int(length)),
            let send = try? Hermes_V1_Send(wire: buffer)
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

    /// What the app sees.
    func entry(_ status: OutboxEntry.Status) -> OutboxEntry {
        OutboxEntry(
            clientID: send.clientID,
            conversation: Conversation(send.to),
            content: MessageContent(send.content),
            attributes: send.content.attributes,
            queuedAtMilliseconds: queuedAtMilliseconds,
            status: status
        )
    }
}
