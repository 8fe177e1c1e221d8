// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import SwiftProtobuf

/// The canonical form of message contents: the bytes of a `hermes.v1.Content`. Equal contents have equal bytes, so the
/// server recognizes a message that a client sends again.
enum CanonicalContent {
    /// The longest text, in bytes of UTF-8.
    static let maxTextBytes = 65_536
    /// The longest URL, in bytes. Signed URLs are long.
    private static let maxURLBytes = 4_096
    /// The longest label of a place, and the longest name of a file, in bytes.
    private static let maxNameBytes = 256
    /// The longest type of custom content, and the longest name of an emoticon, in bytes.
    private static let maxTypeBytes = 64
    static let maxAttributes = 32
    /// The maximum total size of the keys and values of all attributes, in bytes.
    static let maxAttributeBytes = 4_096

    /// The prefix of the custom types that only the server assigns. These types identify IMPB contents that have no
    /// canonical form.
    static let ownTypePrefix = "impb/"

    /// Checks a client's content and encodes it.
    ///
    /// - Parameter isTranslated: whether a gateway translated the content. Only translated content may have a custom
    ///   type that begins with ``ownTypePrefix``.
    static func validated(
        _ content: Hermes_V1_Content,
        isTranslated: Bool = false
    ) -> Result<MessageContent, HermesError> {
        guard content.kind != nil || !content.unknownFields.data.isEmpty else {
            return .failure(HermesError(.invalidArgument, "the content is empty"))
        }
        do throws(HermesError) {
            try check(content.kind)
        } catch {
            return .failure(error)
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

    /// Checks the lengths of the content's fields, and the bytes of custom content.
    ///
    /// In JSON, the bytes are written in base64, so the check of the JSON text does not cover them. But clients of
    /// IMPB and QSIOP get the bytes as text.
    ///
    /// - Throws: `.tooLarge`; `.invalidArgument` if the bytes contain too many combining marks in a row
    ///   (``StreamSafeText``).
    private static func check(_ kind: Hermes_V1_Content.OneOf_Kind?) throws(HermesError) {
        func check(_ field: String, _ length: Int, _ limit: Int) throws(HermesError) {
            guard length <= limit else { throw HermesError(.tooLarge, "\(field) is at most \(limit) bytes long") }
        }
        switch kind {
        case .text(let text):
            try check("text", text.utf8.count, maxTextBytes)
        case .image(let image):
            try check("image.url", image.url.utf8.count, maxURLBytes)
        case .sound(let sound):
            try check("sound.source_url", sound.sourceURL.utf8.count, maxURLBytes)
            try check("sound.location_url", sound.locationURL.utf8.count, maxURLBytes)
            try check("sound.file_name", sound.fileName.utf8.count, maxNameBytes)
        case .location(let location):
            try check("location.label", location.label.utf8.count, maxNameBytes)
        case .video(let video):
            try check("video.url", video.url.utf8.count, maxURLBytes)
            try check("video.thumbnail_url", video.thumbnailURL.utf8.count, maxURLBytes)
        case .expression(let expression):
            try check("expression.name", expression.name.utf8.count, maxTypeBytes)
        case .custom(let custom):
            try check("custom.type", custom.type.utf8.count, maxTypeBytes)
            guard StreamSafeText.isSafe(custom.data) else {
                throw HermesError(.invalidArgument, "custom.data \(StreamSafeText.problem)")
            }
        case nil:
            // The kind is defined by a newer version.
            break
        }
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

    /// Decodes content, once for all recipients of the message. Returns empty content if the bytes cannot be decoded;
    /// content that a gateway has encoded can always be decoded.
    static func parsed(_ content: MessageContent) -> Hermes_V1_Content {
        CanonicalReading.of(content).content ?? Hermes_V1_Content()
    }
}

/// Content in decoded form. All translations of the content share it.
final class CanonicalReading: ContentReading {
    /// Nil if the bytes are not valid content.
    let content: Hermes_V1_Content?

    init(_ bytes: [UInt8]) {
        // There is no limit on the parts, because the content was checked when it arrived.
        content = try? Hermes_V1_Content(wire: bytes, maxParts: nil)
    }

    static func of(_ content: MessageContent) -> CanonicalReading {
        // No other type implements `ContentReading`. If another type did, the bytes would be decoded again, and the
        // result would still be correct.
        content.reading(CanonicalReading.init) as? CanonicalReading ?? CanonicalReading(content.bytes)
    }
}
