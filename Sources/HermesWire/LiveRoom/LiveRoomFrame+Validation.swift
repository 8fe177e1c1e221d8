// Hermes
// SPDX-License-Identifier: Apache-2.0

extension LiveRoomFrame {
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
