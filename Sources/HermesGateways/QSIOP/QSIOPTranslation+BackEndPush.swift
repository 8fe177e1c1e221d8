// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire

/// What back ends push, as op 4.
extension QSIOPTranslation {
    /// Keys that the protocol itself uses; data with these names is left out.
    private static let ownKeys: Set<String> = ["id", "title", "body", "seq", "time", "collapse", "truncated", "data"]

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
        var room =
            QSIOPFrame.maxBodyBytes - 2 * PushContent.maxTitleCharacters - 4 * PushContent.maxBodyCharacters - 2_048
        for (key, value) in topLevelTexts(push.content.dataJSON) {
            let bytes = key.utf8.count + 2 * value.utf8.count + 2
            guard bytes <= room else { continue }
            room -= bytes
            properties.append(key, value)
        }
        properties.append("body", push.content.body)
        return QSIOPPush(id: id, frame: QSIOPFrame(.push, properties))
    }

    /// The texts, numbers and truth values that stand in the object itself, in the order of their keys.
    private static func topLevelTexts(_ json: String) -> [(key: String, value: String)] {
        guard !json.isEmpty, let object = try? JSONDecoder().decode([String: Scalar].self, from: Data(json.utf8)) else {
            return []
        }
        return object.compactMap { key, scalar in
            guard let value = scalar.text, !ownKeys.contains(key), isKey(key) else { return nil }
            return (key, value)
        }.sorted { $0.key < $1.key }
    }

    private static func isKey(_ key: String) -> Bool {
        (1...64).contains(key.utf8.count)
            && key.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ":") }
    }

    /// A value that fits on a line; nil for anything else.
    private struct Scalar: Decodable {
        let text: String?

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let text = try? container.decode(String.self) {
                self.text = text
            } else if let flag = try? container.decode(Bool.self) {
                text = flag ? "true" : "false"
            } else if let number = try? container.decode(Int64.self) {
                text = String(number)
            } else if let number = try? container.decode(Double.self) {
                text = String(number)
            } else {
                text = nil
            }
        }
    }
}
