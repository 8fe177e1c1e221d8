// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes
import HermesWire
import SwiftProtobuf

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The result of a login over IMPB.
public struct IMPBLogin: Hashable, Sendable {
    /// The account's number.
    public var uid: UserID
    /// The token for the next login, in place of the password. It is a secret.
    public var token: String
}

/// An event for the app. Newer versions add kinds, so a `switch` over them needs a `default`.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum IMPBEvent: Hashable, Sendable {
    /// A message from another account, or from another device of this account.
    case message(IMPBMessage)
    /// A message to everyone. The author's id is 0 if a back end sent it.
    case broadcast(content: MessageContent, fromUID: UserID)
    /// The number of entries that were committed while this device was away. The entries follow as separate events.
    case waiting(count: Int)
    /// An account asks for a direct link; the app answers with `postAddress`.
    case linkRequested(byUID: UserID, peer: IMPBAddress, own: IMPBAddress)
    /// The other side of a direct link is ready at this address.
    case linkReady(uid: UserID, host: String, port: Int)
    /// A push from a back end.
    case push(Push)
    /// The number of entries that were deleted before this device got them. If the client acknowledges implicitly, the
    /// count includes entries that are only for other devices, because the server does not send their seqs to it.
    case missed(count: UInt64)
    /// The server lost its store or a part of it. Entries that the app had not received are lost.
    case inboxReset
    /// A notification for which there is no other case, or whose body is not valid.
    case notification(type: Int, body: [UInt8])
}

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
    /// When the server committed the message, by the server's clock.
    public var date: Date
    /// Whether another device of this account sent the message.
    public var isOwn: Bool

    /// The text; nil for other content.
    public var text: String? { if case .text(let text) = content { text } else { nil } }
}

/// The addresses of a device.
public struct IMPBAddress: Hashable, Sendable {
    /// The host that the device reported.
    public var localHost: String
    /// The port that the device reported.
    public var localPort: Int
    /// The host that the server observed.
    public var observedHost: String
    /// The port that the server observed.
    public var observedPort: Int
}

/// The answer to a request for a direct link.
public struct IMPBLinkOffer: Hashable, Sendable {
    /// Whether the other account is connected.
    public var isOnline: Bool
    /// Whether the other account exists.
    public var exists: Bool
    /// This device's addresses.
    public var own: IMPBAddress
    /// The other device's addresses.
    public var peer: IMPBAddress
}

extension IMPBAddress {
    init(_ info: IMPB_Ip_info) {
        self.init(
            localHost: info.ip,
            localPort: Int(info.port),
            observedHost: info.sockIp,
            observedPort: Int(info.sockPort)
        )
    }
}

