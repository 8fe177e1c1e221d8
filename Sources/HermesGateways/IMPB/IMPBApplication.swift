// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Translates IMPB's broadcasts and custom messages to publications, and publications to broadcasts.
///
/// A publication to `impb/broadcast` reaches every connected IMPB device; the rules say who may publish there. A
/// device's custom messages go to `impb/UID/DEVICE/custom`.
enum IMPBApplication: ApplicationTopicForm {
    /// The prefix of the topics.
    static let topicPrefix = "impb/"
    static let broadcast = "impb/broadcast"
    /// The longest JSON of a broadcast, and the longest custom message, in bytes.
    static let maxBytes = 32_768

    /// Returns the topic of a device's custom messages; nil if the device's id has characters that a topic level cannot
    /// have.
    static func customTopic(of principal: Principal) -> TopicName? {
        let device = principal.device.rawValue
        guard device.utf8.allSatisfy({ ![UInt8(ascii: "/"), UInt8(ascii: "+"), UInt8(ascii: "#")].contains($0) }) else {
            return nil
        }
        return TopicName("\(topicPrefix)\(principal.user.rawValue)/\(device)/custom")
    }

    /// Checks a publication before it is published.
    ///
    /// - Throws: `.invalidArgument` or `.tooLarge` if the publication is a broadcast that cannot be sent.
    static func check(_ topic: TopicName, _ payload: ByteBuffer) throws(HermesError) {
        guard topic.rawValue == broadcast else { return }
        _ = try CanonicalContent.validated(try content(of: payload)).get()
    }

    /// Returns the payload of a client's broadcast.
    ///
    /// - Throws: `.tooLarge`.
    static func payload(of content: MessageContent) throws(HermesError) -> ByteBuffer {
        let payload = ByteBuffer(string: MessageText.json(of: content))
        guard payload.readableBytes <= maxBytes else { throw tooLarge }
        return payload
    }

    /// Returns the frame of a broadcast; an empty buffer if the payload is not valid content. The broadcast's author
    /// is the account that published it.
    static func frame(of publication: Publication) -> ByteBuffer {
        var bytes = ByteBuffer()
        guard let content = try? content(of: publication.payload) else { return bytes }
        var message = IMPB_C2C_msg()
        message.from = publication.sender?.rawValue ?? 0
        IMPBContent.fill(&message, with: content)
        var base = IMPB_base_msg()
        base.type = .broadcast
        // This cannot fail, because the message has no required fields.
        if let body: [UInt8] = try? message.wireBytes() { base.body = protobufBytes(body) }
        // All connections share the bytes, so the frame cannot have a number that belongs to one connection.
        guard base.body.count <= IMPBFrame.maxBodyBytes - 16,
            (try? IMPBFrame.write(base, seq: 0, type: .message, into: &bytes)) != nil
        else { return ByteBuffer() }
        return bytes
    }

    private static let tooLarge = HermesError(.tooLarge, "a broadcast has at most 32 KiB as JSON")

    private static func content(of payload: ByteBuffer) throws(HermesError) -> Hermes_V1_Content {
        guard payload.readableBytes <= maxBytes else { throw tooLarge }
        do throws(WireError) {
            return try Hermes_V1_Content(wireJSON: payload)
        } catch {
            throw HermesError(
                .invalidArgument,
                "a publication to \(broadcast) must be a content as JSON, "
                    + "such as {\"text\": \"hello\"}: \(error.message)"
            )
        }
    }
}
