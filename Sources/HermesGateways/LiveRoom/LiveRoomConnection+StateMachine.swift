// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire
import NIOCore

extension LiveRoomConnection {
    // MARK: Coming

    /// Handles a new connection: the viewer enters the listener's room, unless the listener requires an account.
    package mutating func accepted() -> Action {
        guard state == .outside, !rules.requiresAccount else { return .ignore(.outside) }
        state = .inside
        return .enter(room)
    }

    /// Lets the viewer into the room that it chose, after its token was accepted.
    package mutating func entryAccepted(_ principal: Principal) -> Action {
        guard case .entering(let target, let wasInside) = state else { return .ignore(.ended) }
        self.principal = principal
        return move(to: target, wasInside: wasInside)
    }

    /// Removes the viewer, because its token was refused or could not be checked.
    package mutating func entryRefused(_ kick: RoomRemoval) -> Action {
        guard case .entering = state else { return .ignore(.ended) }
        return .kick(kick, end())
    }

    // MARK: Frames

    /// Handles a complete frame.
    package mutating func frameReceived(_ frame: LiveRoomFrame) -> Action {
        switch state {
        case .ended: .ignore(.ended)
        case .outside: frameReceivedOutside(frame)
        case .inside: frameReceivedInside(frame)
        // Reading is paused while a token is being checked, so no frame can arrive.
        case .entering: .ignore(.entering)
        }
    }

    private mutating func frameReceivedInside(_ frame: LiveRoomFrame) -> Action {
        switch frame.type {
        case .heartbeat:
            return .live
        case .join:
            guard frame.hasGoodBody, keepJoin(frame.body) else { return .ignore(.badBody) }
            return .publish
        case .text, .gift:
            return frame.hasGoodBody ? .publish : .ignore(.badBody)
        case .leave:
            guard frame.hasGoodBody else { return .ignore(.badBody) }
            let isOfJoin = joinBody != nil
            _ = end()
            return .leave(LiveRoomDeparture(room: room, announcement: frame.body, isOfJoin: isOfJoin))
        case .enter:
            return enterReceived(frame.body, wasInside: true)
        default:
            // The other types below 16 belong to the server if the viewer has sent *enter*, and to the application
            // otherwise.
            if hasEntered, !frame.type.isApplicationDefined {
                return .ignore(frame.type.isServers ? .serverType : .unknownType)
            }
            return rules.forwardsApplicationTypes ? .publish : .ignore(.applicationType)
        }
    }

    private mutating func frameReceivedOutside(_ frame: LiveRoomFrame) -> Action {
        switch frame.type {
        case .heartbeat:
            return .live
        case .leave:
            return .leave(end())
        case .enter:
            return enterReceived(frame.body, wasInside: false)
        default:
            return .ignore(.outside)
        }
    }

    private mutating func enterReceived(_ body: ByteBuffer, wasInside: Bool) -> Action {
        hasEntered = true
        switch LiveRoomTranslation.entry(from: body, defaultRoom: rules.room) {
        case .withToken(let entry):
            state = .entering(entry.room, wasInside: wasInside)
            return .checkToken(entry)
        case .anonymous(let target):
            guard principal != nil || !rules.requiresAccount else {
                return .kick(RoomRemoval(.notAuthenticated, "this room requires an access token"), end())
            }
            return move(to: target, wasInside: wasInside)
        case .refused(let kick):
            return .kick(kick, end())
        }
    }

    /// Forgets the last join, because it was not forwarded. If an earlier join was forwarded, a leave must still follow
    /// it.
    mutating func joinRefused() { joinBody = formerJoinBody }

    // MARK: Going

    /// Removes the viewer, because the server has decided to remove it.
    package mutating func removalDecided(_ kick: RoomRemoval) -> Action {
        guard state != .ended else { return .ignore(.ended) }
        return .kick(kick, end())
    }

    /// Ends the visit of a lost viewer. A viewer is lost if it was silent for too long, did not read, violated the
    /// protocol or disconnected. Nothing can be sent to a lost viewer.
    package mutating func viewerLost() -> Action {
        guard state != .ended else { return .ignore(.ended) }
        return .leave(end())
    }

    // MARK: Shared

    private mutating func move(to target: RoomName, wasInside: Bool) -> Action {
        state = .inside
        guard wasInside else {
            room = target
            return .move(nil, to: target)
        }
        // The viewer is already in this room, so there is no leave to announce.
        guard target != room else { return .move(nil, to: target) }
        let departure = LiveRoomDeparture(room: room, announcement: joinBody)
        joinBody = nil
        formerJoinBody = nil
        room = target
        return .move(departure, to: target)
    }

    /// Ends the visit. Returns the departure; nil if the viewer was in no room.
    private mutating func end() -> LiveRoomDeparture? {
        let wasInside =
            switch state {
            case .inside, .entering(_, wasInside: true): true
            case .outside, .entering(_, wasInside: false), .ended: false
            }
        state = .ended
        defer {
            joinBody = nil
            formerJoinBody = nil
        }
        return wasInside ? LiveRoomDeparture(room: room, announcement: joinBody) : nil
    }

    /// Keeps a copy of the parts of a join that a leave needs. A slice would keep the whole read buffer in memory.
    ///
    /// - Returns: false if the viewer's name is too long to keep. Such a join must not be forwarded, because no leave
    ///   could follow it.
    private mutating func keepJoin(_ body: ByteBuffer) -> Bool {
        guard let kept = announcement(of: body) else { return false }
        formerJoinBody = joinBody
        joinBody = kept
        return true
    }

    /// Returns a copy of a join's body. If the whole body is too long to keep, the copy has only the level and the
    /// name. Returns nil if these are also too long.
    private func announcement(of body: ByteBuffer) -> ByteBuffer? {
        guard body.readableBytes > rules.maxKeptJoinBytes else { return ByteBuffer(bytes: body.readableBytesView) }
        guard let info = try? LiveRoom_UserInfo(wire: body) else { return nil }
        var kept = LiveRoom_UserInfo()
        kept.level = info.level
        kept.name = info.name
        kept.iconURL = ""
        guard let copy = try? kept.wireBuffer(), copy.readableBytes <= rules.maxKeptJoinBytes else { return nil }
        return copy
    }
}

extension LiveRoomFrame {
    /// Whether the body fits its type.
    var hasGoodBody: Bool {
        do {
            try validateBody()
            return true
        } catch {
            return false
        }
    }
}
