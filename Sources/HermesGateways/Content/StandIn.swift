// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The replacement for an inbox entry that is too large for the recipient's protocol, or for the limit that the
/// recipient has set. The stand-in states the kind and the size of the entry. The entry keeps its id and its place in
/// the inbox, and recipients that can accept the whole entry get it.
///
/// The value is the same for all protocols. Each protocol writes it in its own form: IMPB as a text with two
/// attributes, QSIOP as two properties with as much of the text as fits, MQTT as `oversized`.
struct StandIn: Hashable {
    static let kindAttribute = "stand_in"
    static let bytesAttribute = "stand_in_bytes"

    /// The kind of the entry: the name of its field in `Event`.
    let entry: String
    /// The kind of the message's content, in one word. If the entry has no content, this is the same as ``entry``.
    let kind: String
    /// The size of the message's content, in bytes. If the entry has no content, this is the size of the whole entry.
    let bytes: Int

    private init(entry: String, kind: String, bytes: Int) {
        self.entry = entry
        self.kind = kind
        self.bytes = bytes
    }

    /// Creates the stand-in for the content of a message.
    ///
    /// - Parameter bytes: the size of the content.
    init(for content: Hermes_V1_Content, bytes: Int) {
        entry = "message"
        kind =
            switch content.kind {
            case .text: "text"
            case .image: "image"
            case .sound: "sound"
            case .location: "location"
            case .video: "video"
            case .expression: "expression"
            case .custom: "custom"
            case nil: "content"
            }
        self.bytes = bytes
    }

    /// Creates the stand-in for an inbox entry.
    ///
    /// - Parameter packetBytes: the entry's length on the wire. If the entry has no content, the stand-in states this
    ///   length as the size.
    init(for event: Hermes_V1_Event, packetBytes: Int) {
        if case .message(let message) = event.event {
            let bytes: [UInt8]? = try? message.content.wireBytes()
            self.init(for: message.content, bytes: bytes?.count ?? packetBytes)
            return
        }
        let entry = event.event?.name ?? ""
        self.init(entry: entry, kind: entry, bytes: packetBytes)
    }

    /// The text that people read.
    var text: String {
        "[\(kind) of \(bytes) bytes, too large for this client; another of your clients can show it]"
    }

    /// The attributes that programs read.
    var attributes: [String: String] { [Self.kindAttribute: kind, Self.bytesAttribute: String(bytes)] }

    /// The stand-in as the content of a message.
    var content: Hermes_V1_Content {
        var content = Hermes_V1_Content()
        content.text = text
        content.attributes = attributes
        return content
    }
}
