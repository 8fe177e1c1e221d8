// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import SwiftProtobuf

/// Translates between IMPB's contents and canonical contents. Contents of the IMPB kinds that have no canonical form
/// become custom contents, whose type begins with `impb/`. IMPB clients get these custom contents unchanged. If IMPB
/// has no kind for a canonical content, IMPB clients get a text instead.
enum IMPBContent {
    private static let opaquePrefix = CanonicalContent.ownTypePrefix

    // MARK: From IMPB

    /// - Parameter counted: called with the number of the content's parts before the content is parsed.
    static func canonical(
        _ message: some IMPBChatMessage,
        counted: (Int) -> Void = { _ in }
    ) -> Result<MessageContent, HermesError> {
        var content = Hermes_V1_Content()
        do {
            content.kind = try kind(message.type, protobufBytes(message.content), counted)
        } catch {
            return .failure(HermesError(.invalidArgument, "the content does not fit its type", cause: error))
        }
        guard message.ext.count <= CanonicalContent.maxAttributes else {
            return .failure(HermesError(.tooLarge, "ext has at most 32 pairs"))
        }
        for pair in message.ext { content.attributes[pair.key] = pair.value }
        guard content.attributes.count == message.ext.count else {
            let message = "two keys of ext are equal, or are equal after Unicode normalization"
            return .failure(HermesError(.invalidArgument, message))
        }
        if message.type == .custom, case .custom(let custom) = content.kind,
            custom.type.hasBytes(startingWith: opaquePrefix)
        {
            let message = "keys that begin with \(opaquePrefix) are the server's own; choose another"
            return .failure(HermesError(.invalidArgument, message))
        }
        return CanonicalContent.validated(content, isTranslated: true)
    }

    private static func kind(
        _ type: IMPB_Content_type,
        _ bytes: [UInt8],
        _ counted: (Int) -> Void
    ) throws -> Hermes_V1_Content.OneOf_Kind {
        switch type {
        case .text:
            return .text(try body(IMPB_msg_text_content.self, bytes, counted).text)
        case .image:
            var image = Hermes_V1_Content.Image()
            image.url = try body(IMPB_msg_img_content.self, bytes, counted).imgURL
            return .image(image)
        case .sound:
            let content = try body(IMPB_msg_sound_content.self, bytes, counted)
            var sound = Hermes_V1_Content.Sound()
            sound.durationSeconds = content.soundDuration
            sound.sourceURL = content.sourceURL
            sound.locationURL = content.locationURL
            sound.fileName = content.fildNme
            return .sound(sound)
        case .location:
            let content = try body(IMPB_msg_location_content.self, bytes, counted).location
            var location = Hermes_V1_Content.Location()
            location.latitude = content.lat
            location.longitude = content.lon
            return .location(location)
        case .expression:
            let content = try body(IMPB_msg_expression_content.self, bytes, counted)
            var expression = Hermes_V1_Content.Expression()
            expression.id = content.eid
            expression.name = content.name
            return .expression(expression)
        case .custom:
            let info = try body(IMPB_msg_cumstom_content.self, bytes, counted).info
            var custom = Hermes_V1_Content.Custom()
            custom.type = info.key
            custom.data = protobufBytes(info.value.utf8)
            return .custom(custom)
        case .video, .UNRECOGNIZED:
            // The published schema has no body for these types, so the application defines the bytes.
            var custom = Hermes_V1_Content.Custom()
            custom.type = opaquePrefix + String(type.rawValue)
            custom.data = protobufBytes(bytes)
            return .custom(custom)
        }
    }

    /// Parses bytes as their declared type.
    ///
    /// - Throws: if the bytes cannot be parsed, and also if they contain only unknown fields. A bare text may parse as
    ///   unknown fields, and the message would then arrive empty.
    private static func body<Body: WireMessage>(
        _ type: Body.Type,
        _ bytes: [UInt8],
        _ counted: (Int) -> Void
    ) throws(WireError) -> Body {
        let body = try Body(wire: bytes, counted: counted)
        guard !body.unknownFields.data.isEmpty else { return body }
        var known = body
        known.unknownFields = UnknownStorage()
        guard try !known.wireBytes(as: [UInt8].self).isEmpty else {
            throw WireError(.badBody, "the body has no field of a \(Body.protoMessageName)")
        }
        return body
    }

    /// Returns the IMPB type of custom content whose type begins with `impb/`; nil for other content.
    ///
    /// Stored data is not trusted. A number beyond 32 bits is not converted to an enum, because encoding an enum with
    /// such a number corrupts memory. The number of a type whose body has a canonical form is not converted either.
    private static func opaqueType(_ type: String) -> IMPB_Content_type? {
        let digits = type.dropFirst(opaquePrefix.count)
        guard type.hasPrefix(opaquePrefix), let number = Int32(digits), String(number) == digits else { return nil }
        switch IMPB_Content_type(rawValue: Int(number)) {
        case .video: return .video
        case .UNRECOGNIZED(let number): return .UNRECOGNIZED(number)
        case .text, .image, .sound, .location, .expression, .custom, nil: return nil
        }
    }

    // MARK: To IMPB

    /// Sets a message's content.
    static func fill(_ message: inout some IMPBChatMessage, with content: MessageContent) {
        fill(&message, with: CanonicalContent.parsed(content))
    }

    /// Sets a message's content.
    static func fill(_ message: inout some IMPBChatMessage, with content: Hermes_V1_Content) {
        // This cannot fail, because these messages have no required fields.
        if let (type, bytes) = try? encoded(content.kind) {
            message.type = type
            message.content = protobufBytes(bytes)
        }
        message.ext = content.attributes.sorted { $0.key < $1.key }.map { key, value in
            var pair = IMPB_ext_key_info()
            pair.key = key
            pair.value = value
            return pair
        }
    }

    private static func encoded(_ kind: Hermes_V1_Content.OneOf_Kind?) throws -> (IMPB_Content_type, [UInt8]) {
        switch kind {
        case .text(let text):
            return (.text, try self.text(text))
        case .image(let image):
            return (.image, try self.image(image.url))
        case .sound(let sound):
            var content = IMPB_msg_sound_content()
            content.soundDuration = sound.durationSeconds
            content.sourceURL = sound.sourceURL
            content.locationURL = sound.locationURL
            content.fildNme = sound.fileName
            return (.sound, try content.wireBytes())
        case .location(let location):
            var content = IMPB_msg_location_content()
            content.location.lat = location.latitude
            content.location.lon = location.longitude
            return (.location, try content.wireBytes())
        case .video(let video):
            // The published schema has no body for videos. Hermes writes the URL into the field that holds an image's
            // URL.
            return (.video, try image(video.url))
        case .expression(let expression):
            var content = IMPB_msg_expression_content()
            content.eid = expression.id
            content.name = expression.name
            return (.expression, try content.wireBytes())
        case .custom(let custom):
            if let type = opaqueType(custom.type) { return (type, protobufBytes(custom.data)) }
            var content = IMPB_msg_cumstom_content()
            content.info.key = custom.type
            content.info.value = String(decoding: custom.data, as: UTF8.self)
            return (.custom, try content.wireBytes())
        case nil:
            return (.text, try text("[a kind of content that IMPB does not know]"))
        }
    }

    static func text(_ text: String) throws -> [UInt8] {
        var content = IMPB_msg_text_content()
        content.text = text
        return try content.wireBytes()
    }

    private static func image(_ url: String) throws -> [UInt8] {
        var content = IMPB_msg_img_content()
        content.imgURL = url
        return try content.wireBytes()
    }
}
