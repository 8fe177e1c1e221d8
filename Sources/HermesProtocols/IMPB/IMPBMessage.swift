// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes
import HermesWire

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A message as it arrives over IMPB.
public struct IMPBMessage: Hashable, Sendable {
    /// The message's id; empty if the server gives none.
    public var id: MessageID
    /// The author.
    public var fromUID: UserID
    /// The author's name; may be empty.
    public var fromNickName: String
    /// The recipient; nil in groups.
    public var toUID: UserID?
    /// The group; nil in 1:1 conversations.
    public var groupID: GroupID?
    /// The content.
    public var content: MessageContent
    /// The entry's seq in this account's inbox; 0 if the server gives none.
    public var inboxSeq: UInt64
    /// The time at which the server committed the message, by the server's clock.
    public var date: Date
    /// Whether another device of this account sent the message.
    public var isOwn: Bool

    /// The text; nil for other content.
    public var text: String? { if case .text(let text) = content { text } else { nil } }
}

extension IMPBMessage {
    init?(_ message: IMPB_base_msg, ownUID: UInt32) {
        let body = [UInt8](message.body)
        switch message.type {
        case .c2C:
            guard let told = try? IMPB_C2C_msg(wire: body, maxParts: nil) else { return nil }
            self.init(
                id: MessageID(rawValue: told.messageID),
                fromUID: UserID(rawValue: UInt32(clamping: told.from)),
                fromNickName: told.fromInfo.nickName,
                toUID: UserID(rawValue: UInt32(clamping: told.to)),
                groupID: nil,
                content: MessageContent(told.type, [UInt8](told.content)),
                inboxSeq: told.seq,
                date: Date(milliseconds: told.serverTime),
                isOwn: UInt32(clamping: told.from) == ownUID
            )
        case .group:
            guard let told = try? IMPB_Group_msg(wire: body, maxParts: nil) else { return nil }
            self.init(
                id: MessageID(rawValue: told.messageID),
                fromUID: UserID(rawValue: UInt32(clamping: told.from)),
                fromNickName: told.fromInfo.nickName,
                toUID: nil,
                groupID: GroupID(rawValue: UInt32(clamping: told.groupID)),
                content: MessageContent(told.type, [UInt8](told.content)),
                inboxSeq: told.seq,
                date: Date(milliseconds: told.serverTime),
                isOwn: UInt32(clamping: told.from) == ownUID
            )
        case .unused, .broadcast, .custom, .UNRECOGNIZED:
            return nil
        }
    }
}
