// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension Conversation {
    init(_ conversation: Hermes_V1_Conversation) {
        switch conversation.target {
        case .uid(let uid): self = .user(UserID(rawValue: uid))
        case .groupID(let id): self = .group(GroupID(rawValue: id))
        case nil: self = .user(UserID(rawValue: 0))
        }
    }

    var wire: Hermes_V1_Conversation {
        var conversation = Hermes_V1_Conversation()
        switch self {
        case .user(let uid): conversation.uid = uid.rawValue
        case .group(let id): conversation.groupID = id.rawValue
        }
        return conversation
    }
}

extension MessageContent {
    init(_ content: Hermes_V1_Content) {
        self = .unknown
        switch content.kind {
        case .text(let text):
            self = .text(text)
        case .image(let image):
            guard let url = URL(wire: image.url) else { return }
            self = .image(url: url, width: Int(clamping: image.width), height: Int(clamping: image.height))
        case .sound(let sound):
            guard let url = URL(wire: sound.sourceURL) else { return }
            let duration = Duration(wireSeconds: sound.durationSeconds)
            self = .sound(url: url, duration: duration, fileName: sound.fileName)
        case .location(let place):
            self = .location(latitude: place.latitude, longitude: place.longitude, label: place.label)
        case .video(let video):
            guard let url = URL(wire: video.url) else { return }
            let duration = Duration(wireSeconds: video.durationSeconds)
            self = .video(url: url, duration: duration, thumbnailURL: URL(wire: video.thumbnailURL))
        case .expression(let expression):
            self = .expression(id: Int(expression.id), name: expression.name)
        case .custom(let custom):
            self = .custom(type: custom.type, data: [UInt8](custom.data))
        case nil:
            return
        }
    }

    func wire(attributes: [String: String]) -> Hermes_V1_Content {
        var content = Hermes_V1_Content()
        content.attributes = attributes
        switch self {
        case .text(let text):
            content.text = text
        case .image(let url, let width, let height):
            content.image.url = url.absoluteString
            content.image.width = UInt32(clamping: width)
            content.image.height = UInt32(clamping: height)
        case .sound(let url, let duration, let fileName):
            content.sound.sourceURL = url.absoluteString
            content.sound.durationSeconds = duration.inSeconds
            content.sound.fileName = fileName
        case .location(let latitude, let longitude, let label):
            content.location.latitude = latitude
            content.location.longitude = longitude
            content.location.label = label
        case .video(let url, let duration, let thumbnailURL):
            content.video.url = url.absoluteString
            content.video.durationSeconds = duration.inSeconds
            content.video.thumbnailURL = thumbnailURL?.absoluteString ?? ""
        case .expression(let id, let name):
            content.expression.id = Int32(clamping: id)
            content.expression.name = name
        case .custom(let type, let data):
            content.custom.type = type
            content.custom.data = .init(data)
        case .unknown:
            break
        }
        return content
    }
}

extension Message {
    init(_ message: Hermes_V1_Message) {
        self.init(
            id: MessageID(rawValue: message.id),
            conversation: Conversation(message.conversation),
            conversationSeq: message.conversationSeq,
            fromUID: UserID(rawValue: message.fromUid),
            fromNickName: message.fromNickName,
            content: MessageContent(message.content),
            attributes: message.content.attributes,
            date: Date(milliseconds: message.serverTimeMs),
            isOwn: message.own,
            isRecalled: message.recalled
        )
    }
}

extension Receipt {
    init(_ receipt: Hermes_V1_Receipt) {
        self.init(
            messageID: MessageID(rawValue: receipt.messageID),
            clientID: receipt.clientID,
            conversationSeq: receipt.conversationSeq,
            date: Date(milliseconds: receipt.serverTimeMs),
            isDuplicate: receipt.duplicate
        )
    }
}

extension Presence {
    init(_ presence: Hermes_V1_Presence) {
        self.init(
            uid: UserID(rawValue: presence.uid),
            isOnline: presence.isOnline,
            lastSeen: Date(knownMilliseconds: presence.lastSeenMs)
        )
    }
}

extension Account {
    init(_ account: Hermes_V1_Account) {
        self.init(
            uid: UserID(rawValue: account.uid),
            nickName: account.nickName,
            avatarURL: URL(wire: account.avatarURL),
            isOnline: account.isOnline
        )
    }
}

extension Device {
    init(_ device: Hermes_V1_Device) {
        self.init(
            id: device.id,
            name: device.name,
            platform: device.platform,
            isOnline: device.isOnline,
            lastSeen: Date(milliseconds: device.lastSeenMs),
            isCurrent: device.isCurrent
        )
    }
}

extension DeviceDescription {
    var wire: Hermes_V1_DeviceDescription {
        var device = Hermes_V1_DeviceDescription()
        device.id = id
        device.name = name
        device.platform = platform
        device.appVersion = appVersion
        return device
    }
}
