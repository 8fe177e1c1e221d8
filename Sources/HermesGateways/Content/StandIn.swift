// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// What a recipient gets in the place of an entry that its protocol, or the limit it told, cannot carry whole. It names
/// the kind and the size; the entry keeps its id and its place, and every other recipient gets it whole.
///
/// The one value for all protocols; each writes it as it can: IMPB as a text with two attributes, QSIOP as much of the text as
/// fits with two properties, MQTT as `oversized`.
struct StandIn: Hashable {
    static let kindAttribute = "stand_in"
    static let bytesAttribute = "stand_in_bytes"

    /// What of an inbox it is: the name of its field in `Event`.
    let entry: String
    /// What a message's content is, in a word; of what has no content, the same as ``entry``.
    let kind: String
    /// How large that is: of a message its content.
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
    /// - Parameter packetBytes: how long it is on the wire; it is looked at where there is no content.
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
