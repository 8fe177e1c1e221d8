// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import NIOCore

/// Long messages of inboxes in the form of one protocol, so that the devices of a user on one loop share an encoding.
/// An account may have fifty devices, and a message may be a megabyte long. This type does no I/O.
///
/// Short messages are encoded again for each device, which costs less than the look-up. The total size of the kept
/// encodings is limited; the oldest encodings are dropped first.
struct EncodedEntries {
    struct Key: Hashable {
        /// The reader. The encoding of an entry differs from reader to reader.
        let reader: UserID
        let seq: UInt64
        /// The name of the encoding: the name of the protocol, or of one of its encodings.
        let form: String
    }

    /// The length of the shortest content, in bytes, whose encoding is kept.
    static let minBytes = 1_024
    /// The maximum total size of all encodings that are kept, in bytes.
    static let maxBytes = 1 << 20

    private var frames: [Key: ByteBuffer] = [:]
    private var order: Deque<Key> = []
    private(set) var bytes = 0

    /// Whether the encoding of an entry is worth keeping.
    static func keeps(_ entry: InboxEntry) -> Bool {
        if case .message(let message) = entry.event { message.content.bytes.count >= minBytes } else { false }
    }

    /// Returns the encoding of an entry. If no encoding is kept, `make` encodes the entry.
    mutating func frame(_ key: Key, _ make: (inout ByteBuffer) throws -> Void) rethrows -> ByteBuffer {
        if let frame = frames[key] { return frame }
        var frame = ByteBuffer()
        try make(&frame)
        guard frame.readableBytes <= Self.maxBytes / 2 else { return frame }
        frames[key] = frame
        order.append(key)
        bytes += frame.readableBytes
        while bytes > Self.maxBytes, let oldest = order.popFirst() {
            bytes -= frames.removeValue(forKey: oldest)?.readableBytes ?? 0
        }
        return frame
    }

    /// Forgets all encodings.
    mutating func removeAll() {
        guard !order.isEmpty else { return }
        self = Self()
    }
}
