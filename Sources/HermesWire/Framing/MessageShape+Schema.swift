// Hermes
// SPDX-License-Identifier: Apache-2.0

// Written by scripts/message-shapes from Proto/.

extension MessageShape {
    /// Of each shape, the fields that hold messages: number and shape, in turn.
    static let all: [[UInt16]] = [
        [],
        // hermes.v1.AccountRequest
        [1, 0, 2, 0, 3, 0, 4, 0],
        // hermes.v1.Authenticate
        [1, 0, 3, 0],
        // hermes.v1.ChangeMembers
        [4, 0],
        // hermes.v1.ContactList
        [1, 0],
        // hermes.v1.ContactRequest
        [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0],
        // hermes.v1.Content
        [2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 15, 0],
        // hermes.v1.DeviceList
        [1, 0],
        // hermes.v1.DeviceRequest
        [1, 0, 2, 0, 3, 0, 4, 0],
        // hermes.v1.EnterRoom
        [1, 0],
        // hermes.v1.Ephemeral
        [1, 37, 2, 0, 3, 30, 4, 34],
        // hermes.v1.Event
        [3, 20, 4, 25, 5, 27, 6, 0, 7, 13, 8, 0, 9, 0, 10, 0, 11, 22],
        // hermes.v1.Group
        [6, 0],
        // hermes.v1.GroupEvent
        [2, 12],
        // hermes.v1.GroupList
        [1, 12],
        // hermes.v1.GroupRequest
        [1, 0, 2, 0, 3, 0, 4, 0, 5, 3, 6, 0, 7, 0],
        // hermes.v1.History
        [1, 20],
        // hermes.v1.HistoryRequest
        [1, 0],
        // hermes.v1.Kicked
        [3, 0],
        // hermes.v1.MarkRead
        [1, 0],
        // hermes.v1.Message
        [2, 0, 7, 6],
        // hermes.v1.Notice
        [3, 0],
        // hermes.v1.Oversized
        [4, 0],
        // hermes.v1.Packet
        [
            10, 28, 11, 2, 12, 32, 13, 0, 14, 0, 15, 19, 16, 36, 17, 26,
            18, 5, 19, 15, 20, 0, 21, 31, 22, 8, 23, 33, 24, 35, 25, 0,
            26, 1, 27, 0, 28, 17, 64, 29, 65, 11, 66, 10, 67, 21, 68, 18,
            69, 0,
        ],
        // hermes.v1.PresenceList
        [1, 0],
        // hermes.v1.ReadMark
        [1, 0],
        // hermes.v1.Recall
        [1, 0],
        // hermes.v1.RecalledMessage
        [1, 0],
        // hermes.v1.Register
        [3, 0],
        // hermes.v1.Result
        [1, 0, 2, 0, 3, 0, 4, 0, 5, 4, 6, 12, 7, 14, 8, 24, 9, 0, 10, 7, 11, 0, 12, 16],
        // hermes.v1.RoomEvent
        [2, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0],
        // hermes.v1.RoomRequest
        [2, 9, 3, 0, 4, 0, 5, 0, 6, 0],
        // hermes.v1.Send
        [1, 0, 3, 6],
        // hermes.v1.Signal
        [3, 0, 5, 0],
        // hermes.v1.SignalEvent
        [3, 33],
        // hermes.v1.Statistics
        [2, 0],
        // hermes.v1.Typing
        [1, 0],
        // hermes.v1.TypingEvent
        [1, 0],
        // impb.C2C_msg
        [3, 43, 4, 43, 9, 0],
        // impb.CommonRespon
        [3, 0],
        // impb.Group_info
        [6, 0],
        // impb.Group_msg
        [2, 40, 6, 43, 9, 0],
        // impb.History_msg
        [1, 0],
        // impb.User_info
        [6, 0],
        // impb.User_info_response
        [1, 43],
        // impb.group_list_response
        [1, 40],
        // impb.group_members_request
        [4, 0],
        // impb.group_notification
        [2, 40],
        // impb.group_response
        [1, 40],
        // impb.history_request
        [1, 0],
        // impb.history_response
        [1, 42],
        // impb.msg_cumstom_content
        [1, 0],
        // impb.msg_location_content
        [1, 0],
        // impb.p2p_post_ip_request
        [3, 0],
        // impb.p2p_receive_connect_notification
        [2, 0, 3, 0],
        // impb.p2pconnect_response
        [3, 0, 4, 0],
        // impb.read_notification
        [1, 0],
        // impb.read_request
        [1, 0],
        // impb.recall_notification
        [1, 0],
        // impb.recall_request
        [1, 0],
        // impb.user_info_list_res
        [1, 43],
        // impb.user_info_res
        [1, 43],
        // liveroom.ChatMessage
        [1, 0],
        // liveroom.GiftMessage
        [1, 0],
    ]

    /// The shape of each message that has messages inside.
    static let named: [String: UInt16] = [
        "hermes.v1.AccountRequest": 1,
        "hermes.v1.Authenticate": 2,
        "hermes.v1.ChangeMembers": 3,
        "hermes.v1.ContactList": 4,
        "hermes.v1.ContactRequest": 5,
        "hermes.v1.Content": 6,
        "hermes.v1.DeviceList": 7,
        "hermes.v1.DeviceRequest": 8,
        "hermes.v1.EnterRoom": 9,
        "hermes.v1.Ephemeral": 10,
        "hermes.v1.Event": 11,
        "hermes.v1.Group": 12,
        "hermes.v1.GroupEvent": 13,
        "hermes.v1.GroupList": 14,
        "hermes.v1.GroupRequest": 15,
        "hermes.v1.History": 16,
        "hermes.v1.HistoryRequest": 17,
        "hermes.v1.Kicked": 18,
        "hermes.v1.MarkRead": 19,
        "hermes.v1.Message": 20,
        "hermes.v1.Notice": 21,
        "hermes.v1.Oversized": 22,
        "hermes.v1.Packet": 23,
        "hermes.v1.PresenceList": 24,
        "hermes.v1.ReadMark": 25,
        "hermes.v1.Recall": 26,
        "hermes.v1.RecalledMessage": 27,
        "hermes.v1.Register": 28,
        "hermes.v1.Result": 29,
        "hermes.v1.RoomEvent": 30,
        "hermes.v1.RoomRequest": 31,
        "hermes.v1.Send": 32,
        "hermes.v1.Signal": 33,
        "hermes.v1.SignalEvent": 34,
        "hermes.v1.Statistics": 35,
        "hermes.v1.Typing": 36,
        "hermes.v1.TypingEvent": 37,
        "impb.C2C_msg": 38,
        "impb.CommonRespon": 39,
        "impb.Group_info": 40,
        "impb.Group_msg": 41,
        "impb.History_msg": 42,
        "impb.User_info": 43,
        "impb.User_info_response": 44,
        "impb.group_list_response": 45,
        "impb.group_members_request": 46,
        "impb.group_notification": 47,
        "impb.group_response": 48,
        "impb.history_request": 49,
        "impb.history_response": 50,
        "impb.msg_cumstom_content": 51,
        "impb.msg_location_content": 52,
        "impb.p2p_post_ip_request": 53,
        "impb.p2p_receive_connect_notification": 54,
        "impb.p2pconnect_response": 55,
        "impb.read_notification": 56,
        "impb.read_request": 57,
        "impb.recall_notification": 58,
        "impb.recall_request": 59,
        "impb.user_info_list_res": 60,
        "impb.user_info_res": 61,
        "liveroom.ChatMessage": 62,
        "liveroom.GiftMessage": 63,
    ]
}
