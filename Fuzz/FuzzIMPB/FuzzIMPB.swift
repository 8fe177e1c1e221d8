// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesWire
import SwiftProtobuf

/// The entry point for libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzIMPB(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    fuzz(input, with: IMPBFrameDecoder.self, limit: 1_024, isExact: true) { frame in
        switch frame.type {
        case .request:
            if let common = fuzz(frame.body, as: IMPB_Common.self) { request(common) }
            if let reply = fuzz(frame.body, as: IMPB_CommonRespon.self) { response(reply) }
        case .message:
            if let message = fuzz(frame.body, as: IMPB_base_msg.self) { chat(message) }
        case .notification:
            if let notification = fuzz(frame.body, as: IMPB_Notification_msg.self) { notify(notification) }
        default: break
        }
    }
    return 0
}

private func request(_ common: IMPB_Common) {
    switch common.method {
    case .user:
        guard let user = fuzz(common.body, as: IMPB_User_msg.self) else { return }
        switch user.cmd {
        case .signIn: fuzz(user.body, as: IMPB_signin_request.self)
        case .login: fuzz(user.body, as: IMPB_login_request.self)
        case .logout: fuzz(user.body, as: IMPB_logout_request.self)
        case .userInfo: fuzz(user.body, as: IMPB_User_info_request.self)
        case .unused, .UNRECOGNIZED: break
        }
    case .message:
        guard let message = fuzz(common.body, as: IMPB_Message_msg.self) else { return }
        switch message.cmd {
        case .pull: fuzz(message.body, as: IMPB_pull_request.self)
        case .ack: fuzz(message.body, as: IMPB_ack_request.self)
        case .history: fuzz(message.body, as: IMPB_history_request.self)
        case .recall: fuzz(message.body, as: IMPB_recall_request.self)
        case .read: fuzz(message.body, as: IMPB_read_request.self)
        case .UNRECOGNIZED: break
        }
    case .friend:
        guard let friend = fuzz(common.body, as: IMPB_Friend_msg.self) else { return }
        fuzz(friend.body, as: IMPB_add_friend_req.self)
        fuzz(friend.body, as: IMPB_receive_friend_req.self)
    case .p2PConnect:
        guard let link = fuzz(common.body, as: IMPB_p2p_connect.self) else { return }
        fuzz(link.body, as: IMPB_p2pconnect_request.self)
        fuzz(link.body, as: IMPB_p2p_post_ip_request.self)
    case .group:
        guard let group = fuzz(common.body, as: IMPB_Group_cmd.self) else { return }
        fuzz(group.body, as: IMPB_group_create_request.self)
        fuzz(group.body, as: IMPB_group_members_request.self)
    case .respond, .UNRECOGNIZED: break
    }
}

private func response(_ reply: IMPB_CommonRespon) {
    fuzz(reply.respon, as: IMPB_login_response.self)
    fuzz(reply.respon, as: IMPB_user_info_list_res.self)
    if let history = fuzz(reply.respon, as: IMPB_history_response.self) {
        for message in history.messages { chat(message.msg) }
    }
}

private func chat(_ message: IMPB_base_msg) {
    switch message.type {
    case .c2C: _ = fuzz(message.body, as: IMPB_C2C_msg.self).map { content($0.content, $0.type) }
    case .group: _ = fuzz(message.body, as: IMPB_Group_msg.self).map { content($0.content, $0.type) }
    case .unused, .broadcast, .custom, .UNRECOGNIZED: break
    }
}

private func content(_ bytes: some SwiftProtobufContiguousBytes & Sequence<UInt8>, _ type: IMPB_Content_type) {
    switch type {
    case .text: fuzz(bytes, as: IMPB_msg_text_content.self)
    case .image: fuzz(bytes, as: IMPB_msg_img_content.self)
    case .sound: fuzz(bytes, as: IMPB_msg_sound_content.self)
    case .location: fuzz(bytes, as: IMPB_msg_location_content.self)
    case .expression: fuzz(bytes, as: IMPB_msg_expression_content.self)
    case .custom: fuzz(bytes, as: IMPB_msg_cumstom_content.self)
    case .video, .UNRECOGNIZED: break
    }
}

private func notify(_ notification: IMPB_Notification_msg) {
    switch notification.type {
    case .addfriendReq: fuzz(notification.body, as: IMPB_add_friend_noti.self)
    case .p2PReceiveConnectReq: fuzz(notification.body, as: IMPB_p2p_receive_connect_notification.self)
    case .p2PConnectReady: fuzz(notification.body, as: IMPB_p2p_connect_ready_notification.self)
    case .groupChanged: fuzz(notification.body, as: IMPB_group_notification.self)
    case .push: fuzz(notification.body, as: IMPB_push_notification.self)
    default: break
    }
}
