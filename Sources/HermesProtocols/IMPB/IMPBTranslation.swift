// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesWire
import SwiftProtobuf

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

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
