// Hermes
// SPDX-License-Identifier: Apache-2.0

// Written by scripts/message-shapes from Proto/.

extension MessageShape {
    /// For each shape, the fields that hold messages, as pairs of a field's number and its shape's index.
    static let all: [[UInt16]] = [
        [],
        // hermes.v1.AccountRequest
        [1, 0, 2, 0, 3, 0, 4, 0],
        // hermes.v1.Authenticate
        [1, 0, 3, 0, 7, 0],
        // hermes.v1.ChangeMembers
        [4, 0],
        // hermes.v1.ContactList
        [1, 0],
        // hermes.v1.ContactRequest
        [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0],
        // hermes.v1.Content
        [2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 15, 0],
        // hermes.v1.ConversationList
        [1, 8],
        // hermes.v1.ConversationSummary
        [1, 0],
        // hermes.v1.DeviceList
        [1, 0],
        // hermes.v1.DeviceRequest
        [1, 0, 2, 0, 3, 0, 4, 0],
        // hermes.v1.EnterRoom
        [1, 0],
        // hermes.v1.Ephemeral
        [1, 40, 2, 0, 3, 33, 4, 37],
        // hermes.v1.Event
        [3, 23, 4, 28, 5, 30, 6, 0, 7, 15, 8, 0, 9, 0, 10, 0, 11, 25],
        // hermes.v1.Group
        [6, 0],
        // hermes.v1.GroupEvent
        [2, 14],
        // hermes.v1.GroupList
        [1, 14],
        // hermes.v1.GroupRequest
        [1, 0, 2, 0, 3, 0, 4, 0, 5, 3, 6, 0, 7, 0],
        // hermes.v1.History
        [1, 23],
        // hermes.v1.HistoryRequest
        [1, 0],
        // hermes.v1.Kicked
        [3, 0],
        // hermes.v1.ListConversations
        [1, 0],
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
            10, 31, 11, 2, 12, 35, 13, 0, 14, 0, 15, 22, 16, 39, 17, 29,
            18, 5, 19, 17, 20, 0, 21, 34, 22, 10, 23, 36, 24, 38, 25, 0,
            26, 1, 27, 0, 28, 19, 29, 21, 64, 32, 65, 13, 66, 12, 67, 24,
            68, 20, 69, 0,
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
        [1, 0, 2, 0, 3, 0, 4, 0, 5, 4, 6, 14, 7, 16, 8, 27, 9, 0, 10, 9, 11, 0, 12, 18, 13, 7],
        // hermes.v1.RoomEvent
        [2, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0],
        // hermes.v1.RoomRequest
        [2, 11, 3, 0, 4, 0, 5, 0, 6, 0],
        // hermes.v1.Send
        [1, 0, 3, 6],
        // hermes.v1.Signal
        [3, 0, 5, 0],
        // hermes.v1.SignalEvent
        [3, 36],
        // hermes.v1.Statistics
        [2, 0],
        // hermes.v1.Typing
        [1, 0],
        // hermes.v1.TypingEvent
        [1, 0],
        // impb.C2C_msg
        [3, 46, 4, 46, 9, 0],
        // impb.CommonRespon
        [3, 0],
        // impb.Group_info
        [6, 0],
        // impb.Group_msg
        [2, 43, 6, 46, 9, 0],
        // impb.History_msg
        [1, 0],
        // impb.User_info
        [6, 0],
        // impb.User_info_response
        [1, 46],
        // impb.group_list_response
        [1, 43],
        // impb.group_members_request
        [4, 0],
        // impb.group_notification
        [2, 43],
        // impb.group_response
        [1, 43],
        // impb.history_request
        [1, 0],
        // impb.history_response
        [1, 45],
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
        [1, 46],
        // impb.user_info_res
        [1, 46],
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
        "hermes.v1.ConversationList": 7,
        "hermes.v1.ConversationSummary": 8,
        "hermes.v1.DeviceList": 9,
        "hermes.v1.DeviceRequest": 10,
        "hermes.v1.EnterRoom": 11,
        "hermes.v1.Ephemeral": 12,
        "hermes.v1.Event": 13,
        "hermes.v1.Group": 14,
        "hermes.v1.GroupEvent": 15,
        "hermes.v1.GroupList": 16,
        "hermes.v1.GroupRequest": 17,
        "hermes.v1.History": 18,
        "hermes.v1.HistoryRequest": 19,
        "hermes.v1.Kicked": 20,
        "hermes.v1.ListConversations": 21,
        "hermes.v1.MarkRead": 22,
        "hermes.v1.Message": 23,
        "hermes.v1.Notice": 24,
        "hermes.v1.Oversized": 25,
        "hermes.v1.Packet": 26,
        "hermes.v1.PresenceList": 27,
        "hermes.v1.ReadMark": 28,
        "hermes.v1.Recall": 29,
        "hermes.v1.RecalledMessage": 30,
        "hermes.v1.Register": 31,
        "hermes.v1.Result": 32,
        "hermes.v1.RoomEvent": 33,
        "hermes.v1.RoomRequest": 34,
        "hermes.v1.Send": 35,
        "hermes.v1.Signal": 36,
        "hermes.v1.SignalEvent": 37,
        "hermes.v1.Statistics": 38,
        "hermes.v1.Typing": 39,
        "hermes.v1.TypingEvent": 40,
        "impb.C2C_msg": 41,
        "impb.CommonRespon": 42,
        "impb.Group_info": 43,
        "impb.Group_msg": 44,
        "impb.History_msg": 45,
        "impb.User_info": 46,
        "impb.User_info_response": 47,
        "impb.group_list_response": 48,
        "impb.group_members_request": 49,
        "impb.group_notification": 50,
        "impb.group_response": 51,
        "impb.history_request": 52,
        "impb.history_response": 53,
        "impb.msg_cumstom_content": 54,
        "impb.msg_location_content": 55,
        "impb.p2p_post_ip_request": 56,
        "impb.p2p_receive_connect_notification": 57,
        "impb.p2pconnect_response": 58,
        "impb.read_notification": 59,
        "impb.read_request": 60,
        "impb.recall_notification": 61,
        "impb.recall_request": 62,
        "impb.user_info_list_res": 63,
        "impb.user_info_res": 64,
        "liveroom.ChatMessage": 65,
        "liveroom.GiftMessage": 66,
    ]
}
