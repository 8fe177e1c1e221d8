// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
internal import SwiftProtobuf

/// The type of a LiveRoom frame, which defines its body.
public struct LiveRoomFrameType: RawRepresentable, Hashable, Sendable {
    /// The number on the wire, which need not be defined.
    public let rawValue: UInt16

    /// Creates the type with this number.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// A user joined (LiveRoom_UserInfo).
    package static let join = Self(rawValue: 0)
    /// A user leaves (LiveRoom_UserInfo).
    package static let leave = Self(rawValue: 1)
    /// A text (LiveRoom_ChatMessage).
    package static let text = Self(rawValue: 2)
    /// A gift (LiveRoom_GiftMessage).
    package static let gift = Self(rawValue: 3)
    /// Extension: a notice from the server to the room (LiveRoom_SystemNotice).
    package static let notice = Self(rawValue: 4)
    /// Extension: the server removes this connection (LiveRoom_Kicked).
    package static let kicked = Self(rawValue: 5)
    /// A heartbeat with any body. It is neither forwarded nor answered.
    package static let heartbeat = Self(rawValue: 8)
    /// Extension: a viewer enters a room, optionally with an account (LiveRoom_Enter).
    package static let enter = Self(rawValue: 9)

    /// Whether the type belongs to the application. Hermes does not interpret the body of such a frame, regardless of
    /// its sender.
    package var isApplicationDefined: Bool { rawValue >= 16 }

    /// Whether only the server may send the type to viewers that have entered. For viewers that have not entered, the
    /// number belongs to the application.
    package var isServers: Bool { self == .notice || self == .kicked }

    /// The message in the body; nil for a heartbeat and for types that Hermes does not define.
    var message: (any SwiftProtobuf.Message.Type)? {
        switch self {
        case .join, .leave: LiveRoom_UserInfo.self
        case .text: LiveRoom_ChatMessage.self
        case .gift: LiveRoom_GiftMessage.self
        case .notice: LiveRoom_SystemNotice.self
        case .kicked: LiveRoom_Kicked.self
        case .enter: LiveRoom_Enter.self
        default: nil
        }
    }

    /// Returns the number of parts of a body of this type (``MessageParts``); 0 if Hermes does not define a message for
    /// it.
    package func partCount(of body: ByteBuffer) -> Int { message.map { MessageParts.count($0, wire: body) } ?? 0 }

    /// Whether Hermes defines the type.
    package var isKnown: Bool { self == .heartbeat || message != nil }
}
