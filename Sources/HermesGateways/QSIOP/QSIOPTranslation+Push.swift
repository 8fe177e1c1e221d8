// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire
import NIOCore

/// A push (op 4) for an inbox entry.
package struct QSIOPPush: Hashable, Sendable {
    /// The id that the device acknowledges: the id of the message, push or alert, or the seq of an entry without an id.
    package let id: String
    package let frame: QSIOPFrame
}

extension QSIOPTranslation {
    /// Returns the push for an inbox entry.
    ///
    /// - Parameter reader: the account and the device that read the inbox.
    /// - Returns: nil for entries that are not pushed: kinds that wake no device (read marks, recalls, changes of
    ///   contacts and groups), recalled messages, messages that this device sent, and pushes for another device.
    package static func push(for entry: InboxEntry, reader: Principal) -> QSIOPPush? {
        if case .push(let push) = entry.event { return self.push(push, seq: entry.seq, reader: reader) }
        guard case .message(let message) = entry.event else {
            guard entry.event.isFor(reader.device), let alert = entry.event.alert(for: reader.user) else { return nil }
            return push(alert, for: entry)
        }
        guard !message.isRecalled else { return nil }
        let isOwn = message.sender == reader.user
        guard !isOwn || message.senderDevice != reader.device else { return nil }

        let id = String(describing: message.id)
        var properties: QSIOPProperties = [
            "id": id,
            "title": cut(message.senderName, to: 1024),
            "seq": String(entry.seq),
            "from": String(message.sender.rawValue),
            "conversation": conversation(message.conversation, reader: reader.user),
            "time": String(message.sentAt.rawValue),
        ]
        if case .group(let group) = message.conversation { properties.append("group", String(group.rawValue)) }
        if isOwn { properties.append("own", "1") }

        let content = CanonicalContent.parsed(message.content)
        var text = plainText(message.content)
        var isWhole = true
        if case .custom(let custom) = content.kind, String(validating: custom.data, as: UTF8.self) == nil {
            // The data is not text.
            text = "[\(custom.type)]"
            isWhole = false
        }
        if text.utf8.count > room(in: properties) { isWhole = false }
        if !isWhole {
            let standIn = StandIn(for: content, bytes: message.content.bytes.count)
            properties.append("truncated", "1")
            for (key, value) in standIn.attributes.sorted(by: { $0.key < $1.key }) { properties.append(key, value) }
        }
        properties.append("body", cut(text, to: room(in: properties)))
        return QSIOPPush(id: id, frame: QSIOPFrame(.push, properties))
    }

    /// Returns the push for an entry of a kind that has no specific form in QSIOP. The push shows the alert that
    /// sleeping devices show for the entry.
    static func push(_ alert: EventAlert, for entry: InboxEntry) -> QSIOPPush {
        let id = alert.id?.description ?? String(entry.seq)
        var properties: QSIOPProperties = [
            "id": id,
            "title": cut(alert.title, to: 1024),
            "seq": String(entry.seq),
            "time": String(entry.committedAt.rawValue),
        ]
        if alert.body.utf8.count > room(in: properties) { properties.append("truncated", "1") }
        properties.append("body", cut(alert.body, to: room(in: properties)))
        return QSIOPPush(id: id, frame: QSIOPFrame(.push, properties))
    }

    /// Returns the number of bytes that are left for the body in a frame with these properties.
    static func room(in properties: QSIOPProperties) -> Int {
        QSIOPFrame.maxBodyBytes - encodedBytes(properties) - "body:\n".utf8.count
    }

    /// Returns `direct/<uid of the other account>` or `group/<id>`.
    private static func conversation(_ conversation: ConversationID, reader: UserID) -> String {
        switch conversation {
        case .direct(let low, _): "direct/\((conversation.peer(of: reader) ?? low).rawValue)"
        case .group(let group): "group/\(group.rawValue)"
        }
    }

    private static func encodedBytes(_ properties: QSIOPProperties) -> Int {
        properties.pairs.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 2 }
    }

    /// Returns the content as plain text, for a simple screen.
    static func plainText(_ content: MessageContent) -> String {
        guard let message = CanonicalReading.of(content).content else { return "[unreadable]" }
        switch message.kind {
        case .text(let text): return text
        case .image(let image): return "[image] \(image.url)"
        case .sound(let sound): return "[sound] \(sound.sourceURL)"
        case .location(let location): return "[location] \(location.label) \(location.latitude),\(location.longitude)"
        case .video(let video): return "[video] \(video.url)"
        case .expression(let expression): return "[expression] \(expression.name)"
        case .custom(let custom):
            return "[\(custom.type)] \(String(validating: custom.data, as: UTF8.self) ?? "")"
        case nil: return "[unsupported]"
        }
    }
}
