// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import SwiftProtobuf

/// The canonical form of message contents: the bytes of a `hermes.v1.Content`. Equal contents have equal bytes, so that
/// a repetition is recognized.
enum CanonicalContent {
    /// The longest text, in bytes of UTF-8.
    static let maxTextBytes = 65_536
    static let maxAttributes = 32
    /// The most bytes of all attributes together.
    static let maxAttributeBytes = 4_096

    /// The prefix of the server's own custom types, for protocol contents that have no other name.
    static let ownTypePrefix = "impb/"

    /// Checks a client's content and encodes it.
    ///
    /// - Parameter isTranslated: whether the server may have given the content one of its own types.
    static func validated(
        _ content: Hermes_V1_Content,
        isTranslated: Bool = false
    ) -> Result<MessageContent, HermesError> {
        guard content.kind != nil || !content.unknownFields.data.isEmpty else {
            return .failure(HermesError(.invalidArgument, "the content is empty"))
        }
        if case .text(let text) = content.kind, text.utf8.count > maxTextBytes {
            return .failure(HermesError(.tooLarge, "a text is at most 64 KiB"))
        }
        if case .custom(let custom) = content.kind, custom.type.utf8.count > 64 {
            return .failure(HermesError(.tooLarge, "custom.type is at most 64 bytes"))
        }
        if !isTranslated, case .custom(let custom) = content.kind, custom.type.hasBytes(startingWith: ownTypePrefix) {
            let message = "custom types that begin with \(ownTypePrefix) are the server's own; choose another"
            return .failure(HermesError(.invalidArgument, message))
        }
        if !content.attributes.isEmpty {
            let bytes = content.attributes.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
            guard content.attributes.count <= maxAttributes, bytes <= maxAttributeBytes else {
                return .failure(HermesError(.tooLarge, "attributes are at most 32 pairs and 4 KiB in all"))
            }
        }
        return encoded(content)
    }

    /// Encodes content, with the pairs of each map sorted by key.
    static func encoded(_ content: Hermes_V1_Content) -> Result<MessageContent, HermesError> {
        var options = BinaryEncodingOptions()
        options.useDeterministicOrdering = true
        do {
            return .success(MessageContent(bytes: try content.serializedBytes(options: options)))
        } catch {
            return .failure(HermesError(.invalidArgument, "the content cannot be stored", cause: error))
        }
    }

    /// Decodes content, once for all recipients of the message; empty if it cannot be decoded, which happens with no
    /// content from a gateway.
    static func parsed(_ content: MessageContent) -> Hermes_V1_Content {
        CanonicalReading.of(content).content ?? Hermes_V1_Content()
    }
}

/// A content in decoded form, which all translations share.
final class CanonicalReading: ContentReading {
    /// Nil if the bytes are not a content.
    let content: Hermes_V1_Content?

    init(_ bytes: [UInt8]) {
        // Checked when it came.
        content = try? Hermes_V1_Content(wire: bytes, maxParts: nil)
    }

    static func of(_ content: MessageContent) -> CanonicalReading {
        // Nobody else reads contents; if somebody did, it would be read again and not wrong.
        content.reading(CanonicalReading.init) as? CanonicalReading ?? CanonicalReading(content.bytes)
    }
}
