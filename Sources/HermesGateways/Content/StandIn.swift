// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// What a recipient gets in the place of a content that its protocol, or the limit it told, cannot carry whole. It names
/// the kind and the size; the message keeps its id and its place, and every other recipient gets it whole.
///
/// A text to read, and two attributes for programs: `stand_in` (the kind) and `stand_in_bytes`.
struct StandIn: Hashable {
    static let kindAttribute = "stand_in"
    static let bytesAttribute = "stand_in_bytes"

    /// What it was, in a word.
    let kind: String
    /// How large it was.
    let bytes: Int

    /// - Parameters:
    ///   - kind: what it was, in a word.
    ///   - bytes: how large it was.
    init(kind: String, bytes: Int) {
        self.kind = kind
        self.bytes = bytes
    }

    /// For a content of this many bytes.
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

    /// For people.
    var text: String { "[\(kind) of \(bytes) bytes, too large for this client; another one shows it]" }

    /// For programs.
    var attributes: [String: String] { [Self.kindAttribute: kind, Self.bytesAttribute: String(bytes)] }

    /// As the content of a message.
    var content: Hermes_V1_Content {
        var content = Hermes_V1_Content()
        content.text = text
        content.attributes = attributes
        return content
    }
}
