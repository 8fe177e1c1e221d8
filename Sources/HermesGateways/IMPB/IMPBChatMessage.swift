// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import SwiftProtobuf

typealias WireMessage = SwiftProtobuf.Message

/// The common fields of 1:1 and group messages.
protocol IMPBChatMessage: WireMessage {
    associatedtype Bytes: SwiftProtobufContiguousBytes, Sequence<UInt8>

    var type: IMPB_Content_type { get set }
    var content: Bytes { get set }
    var ext: [IMPB_ext_key_info] { get set }
    var from: Int32 { get set }
    var fromInfo: IMPB_User_info { get set }
    var messageID: String { get set }
    var serverTime: Int64 { get set }
    var seq: UInt64 { get set }
    var clientID: String { get set }
}

extension IMPB_C2C_msg: IMPBChatMessage {}
extension IMPB_Group_msg: IMPBChatMessage {}
