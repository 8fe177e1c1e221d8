// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Translates between LiveRoom's frames and the core.
enum LiveRoomTranslation {
    /// The longest access token that is examined, in bytes; real ones have 43.
    static let maxTokenBytes = 256

    /// The result of reading an enter frame.
    enum Entry: Hashable {
        case withToken(LiveRoomEntry)
        case anonymous(RoomName)
        case refused(LiveRoomKick)
    }

    /// Parses the body of an enter frame.
    ///
    /// The device is `liveroom`, or `liveroom:` and the viewer's id. LiveRoom carries no inbox, so the cursor of its
    /// device moves by itself, and must not belong to a device that another protocol serves.
    static func entry(from body: ByteBuffer, defaultRoom: RoomName) -> Entry {
        let message: LiveRoom_Enter
        do {
            message = try LiveRoom_Enter(wire: body)
        } catch {
            return .refused(LiveRoomKick(.invalidArgument, "the enter frame does not parse"))
        }
        var room = defaultRoom
        if message.hasRoom, !message.room.isEmpty {
            guard let named = RoomName(message.room) else {
                return .refused(
                    LiveRoomKick(.invalidArgument, "a room's name is 1 to 64 letters, digits, '-', '_' or '.'")
                )
            }
            room = named
        }
        guard message.hasToken, !message.token.isEmpty else { return .anonymous(room) }
        guard message.token.utf8.count <= maxTokenBytes else {
            return .refused(LiveRoomKick(.invalidToken, "the access token is too long"))
        }
        let suffix = message.hasDeviceID && !message.deviceID.isEmpty ? ":\(message.deviceID)" : ""
        guard let device = DeviceID("liveroom\(suffix)") else {
            return .refused(LiveRoomKick(.invalidArgument, "device_id is at most 55 bytes of printable ASCII"))
        }
        return .withToken(LiveRoomEntry(room: room, token: message.token, device: device))
    }

    /// The viewer's reason for a refused login.
    static func kick(for error: HermesError) -> LiveRoomKick {
        LiveRoomKick(error.code, error.message)
    }

    /// The viewer's reason for the end of its session.
    static func kick(for end: AttachmentEnd) -> LiveRoomKick {
        switch end {
        case .replaced: LiveRoomKick(.replaced, "the same device entered again on another connection")
        case .accountDisabled: LiveRoomKick(.accountDisabled, "the account was disabled")
        case .accountDeleted: LiveRoomKick(.accountDisabled, "the account was deleted")
        case .accountRenamed: LiveRoomKick(.notAuthenticated, "the account has another name")
        case .revoked: LiveRoomKick(.invalidToken, "the access token was revoked")
        case .shuttingDown: LiveRoomKick(.shuttingDown, "the server is stopping")
        }
    }

    /// The viewer's reason for a closed connection; nil if there is none, or nobody to tell.
    static func kick(for reason: CloseReason) -> LiveRoomKick? {
        switch reason {
        case .attachment(let end): kick(for: end)
        case .shuttingDown: kick(for: AttachmentEnd.shuttingDown)
        case .notAuthenticated: LiveRoomKick(.notAuthenticated, "no access token arrived in time")
        case .tokenExpired: LiveRoomKick(.invalidToken, "the token has expired")
        case .memory: LiveRoomKick(.overloaded, CloseReason.memoryText)
        case .rateLimited: LiveRoomKick(.rateLimited, CloseReason.rateText)
        case .goodbye, .finished, .malformed, .idle, .slowReader, .loginBudget: nil
        }
    }

    /// Appends the frame with the reason for a removal.
    static func write(_ kick: LiveRoomKick, into buffer: inout ByteBuffer) throws(WireError) {
        var message = LiveRoom_Kicked()
        message.code = kick.code.rawValue
        message.reason = kick.reason
        try LiveRoomFrame.write(message, type: .kicked, into: &buffer)
    }

    // MARK: Room messages

    /// The publication of a viewer's frame to a room. It can always be dropped, even if it has a type of the server's.
    static func publication(of frame: LiveRoomFrame, to topic: TopicName, sender: UserID?) -> Publication {
        Publication(
            topic: topic,
            payload: frame.body,
            kind: frame.type.rawValue,
            dropClass: min(dropClass(of: frame.type), .gift),
            sender: sender
        )
    }

    /// The publication of a body to a room, of a type that its sender may use.
    static func publication(
        of body: ByteBuffer,
        type: LiveRoomFrameType,
        to topic: TopicName,
        sender: UserID?,
        details: PublicationDetails? = nil
    ) -> Publication {
        Publication(
            topic: topic,
            payload: body,
            kind: type.rawValue,
            dropClass: dropClass(of: type),
            sender: sender,
            details: details
        )
    }

    /// The frame of a publication for viewers; encoded once per loop, copied to each.
    ///
    /// Empty for a payload that is neither text nor typed.
    static func frame(of publication: Publication) -> ByteBuffer {
        var bytes = ByteBuffer()
        if publication.kind == Publication.plainKind {
            // Cannot fail: all required fields are set, and the text was shorter than a packet.
            if let message = plainText(publication) { try? LiveRoomFrame.write(message, type: .text, into: &bytes) }
            return bytes
        }
        do throws(WireError) {
            try LiveRoomFrame.writeHeader(
                type: LiveRoomFrameType(rawValue: publication.kind),
                bodyBytes: publication.payload.readableBytes,
                into: &bytes
            )
        } catch {
            // Above 4 GiB, which no protocol accepts.
            return bytes
        }
        bytes.writeImmutableBuffer(publication.payload)
        return bytes
    }

    /// The frame of a notice for viewers that did not enter, and do not know the type: a text of the user "system".
    ///
    /// Empty for other types.
    static func plainFrame(of publication: Publication) -> ByteBuffer {
        var bytes = ByteBuffer()
        guard LiveRoomFrameType(rawValue: publication.kind) == .notice,
            let notice = try? LiveRoom_SystemNotice(wire: publication.payload)
        else { return bytes }
        var message = LiveRoom_ChatMessage()
        message.user.level = 0
        message.user.name = "system"
        message.user.iconURL = ""
        message.text = notice.text
        // Cannot fail: all required fields are set.
        try? LiveRoomFrame.write(message, type: .text, into: &bytes)
        return bytes
    }

    /// A plain text as LiveRoom's message, under the publisher's name; nil if it is not text.
    static func plainText(_ publication: Publication) -> LiveRoom_ChatMessage? {
        guard let text = String(validating: publication.payload.readableBytesView, as: UTF8.self) else { return nil }
        var message = LiveRoom_ChatMessage()
        message.user.level = 0
        message.user.name = publication.details?.userProperties.first { $0.name == "name" }?.value ?? "MQTT"
        message.user.iconURL = ""
        message.text = text
        return message
    }

    /// The order in which frames are dropped for a slow viewer.
    static func dropClass(of type: LiveRoomFrameType) -> Publication.DropClass {
        switch type {
        case .text: .text
        case .join, .leave: .presence
        case .notice, .kicked: .control
        // The application's own may be worth money.
        default: .gift
        }
    }
}

extension Publication {
    /// Whether the server published it to the room itself.
    var isServers: Bool { dropClass == .control }
}

extension LiveRoomRules {
    /// The rules from a listener's configuration.
    init(_ settings: LiveRoomSettings) {
        self.init(
            room: RoomName(settings.room) ?? .lobby,
            forwardsApplicationTypes: settings.applicationTypes == .forward,
            requiresAccount: !settings.isAnonymousAllowed
        )
    }
}
