// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Translates between LiveRoom's frames and the core.
enum LiveRoomTranslation {
    /// The longest access token that is examined, in bytes. The server's tokens have 43 bytes.
    static let maxTokenBytes = 256

    /// The result of reading an enter frame.
    enum Entry: Hashable {
        case withToken(LiveRoomEntry)
        case anonymous(RoomName)
        case refused(RoomRemoval)
    }

    /// Parses the body of an enter frame.
    ///
    /// The device is `liveroom`, or `liveroom:` followed by the device id that the viewer gives. The prefix
    /// distinguishes this device from the devices that other protocols serve, because a viewer is not a device with
    /// an inbox.
    static func entry(from body: ByteBuffer, defaultRoom: RoomName) -> Entry {
        let message: LiveRoom_Enter
        do {
            message = try LiveRoom_Enter(wire: body)
        } catch {
            return .refused(RoomRemoval(.invalidArgument, "the enter frame does not parse"))
        }
        var room = defaultRoom
        if message.hasRoom, !message.room.isEmpty {
            do throws(HermesError) {
                room = try RequestedIDs.room(message.room)
            } catch {
                return .refused(RoomRemoval(error))
            }
        }
        guard message.hasToken, !message.token.isEmpty else { return .anonymous(room) }
        guard message.token.utf8.count <= maxTokenBytes else {
            return .refused(RoomRemoval(.invalidToken, "the access token is too long"))
        }
        let suffix = message.hasDeviceID && !message.deviceID.isEmpty ? ":\(message.deviceID)" : ""
        let id = "liveroom\(suffix)"
        guard let device = DeviceID(id) else {
            let code = HermesError.Code.ofValue(id.utf8.count, atMost: DeviceID.maxBytes)
            return .refused(RoomRemoval(code, "device_id is at most 55 bytes of printable ASCII"))
        }
        return .withToken(LiveRoomEntry(room: room, token: message.token, device: device))
    }

    /// Returns the reason that a viewer gets for a refused login.
    static func kick(for error: HermesError) -> RoomRemoval {
        RoomRemoval(error)
    }

    /// Returns the reason that a viewer gets when the core ends its visit.
    static func kick(for end: AttachmentEnd) -> RoomRemoval {
        switch end {
        case .replaced: RoomRemoval(.replaced, "the same device entered again on another connection")
        case .accountDisabled: RoomRemoval(.accountDisabled, CloseReason.disabledText)
        case .accountDeleted: RoomRemoval(.accountDisabled, CloseReason.deletedText)
        case .accountRenamed: RoomRemoval(.notAuthenticated, "the account has another name")
        case .revoked: RoomRemoval(.invalidToken, "the access token was revoked")
        case .shuttingDown: RoomRemoval(.shuttingDown, CloseReason.stoppingText)
        }
    }

    /// Returns the reason that a viewer gets when the server closes its connection; nil if it gets none.
    static func kick(for reason: CloseReason) -> RoomRemoval? {
        switch reason {
        case .attachment(let end): kick(for: end)
        case .shuttingDown: kick(for: AttachmentEnd.shuttingDown)
        case .notAuthenticated: RoomRemoval(.notAuthenticated, "no access token arrived in time")
        case .tokenExpired: RoomRemoval(.invalidToken, "the token has expired")
        case .memory: RoomRemoval(.overloaded, CloseReason.memoryText)
        case .rateLimited: RoomRemoval(.rateLimited, CloseReason.rateText)
        case .idle: RoomRemoval(.notAuthenticated, "no heartbeat arrived in time")
        case .goodbye, .finished, .malformed, .slowReader, .loginBudget, .loginRefused: nil
        }
    }

    /// Appends the frame with the reason for a removal.
    static func write(_ kick: RoomRemoval, into buffer: inout ByteBuffer) throws(WireError) {
        try LiveRoomFrame.write(LiveRoom_Kicked(kick), type: .kicked, into: &buffer)
    }

    // MARK: Room events

    /// Returns the publication of a viewer's frame to a room.
    static func publication(of frame: LiveRoomFrame, to topic: TopicName, sender: UserID?) -> Publication {
        Publication(RoomEvent.Kind(frame.type), frame.body, to: topic, sender: sender)
    }

    /// Returns the frame of a publication for viewers. A room event's payload becomes the body unchanged; a plain
    /// payload becomes a text. The frame is encoded once per event loop, and copied to each viewer.
    ///
    /// The result is empty for a plain payload that is not UTF-8.
    static func frame(of publication: Publication) -> ByteBuffer {
        switch publication.kind {
        case .plain: RoomEvent(publication).map { frame(of: $0.content) } ?? ByteBuffer()
        case .room(let kind): frame(of: kind, publication.payload)
        }
    }

    /// Returns the frame of a notice for viewers that never sent *enter*, and so do not know the type of notices. The
    /// frame is a text from the user "system".
    ///
    /// The result is empty for other kinds of events.
    static func plainFrame(of publication: Publication) -> ByteBuffer {
        guard case .noticed(let text, _)? = RoomEvent(publication)?.content else { return ByteBuffer() }
        return frame(of: .said(RoomMember(name: "system"), text))
    }

    private static func frame(of content: RoomEvent.Content) -> ByteBuffer {
        // This cannot fail: all fields are set, and the publisher's protocol has limited the length of the text.
        guard let payload = try? LiveRoomPayloads().payload(of: content) else { return ByteBuffer() }
        return frame(of: content.kind, payload)
    }

    private static func frame(of kind: RoomEvent.Kind, _ body: ByteBuffer) -> ByteBuffer {
        var bytes = ByteBuffer()
        do throws(WireError) {
            try LiveRoomFrame.writeHeader(type: LiveRoomFrameType(kind), bodyBytes: body.readableBytes, into: &bytes)
        } catch {
            // The body is longer than 4 GiB, which no protocol accepts.
            return bytes
        }
        bytes.writeImmutableBuffer(body)
        return bytes
    }
}

extension LiveRoomRules {
    /// Creates the rules from the protocol's settings.
    init(_ settings: LiveRoomSettings) {
        self.init(
            room: RoomName(settings.room) ?? .lobby,
            forwardsApplicationTypes: settings.applicationTypes == .forward,
            requiresAccount: !settings.isAnonymousAllowed
        )
    }
}
