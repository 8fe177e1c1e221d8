// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire

/// Pushes of back ends, as op 4.
extension QSIOPTranslation {
    /// Keys of the protocol itself; data with these names is left out.
    private static let ownKeys: Set<String> = [
        "id", "title", "body", "seq", "time", "collapse", "truncated", "data", "message-type", "message",
    ]

    /// - Returns: nil if it is for another device.
    static func push(_ push: Push, seq: UInt64, reader: Principal) -> QSIOPPush? {
        guard push.isFor(reader.device) else { return nil }
        let id = push.id.description
        var properties: QSIOPProperties = [
            "id": id,
            "title": cut(push.content.title, to: 1024),
            "seq": String(seq),
            "time": String(push.id.timestamp.rawValue),
        ]
        if !push.content.collapseKey.isEmpty { properties.append("collapse", push.content.collapseKey) }
        let data = topLevelTexts(push.content.dataJSON)
        var isWhole = data.isWhole
        var room =
            QSIOPFrame.maxBodyBytes - 2 * PushContent.maxTitleCharacters - 4 * PushContent.maxBodyCharacters - 2_048
        if let message = push.content.message {
            // The largest message and its name fit.
            let text = Data(message.bytes).base64EncodedString()
            properties.append("message-type", message.type)
            properties.append("message", text)
            room -= message.type.utf8.count + text.utf8.count + 32
        }
        for (key, value) in data.texts {
            let bytes = key.utf8.count + 2 * value.utf8.count + 2
            guard bytes <= room else {
                isWhole = false
                continue
            }
            room -= bytes
            properties.append(key, value)
        }
        if !isWhole { properties.append("truncated", "1") }
        properties.append("body", push.content.body)
        return QSIOPPush(id: id, frame: QSIOPFrame(.push, properties))
    }

    /// The texts, numbers and truth values that stand in the object itself, in the order of their keys, and whether that is all
    /// there is.
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

    /// A value that fits on a line; nil for others.
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
