// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// What a login over IMPB yields.
public struct IMPBLogin: Hashable, Sendable {
    /// The account's number.
    public var uid: UInt32
    /// For the next login in place of the password. A secret.
    public var token: String
}

/// What an IMPB client's event stream tells the app.
public enum IMPBEvent: Hashable, Sendable {
    /// A message arrived, or another device of one's own sent one.
    case message(IMPBMessage)
    /// Somebody asks for a direct link: answer with `postAddress`.
    case linkRequested(byUID: UInt32, peer: IMPBAddress, own: IMPBAddress)
    /// The other side of a direct link is ready at this address.
    case linkReady(uid: UInt32, host: String, port: Int)
    /// A notification of a back end.
    case push(Push)
    /// So many entries were gone before this device could get them.
    case missed(count: UInt64)
    /// The server lost its store, or a part of it: what it kept for this device and the app has not got is lost.
    case inboxReset
    /// A notification that has no words here: its type and its body.
    case notification(type: Int, body: [UInt8])
}

/// A message as it arrives over IMPB.
public struct IMPBMessage: Hashable, Sendable {
    /// Empty from a server that gives none.
    public var id: String
    /// The author.
    public var fromUID: UInt32
    /// The author's name; may be empty.
    public var fromNickName: String
    /// The receiver; 0 in groups.
    public var toUID: UInt32
    /// The group; 0 in 1:1 conversations.
    public var groupID: UInt32
    /// What it says.
    public var content: MessageContent
    /// The seq of the entry in one's inbox; 0 from a server that gives none.
    public var inboxSeq: UInt64
    /// When it was committed, in milliseconds since 1970.
    public var serverTimeMilliseconds: Int64
    /// Whether one's own account sent it, from another device.
    public var isOwn: Bool

    /// The text, where the message is one.
    public var text: String? { if case .text(let text) = content { text } else { nil } }
}

/// Where a device is reached.
public struct IMPBAddress: Hashable, Sendable {
    /// As the device knows itself.
    public var localHost: String
    /// As the device knows itself.
    public var localPort: Int
    /// As the server saw it.
    public var observedHost: String
    /// As the server saw it.
    public var observedPort: Int
}

/// The answer to a request for a direct link.
public struct IMPBLinkOffer: Hashable, Sendable {
    /// Whether the other is connected.
    public var isOnline: Bool
    /// Whether there is such an account.
    public var exists: Bool
    /// One's own address.
    public var own: IMPBAddress
    /// The other's address.
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
            guard let told = try? IMPB_p2p_receive_connect_notification(wire: body) else { return }
            self = .linkRequested(
                byUID: told.sponsorUid,
                peer: IMPBAddress(told.sponsorIpInfo),
                own: IMPBAddress(told.targetInfo)
            )
        case .p2PConnectReady:
            guard let told = try? IMPB_p2p_connect_ready_notification(wire: body) else { return }
            self = .linkReady(uid: told.uid, host: told.ip, port: Int(told.port))
        case .push:
            guard let told = try? IMPB_push_notification(wire: body) else { return }
            self = .push(
                Push(
                    id: told.id,
                    title: told.title,
                    body: told.body,
                    dataJSON: told.dataJson,
                    collapseKey: told.collapseKey
                )
            )
        case .expired:
            guard let told = try? IMPB_expired_notification(wire: body) else { return }
            self = .missed(count: told.toSeq >= notification.seq ? told.toSeq - notification.seq &+ 1 : 1)
        case .addfriendReq, .unused, .offlineMsg, .cmd, .receiveFriend, .friendRemoved, .readMark, .recalled,
            .groupChanged, .kicked, .UNRECOGNIZED:
            return
        }
    }
}

extension IMPBMessage {
    init?(_ message: IMPB_base_msg, ownUID: UInt32) {
        let body = [UInt8](message.body)
        switch message.type {
        case .c2C:
            guard let told = try? IMPB_C2C_msg(wire: body) else { return nil }
            self.init(
                id: told.messageID,
                fromUID: UInt32(clamping: told.from),
                fromNickName: told.fromInfo.nickName,
                toUID: UInt32(clamping: told.to),
                groupID: 0,
                content: MessageContent(told.type, [UInt8](told.content)),
                inboxSeq: told.seq,
                serverTimeMilliseconds: told.serverTime,
                isOwn: UInt32(clamping: told.from) == ownUID
            )
        case .group:
            guard let told = try? IMPB_Group_msg(wire: body) else { return nil }
            self.init(
                id: told.messageID,
                fromUID: UInt32(clamping: told.from),
                fromNickName: told.fromInfo.nickName,
                toUID: 0,
                groupID: UInt32(clamping: told.groupID),
                content: MessageContent(told.type, [UInt8](told.content)),
                inboxSeq: told.seq,
                serverTimeMilliseconds: told.serverTime,
                isOwn: UInt32(clamping: told.from) == ownUID
            )
        case .unused, .broadcast, .custom, .UNRECOGNIZED:
            return nil
        }
    }
}

extension MessageContent {
    init(_ type: IMPB_Content_type, _ bytes: [UInt8]) {
        self = .unknown
        switch type {
        case .text:
            guard let content = try? IMPB_msg_text_content(wire: bytes) else { return }
            self = .text(content.text)
        case .image:
            guard let content = try? IMPB_msg_img_content(wire: bytes) else { return }
            self = .image(url: content.imgURL, width: 0, height: 0)
        case .sound:
            guard let content = try? IMPB_msg_sound_content(wire: bytes) else { return }
            self = .sound(
                url: content.sourceURL,
                durationSeconds: content.soundDuration,
                fileName: content.fildNme
            )
        case .location:
            guard let content = try? IMPB_msg_location_content(wire: bytes) else { return }
            self = .location(latitude: content.location.lat, longitude: content.location.lon, label: "")
        case .expression:
            guard let content = try? IMPB_msg_expression_content(wire: bytes) else { return }
            self = .expression(id: content.eid, name: content.name)
        case .custom:
            guard let content = try? IMPB_msg_cumstom_content(wire: bytes) else { return }
            self = .custom(type: content.info.key, data: Array(content.info.value.utf8))
        case .video, .UNRECOGNIZED:
            return
        }
    }
}

extension Receipt {
    init(_ receipt: IMPB_Message_receipt) {
        self.init(
            messageID: receipt.messageID,
            clientID: receipt.clientID,
            conversationSeq: receipt.conversationSeq,
            serverTimeMilliseconds: receipt.serverTime,
            isDuplicate: receipt.duplicate
        )
    }
}

extension Account {
    init(_ info: IMPB_User_info) {
        self.init(
            uid: info.uid,
            nickName: info.nickName,
            avatarURL: info.avartaURL,
            isOnline: info.isOnline != 0
        )
    }
}
