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
        case refused(RoomRemoval)
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
            return .refused(RoomRemoval(.invalidArgument, "the enter frame does not parse"))
        }
        var room = defaultRoom
        if message.hasRoom, !message.room.isEmpty {
            guard let named = RoomName(message.room) else {
                return .refused(
                    RoomRemoval(.invalidArgument, "a room's name is 1 to 64 letters, digits, '-', '_' or '.'")
                )
            }
            room = named
        }
        guard message.hasToken, !message.token.isEmpty else { return .anonymous(room) }
        guard message.token.utf8.count <= maxTokenBytes else {
            return .refused(RoomRemoval(.invalidToken, "the access token is too long"))
        }
        let suffix = message.hasDeviceID && !message.deviceID.isEmpty ? ":\(message.deviceID)" : ""
        guard let device = DeviceID("liveroom\(suffix)") else {
            return .refused(RoomRemoval(.invalidArgument, "device_id is at most 55 bytes of printable ASCII"))
        }
        return .withToken(LiveRoomEntry(room: room, token: message.token, device: device))
    }

    /// The viewer's reason for a refused login.
    static func kick(for error: HermesError) -> RoomRemoval {
        RoomRemoval(error)
    }

    /// The viewer's reason for the end of its visit.
    static func kick(for end: AttachmentEnd) -> RoomRemoval {
        switch end {
        case .replaced: RoomRemoval(.replaced, "the same device entered again on another connection")
        case .accountDisabled: RoomRemoval(.accountDisabled, "the account was disabled")
        case .accountDeleted: RoomRemoval(.accountDisabled, "the account was deleted")
        case .accountRenamed: RoomRemoval(.notAuthenticated, "the account has another name")
        case .revoked: RoomRemoval(.invalidToken, "the access token was revoked")
        case .shuttingDown: RoomRemoval(.shuttingDown, "the server is stopping")
        }
    }

    /// The viewer's reason for a closed connection; nil if there is none, or nobody to tell.
    static func kick(for reason: CloseReason) -> RoomRemoval? {
        switch reason {
        case .attachment(let end): kick(for: end)
        case .shuttingDown: kick(for: AttachmentEnd.shuttingDown)
        case .notAuthenticated: RoomRemoval(.notAuthenticated, "no access token arrived in time")
        case .tokenExpired: RoomRemoval(.invalidToken, "the token has expired")
        case .memory: RoomRemoval(.overloaded, CloseReason.memoryText)
        case .rateLimited: RoomRemoval(.rateLimited, CloseReason.rateText)
        case .goodbye, .finished, .malformed, .idle, .slowReader, .loginBudget: nil
        }
    }

    /// Appends the frame with the reason for a removal.
    static func write(_ kick: RoomRemoval, into buffer: inout ByteBuffer) throws(WireError) {
        try LiveRoomFrame.write(LiveRoom_Kicked(kick), type: .kicked, into: &buffer)
    }

    // MARK: Room events

    /// The publication of a viewer's frame to a room.
    static func publication(of frame: LiveRoomFrame, to topic: TopicName, sender: UserID?) -> Publication {
        Publication(RoomEvent.Kind(frame.type), frame.body, to: topic, sender: sender)
    }

    /// The frame of a publication for viewers, around the payload as it came; encoded once per loop, copied to each.
    ///
    /// Empty for a payload that is neither text nor typed.
    static func frame(of publication: Publication) -> ByteBuffer {
        switch publication.kind {
        case .plain: RoomEvent(publication).map { frame(of: $0.content) } ?? ByteBuffer()
        case .room(let kind): frame(of: kind, publication.payload)
        }
    }

    /// The frame of a notice for viewers that did not enter, and do not know the type: a text of the user "system".
    ///
    /// Empty for other kinds.
    static func plainFrame(of publication: Publication) -> ByteBuffer {
        guard case .noticed(let text, _)? = RoomEvent(publication)?.content else { return ByteBuffer() }
        return frame(of: .said(RoomMember(name: "system"), text))
    }

    private static func frame(of content: RoomEvent.Content) -> ByteBuffer {
        // Cannot fail: all fields are set, and the text was shorter than a frame of its publisher's protocol.
        guard let payload = try? LiveRoomPayloads().payload(of: content) else { return ByteBuffer() }
        return frame(of: content.kind, payload)
    }

    private static func frame(of kind: RoomEvent.Kind, _ body: ByteBuffer) -> ByteBuffer {
        var bytes = ByteBuffer()
        do throws(WireError) {
            try LiveRoomFrame.writeHeader(type: LiveRoomFrameType(kind), bodyBytes: body.readableBytes, into: &bytes)
        } catch {
            // Above 4 GiB, which no protocol accepts.
            return bytes
        }
        bytes.writeImmutableBuffer(body)
        return bytes
    }
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
