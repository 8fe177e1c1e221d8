// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Translates the application's own operations (16 and up) to publications of JSON objects, and back. An operation that
/// a device sends is published to `qsiop/UID/DEVICE/OP`. A publication to `qsiop/UID/DEVICE/down/OP` is sent to the
/// device.
enum QSIOPApplication: ApplicationTopicForm {
    /// The first level of the topics.
    static let topicPrefix = "qsiop/"
    /// The longest JSON for a device, in bytes. In addition, the properties that it holds must fit into a frame.
    static let maxPayloadBytes = 131_072

    /// Returns the prefix of a device's topics; nil if the device's id has characters that a topic level cannot have.
    static func topics(of principal: Principal) -> String? {
        let device = principal.device.rawValue
        guard device.utf8.allSatisfy({ ![UInt8(ascii: "/"), UInt8(ascii: "+"), UInt8(ascii: "#")].contains($0) }) else {
            return nil
        }
        return "\(topicPrefix)\(principal.user.rawValue)/\(device)"
    }

    // MARK: From devices

    /// Returns the properties as a JSON object of texts. If a key occurs several times, its last value counts.
    static func payload(of properties: QSIOPProperties) -> ByteBuffer {
        var places: [[UInt8]: Int] = [:]
        var members: [JSON.Member] = []
        for pair in properties.pairs {
            let member = JSON.Member(name: pair.key, value: .string(pair.value))
            let key = Array(pair.key.utf8)
            if let place = places[key] {
                members[place] = member
            } else {
                places[key] = members.count
                members.append(member)
            }
        }
        return ByteBuffer(string: JSON.object(members).text)
    }

    // MARK: To devices

    /// Checks a publication before it is published; see ``ApplicationTopics/check(_:_:)``.
    ///
    /// - Throws: `.invalidArgument` or `.tooLarge` if the topic is for operations to a device, but the number of the
    ///   operation or the payload is not allowed.
    static func check(_ topic: TopicName, _ payload: ByteBuffer) throws(HermesError) {
        guard let text = operationText(of: topic) else { return }
        guard operation(text) != nil else {
            throw HermesError(.invalidArgument, "the last level of a topic to a device is its op, 16 to 65535")
        }
        _ = try properties(of: payload)
    }

    /// Returns the frame for a publication; an empty buffer if the publication is not an operation for a device.
    static func frame(of publication: Publication) -> ByteBuffer {
        var bytes = ByteBuffer()
        guard let operation = operationText(of: publication.topic).flatMap(operation),
            let properties = try? properties(of: publication.payload)
        else { return bytes }
        // This cannot fail, because the length was checked.
        try? QSIOPFrame(operation, properties).write(into: &bytes)
        return bytes
    }

    /// Returns the last level of a topic for operations to a device; nil for other topics.
    private static func operationText(of topic: TopicName) -> Substring.UTF8View? {
        guard topic.rawValue.utf8.starts(with: topicPrefix.utf8) else { return nil }
        let levels = topic.rawValue.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard levels.count == 5, levels[3].elementsEqual("down".utf8) else { return nil }
        return levels[4]
    }

    private static func operation(_ text: Substring.UTF8View) -> QSIOPOperation? {
        guard let number = UInt16(Substring(text)), String(number).utf8.elementsEqual(text) else { return nil }
        let operation = QSIOPOperation(rawValue: number)
        return operation.isApplicationDefined ? operation : nil
    }

    /// Returns the members of a JSON object as properties. Texts are copied unchanged, and other values are written
    /// as JSON. Members that are null are left out. No character is replaced, so different names stay different.
    ///
    /// - Throws: `.invalidArgument` or `.tooLarge` if QSIOP cannot carry the payload, for example because a name has a
    ///   colon, or a text has several lines.
    private static func properties(of payload: ByteBuffer) throws(HermesError) -> QSIOPProperties {
        guard payload.readableBytes <= maxPayloadBytes else {
            throw HermesError(.tooLarge, "the JSON for a device has at most \(maxPayloadBytes) bytes")
        }
        let value: JSON
        do throws(JSONParser.Failure) {
            value = try JSONParser.parse(Array(payload.readableBytesView))
        } catch {
            throw HermesError(
                .invalidArgument,
                "a publication to a device must be a JSON object; at byte \(error.offset): \(error.reason)"
            )
        }
        guard case .object(let members) = value else {
            throw HermesError(.invalidArgument, "a publication to a device must be a JSON object, not \(value.kind)")
        }
        var properties = QSIOPProperties()
        var bytes = 0
        for member in members {
            let value: String
            switch member.value {
            case .null: continue
            case .string(let text): value = text
            case .boolean, .number, .array, .object: value = member.value.text
            }
            bytes += member.name.utf8.count + value.utf8.count + 2
            do throws(WireError) {
                try properties.appendUnchanged(member.name, value)
            } catch {
                let name = QSIOPTranslation.cut(member.name, to: 64).debugDescription
                throw HermesError(.invalidArgument, "the member \(name) cannot be sent to a device: \(error.message)")
            }
        }
        guard bytes <= QSIOPFrame.maxBodyBytes else {
            throw HermesError(.tooLarge, "the properties for a device have at most \(QSIOPFrame.maxBodyBytes) bytes")
        }
        return properties
    }
}