extension IMPBEvent {
    init(_ notification: IMPB_Notification_msg) {
        let body = [UInt8](notification.body)
        self = .notification(type: notification.type.rawValue, body: body)
        switch notification.type {
        case .p2PReceiveConnectReq:
            guard let told = try? IMPB_p2p_receive_connect_notification(wire: body, maxParts: nil) else { return }
            self = .linkRequested(
                byUID: UserID(rawValue: told.sponsorUid),
                peer: IMPBAddress(told.sponsorIpInfo),
                own: IMPBAddress(told.targetInfo)
            )
        case .p2PConnectReady:
            guard let told = try? IMPB_p2p_connect_ready_notification(wire: body, maxParts: nil) else { return }
            self = .linkReady(uid: UserID(rawValue: told.uid), host: told.ip, port: Int(told.port))
        case .push:
            guard let told = try? IMPB_push_notification(wire: body, maxParts: nil) else { return }
            self = .push(
                Push(
                    id: told.id,
                    title: told.title,
                    body: told.body,
                    dataJSON: told.dataJson,
                    collapseKey: told.collapseKey,
                    messageType: told.messageType,
                    messageBytes: [UInt8](told.messageBytes)
                )
            )
        case .expired:
            guard let told = try? IMPB_expired_notification(wire: body, maxParts: nil) else { return }
            self = .missed(count: told.toSeq >= notification.seq ? told.toSeq - notification.seq &+ 1 : 1)
        case .offlineMsg:
            guard let told = try? IMPB_offline_msg_notification(wire: body, maxParts: nil) else { return }
            self = .waiting(count: Int(clamping: told.count))
        case .addfriendReq, .unused, .cmd, .receiveFriend, .friendRemoved, .readMark, .recalled,
            .groupChanged, .kicked, .event, .UNRECOGNIZED:
            return
        }
    }
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

extension MessageContent {
    /// - Throws: `notEncodable` if IMPB cannot carry the content: custom content whose data is not text, or content of
    ///   an unknown kind.
    func impb<Bytes: SwiftProtobufContiguousBytes>() throws -> (type: IMPB_Content_type, content: Bytes) {
        func encoded(_ type: IMPB_Content_type, _ body: some SwiftProtobuf.Message) throws -> (IMPB_Content_type, Bytes)
        {
            (type, try body.wireBytes())
        }
        switch self {
        case .text(let text):
            var body = IMPB_msg_text_content()
            body.text = text
            return try encoded(.text, body)
        case .image(let url, _, _):
            var body = IMPB_msg_img_content()
            body.imgURL = url.absoluteString
            return try encoded(.image, body)
        case .sound(let url, let duration, let fileName):
            var body = IMPB_msg_sound_content()
            body.sourceURL = url.absoluteString
            body.soundDuration = duration / .seconds(1)
            body.fildNme = fileName
            return try encoded(.sound, body)
        case .location(let latitude, let longitude, _):
            var body = IMPB_msg_location_content()
            body.location.lat = latitude
            body.location.lon = longitude
            return try encoded(.location, body)
        case .expression(let id, let name):
            var body = IMPB_msg_expression_content()
            body.eid = Int32(clamping: id)
            body.name = name
            return try encoded(.expression, body)
        case .custom(let type, let data):
            guard let text = String(validating: data, as: UTF8.self) else {
                throw HermesClientError(.notEncodable, "over IMPB, the data of a custom content must be text")
            }
            var body = IMPB_msg_cumstom_content()
            body.info.key = type
            body.info.value = text
            return try encoded(.custom, body)
        case .video(let url, _, _):
            // The published protocol defines no message for videos; applications choose the bytes. This client sends
            // the URL.
            return (.video, Bytes(url.absoluteString.utf8))
        case .unknown:
            throw HermesClientError(.notEncodable, "a content of an unknown kind cannot be sent")
        }
    }

    init(_ type: IMPB_Content_type, _ bytes: [UInt8]) {
        self = .unknown
        switch type {
        case .text:
            guard let content = try? IMPB_msg_text_content(wire: bytes, maxParts: nil) else { return }
            self = .text(content.text)
        case .image:
            guard let content = try? IMPB_msg_img_content(wire: bytes, maxParts: nil) else { return }
            guard let url = URL(wire: content.imgURL) else { return }
            self = .image(url: url, width: 0, height: 0)
        case .sound:
            guard let content = try? IMPB_msg_sound_content(wire: bytes, maxParts: nil) else { return }
            guard let url = URL(wire: content.sourceURL) else { return }
            self = .sound(
                url: url,
                duration: Duration(wireSeconds: content.soundDuration),
                fileName: content.fildNme
            )
        case .location:
            guard let content = try? IMPB_msg_location_content(wire: bytes, maxParts: nil) else { return }
            self = .location(latitude: content.location.lat, longitude: content.location.lon, label: "")
        case .expression:
            guard let content = try? IMPB_msg_expression_content(wire: bytes, maxParts: nil) else { return }
            self = .expression(id: Int(content.eid), name: content.name)
        case .custom:
            guard let content = try? IMPB_msg_cumstom_content(wire: bytes, maxParts: nil) else { return }
            self = .custom(type: content.info.key, data: Array(content.info.value.utf8))
        case .video:
            guard let text = String(validating: bytes, as: UTF8.self), let url = URL(wire: text) else { return }
            self = .video(url: url, duration: .zero, thumbnailURL: nil)
        case .UNRECOGNIZED:
            return
        }
    }
}

extension Receipt {
    init(_ receipt: IMPB_Message_receipt) {
        self.init(
            messageID: MessageID(rawValue: receipt.messageID),
            clientID: receipt.clientID,
            conversationSeq: receipt.conversationSeq,
            date: Date(milliseconds: receipt.serverTime),
            isDuplicate: receipt.duplicate
        )
    }
}

extension Account {
    init(_ info: IMPB_User_info) {
        self.init(
            uid: UserID(rawValue: info.uid),
            nickName: info.nickName,
            avatarURL: URL(wire: info.avartaURL),
            isOnline: info.isOnline != 0
        )
    }
}
