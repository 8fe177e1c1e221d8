// Hermes
// SPDX-License-Identifier: Apache-2.0

extension LiveRoomFrame {
    /// The parts of the body (``MessageParts``); 0 for an application's own.
    package var partCount: Int {
        switch type {
        case .join, .leave: MessageParts.count(LiveRoom_UserInfo.self, wire: body)
        case .text: MessageParts.count(LiveRoom_ChatMessage.self, wire: body)
        case .gift: MessageParts.count(LiveRoom_GiftMessage.self, wire: body)
        case .notice: MessageParts.count(LiveRoom_SystemNotice.self, wire: body)
        case .kicked: MessageParts.count(LiveRoom_Kicked.self, wire: body)
        case .enter: MessageParts.count(LiveRoom_Enter.self, wire: body)
        default: 0
        }
    }

    /// Checks that the body fits its type. The forwarded bytes stay unchanged.
    ///
    /// - Throws: WireError `.badBody` if the body of a known type does not parse or lacks a required field;
    ///   `.unknownType` if the type is neither known nor the application's own.
    package func validateBody() throws(WireError) {
        switch type {
        case .join, .leave: _ = try LiveRoom_UserInfo(wire: body)
        case .text: _ = try LiveRoom_ChatMessage(wire: body)
        case .gift: _ = try LiveRoom_GiftMessage(wire: body)
        case .notice: _ = try LiveRoom_SystemNotice(wire: body)
        case .kicked: _ = try LiveRoom_Kicked(wire: body)
        case .enter: _ = try LiveRoom_Enter(wire: body)
        case .heartbeat: return
        default:
            guard type.isApplicationDefined else {
                throw WireError(.unknownType, "LiveRoom type \(type.rawValue) has no meaning; an app's own begin at 16")
            }
        }
    }
}
