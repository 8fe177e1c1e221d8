// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesWire
import NIOCore

/// Writes Server-Sent Events (HTML, section 9.2). Events have no `id`, so a reader cannot request events that were
/// sent while it was away.
enum EventText {
    /// A comment, which readers ignore.
    static let heartbeat = ":\n\n"

    /// Returns the beginning of a stream.
    ///
    /// - Parameter retry: the time after which a reader that has lost the stream connects again.
    static func ready(topics: [TopicFilter], kinds: [ServerEvent.Kind], retry: Duration) -> String {
        let data: JSON = [
            "server": .string("hermes/\(HermesVersion.current)"),
            "topics": .array(topics.map { .string($0.rawValue) }),
            "kinds": .array(kinds.map { .string($0.rawValue) }),
        ]
        return "retry: \(Int(retry / .milliseconds(1)))\n" + text("ready", data)
    }

    static func end(_ reason: StreamEnd) -> String { text("end", ["reason": .string(reason.rawValue)]) }

    /// Appends an event, unless it has expired.
    ///
    /// - Parameter readsRooms: whether to extract the texts of rooms from their frames.
    /// - Returns: whether the event was written.
    static func write(
        _ event: StreamedEvent,
        now: Timestamp,
        into buffer: inout ByteBuffer,
        readsRooms: Bool = false
    ) -> Bool {
        switch event {
        case .publication(let publication):
            if let end = publication.details?.expiresAt, end <= now { return false }
            let room = readsRooms ? roomData(of: publication) : nil
            buffer.writeString(text("publication", room ?? data(of: publication)))
        case .tooLarge(let topic, let bytes):
            let data: JSON = ["topic": .string(topic.rawValue), "too_large": true, "bytes": .integer(bytes)]
            buffer.writeString(text("publication", data))
        case .server(let event, let time):
            buffer.writeString("event: \(event.kind.rawValue)\ndata: ")
            buffer.writeBytes(event.body(at: time))
            buffer.writeString("\n\n")
        case .dropped(let count):
            buffer.writeString(text("dropped", ["count": .integer(count)]))
        }
        return true
    }

    /// Returns an event with JSON as its data. The data is one line, because this JSON has no line feeds.
    private static func text(_ name: String, _ data: JSON) -> String { "event: \(name)\ndata: \(data.text)\n\n" }

    /// Returns the contents of a publication to a room, for people who watch the room.
    ///
    /// - Returns: nil for a publication that is not a room event, for a removal, and for an application's own event.
    private static func roomData(of publication: Publication) -> JSON? {
        guard case .room = publication.kind, let event = RoomEvent(publication) else { return nil }
        let what: String
        var text: String?
        var count: Int32?
        switch event.content {
        case .joined: what = "join"
        case .left: what = "leave"
        case .said(_, let said): (what, text) = ("text", said)
        case .gave(_, let gift): (what, text, count) = ("gift", gift.name, gift.count)
        case .noticed(let notice, _): (what, text) = ("notice", notice)
        case .kicked, .application: return nil
        }
        return .members([
            "topic": .string(publication.topic.rawValue),
            "what": .string(what),
            "name": event.content.member.map { .string(cut($0.name)) },
            "text": text.map { .string(cut($0)) },
            "count": count.map { .integer($0) },
        ])
    }

    /// The longest part of a text or name that is shown, in bytes.
    private static let maxShownBytes = RoomLimits.maxTextBytes

    private static func cut(_ text: String) -> String {
        guard text.utf8.count > maxShownBytes else { return text }
        return String(decoding: text.utf8.prefix(maxShownBytes), as: UTF8.self) + "…"
    }

    private static func data(of publication: Publication) -> JSON {
        let payload = publication.payload.readableBytesView
        let text = String(validating: payload, as: UTF8.self)
        let details = publication.details
        let properties = details?.userProperties ?? []
        return .members([
            "topic": .string(publication.topic.rawValue),
            "qos": .integer(publication.qos.rawValue),
            "retain": publication.retain ? true : nil,
            "text": text.map(JSON.string),
            "base64": text == nil ? .string(Data(payload).base64EncodedString()) : nil,
            "content_type": details?.contentType.map(JSON.string),
            "response_topic": details?.responseTopic.map(JSON.string),
            "user_properties": properties.isEmpty
                ? nil : .array(properties.map { ["name": .string($0.name), "value": .string($0.value)] }),
            "liveroom_type": publication.kind.number.map { .integer($0) },
        ])
    }
}
