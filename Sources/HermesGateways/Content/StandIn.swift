// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The replacement for an entry that the recipient's protocol, or the limit that the recipient told, cannot carry
/// whole. It names the kind and the size. The entry keeps its id and its place, and every other recipient gets it
/// whole.
///
/// The value is the same for all protocols, and each writes it in its own form: IMPB as a text with two attributes,
/// QSIOP as two properties with as much of the text as fits, MQTT as `oversized`.
struct StandIn: Hashable {
    static let kindAttribute = "stand_in"
    static let bytesAttribute = "stand_in_bytes"

    /// The kind of the entry: the name of its field in `Event`.
    let entry: String
    /// The kind of the message's content, in a word; the same as ``entry`` if the entry has no content.
    let kind: String
    /// The size in bytes: that of a message's content, or of the entry.
    let bytes: Int

    private init(entry: String, kind: String, bytes: Int) {
        self.entry = entry
        self.kind = kind
        self.bytes = bytes
    }

    /// For the content of a message, of this many bytes.
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

    /// For an entry of an inbox.
    ///
    /// - Parameter packetBytes: its length on the wire; used if there is no content.
    init(for event: Hermes_V1_Event, packetBytes: Int) {
        if case .message(let message) = event.event {
            let bytes: [UInt8]? = try? message.content.wireBytes()
            self.init(for: message.content, bytes: bytes?.count ?? packetBytes)
            return
        }
        let entry = event.event?.name ?? ""
        self.init(entry: entry, kind: entry, bytes: packetBytes)
    }

    /// The text for people.
    var text: String { "[\(kind) of \(bytes) bytes, too large for this client; another one shows it]" }

    /// The attributes for programs.
    var attributes: [String: String] { [Self.kindAttribute: kind, Self.bytesAttribute: String(bytes)] }

    /// The stand-in as the content of a message.
    var content: Hermes_V1_Content {
        var content = Hermes_V1_Content()
        content.text = text
        content.attributes = attributes
        return content
    }
}
