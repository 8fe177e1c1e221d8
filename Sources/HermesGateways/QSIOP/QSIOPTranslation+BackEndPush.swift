// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire

/// Translates the pushes of back ends to frames with op 4.
extension QSIOPTranslation {
    /// The keys that the protocol itself uses. Members of a push's data with these names are left out.
    private static let ownKeys: Set<String> = [
        "id", "title", "body", "seq", "time", "collapse", "truncated", "data", "message-type", "message", "code",
        // The keys of a message. They are reserved, so that no back end's push looks like a message.
        "from", "conversation", "group", "own", "stand_in", "stand_in_bytes",
    ]

    /// - Returns: the frame for a back end's push; nil if the push is for another device.
    static func push(_ push: Push, seq: UInt64, reader: Principal) -> QSIOPPush? {
        guard push.isFor(reader.device) else { return nil }
        let id = push.id.description
        var properties: QSIOPProperties = [
            "id": id,
            "title": cut(push.content.title, to: 1024),
            "seq": String(seq),
            "time": String(push.id.timestamp.rawValue),
        ]
        if !push.content.collapseKey.isEmpty {
            properties.append("collapse", cut(push.content.collapseKey, to: PushContent.maxCollapseKeyBytes))
        }
        let data = topLevelTexts(push.content.dataJSON)
        var isWhole = data.isWhole
        // The body has precedence. Bytes are reserved for it, up to the longest body that is accepted today. A stored
        // push may have a longer body.
        let body = push.content.body
        var left =
            room(in: properties) - "truncated:1\n".utf8.count
            - min(body.utf8.count, 4 * PushContent.maxBodyCharacters)
        func append(_ pairs: [(key: String, value: String)]) {
            let bytes = pairs.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 2 }
            guard bytes <= left else {
                isWhole = false
                return
            }
            left -= bytes
            for (key, value) in pairs { properties.append(key, value) }
        }
        if let message = push.content.message {
            // The largest allowed message and its type fit into the frame.
            append([("message-type", message.type), ("message", Data(message.bytes).base64EncodedString())])
        }
        for text in data.texts { append([text]) }
        if body.utf8.count > room(in: properties) { isWhole = false }
        if !isWhole { properties.append("truncated", "1") }
        properties.append("body", cut(body, to: room(in: properties)))
        return QSIOPPush(id: id, frame: QSIOPFrame(.push, properties))
    }

    /// Returns the texts, numbers and booleans at the top level of the object, sorted by key. `isWhole` tells whether
    /// the object has no other members.
    private static func topLevelTexts(_ json: String) -> (texts: [(key: String, value: String)], isWhole: Bool) {
        guard !json.isEmpty, case .object(let members) = try? JSONParser.parse(Array(json.utf8)) else {
            return ([], json.isEmpty)
        }
        let texts = members.compactMap { member -> (key: String, value: String)? in
            guard let value = text(of: member.value), !ownKeys.contains(member.name), isKey(member.name) else {
                return nil
            }
            return (member.name, value)
        }
        return (texts.sorted { $0.key < $1.key }, texts.count == members.count)
    }

    /// Returns a text, a number or a boolean as text; nil for other values.
    private static func text(of value: JSON) -> String? {
        switch value {
        case .string(let text): text
        case .boolean, .number: value.text
        case .null, .array, .object: nil
        }
    }

    private static func isKey(_ key: String) -> Bool {
        (1...64).contains(key.utf8.count)
            && key.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
    }
}
