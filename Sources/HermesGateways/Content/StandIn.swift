// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// A replacement for content that a recipient's protocol, or its limit, cannot carry. It names the kind and the size.
/// The message keeps its id and its place, and other recipients get it whole.
///
/// It consists of a text for people, and two attributes for programs: `stand_in` (the kind) and `stand_in_bytes`.
struct StandIn: Hashable {
    static let kindAttribute = "stand_in"
    static let bytesAttribute = "stand_in_bytes"

    /// The kind of content, in a word.
    let kind: String
    /// The size of the content.
    let bytes: Int

    /// - Parameters:
    ///   - kind: the kind of content, in a word.
    ///   - bytes: its size.
    init(kind: String, bytes: Int) {
        self.kind = kind
        self.bytes = bytes
    }

    /// Creates a stand-in for a content of this size.
    init(for content: Hermes_V1_Content, bytes: Int) {
        let kind =
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
        self.init(kind: kind, bytes: bytes)
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
