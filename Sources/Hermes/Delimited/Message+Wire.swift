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
        case .uid(let uid): self = .user(uid: uid)
        case .groupID(let id): self = .group(id: id)
        case nil: self = .user(uid: 0)
        }
    }

    var wire: Hermes_V1_Conversation {
        var conversation = Hermes_V1_Conversation()
        switch self {
        case .user(let uid): conversation.uid = uid
        case .group(let id): conversation.groupID = id
        }
        return conversation
    }
}

extension MessageContent {
    init(_ content: Hermes_V1_Content) {
        switch content.kind {
        case .text(let text):
            self = .text(text)
        case .image(let image):
            self = .image(url: image.url, width: image.width, height: image.height)
        case .sound(let sound):
            let url = sound.sourceURL
            self = .sound(url: url, durationSeconds: sound.durationSeconds, fileName: sound.fileName)
        case .location(let place):
            self = .location(latitude: place.latitude, longitude: place.longitude, label: place.label)
        case .video(let video):
            let seconds = video.durationSeconds
            self = .video(url: video.url, durationSeconds: seconds, thumbnailURL: video.thumbnailURL)
        case .expression(let expression):
            self = .expression(id: expression.id, name: expression.name)
        case .custom(let custom):
            self = .custom(type: custom.type, data: [UInt8](custom.data))
        case nil:
            self = .unknown
        }
    }

    func wire(attributes: [String: String]) -> Hermes_V1_Content {
        var content = Hermes_V1_Content()
        content.attributes = attributes
        switch self {
        case .text(let text):
            content.text = text
        case .image(let url, let width, let height):
            content.image.url = url
            content.image.width = width
            content.image.height = height
        case .sound(let url, let durationSeconds, let fileName):
            content.sound.sourceURL = url
            content.sound.durationSeconds = durationSeconds
            content.sound.fileName = fileName
        case .location(let latitude, let longitude, let label):
            content.location.latitude = latitude
            content.location.longitude = longitude
            content.location.label = label
        case .video(let url, let durationSeconds, let thumbnailURL):
            content.video.url = url
            content.video.durationSeconds = durationSeconds
            content.video.thumbnailURL = thumbnailURL
        case .expression(let id, let name):
            content.expression.id = id
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
            id: message.id,
            conversation: Conversation(message.conversation),
            conversationSeq: message.conversationSeq,
            fromUID: message.fromUid,
            fromNickName: message.fromNickName,
            content: MessageContent(message.content),
            attributes: message.content.attributes,
            serverTimeMilliseconds: message.serverTimeMs,
            isOwn: message.own,
            isRecalled: message.recalled
        )
    }
}

extension Receipt {
    init(_ receipt: Hermes_V1_Receipt) {
        self.init(
            messageID: receipt.messageID,
            clientID: receipt.clientID,
            conversationSeq: receipt.conversationSeq,
            serverTimeMilliseconds: receipt.serverTimeMs,
            isDuplicate: receipt.duplicate
        )
    }
}

extension Presence {
    init(_ presence: Hermes_V1_Presence) {
        self.init(uid: presence.uid, isOnline: presence.isOnline, lastSeenMilliseconds: presence.lastSeenMs)
    }
}

extension Account {
    init(_ account: Hermes_V1_Account) {
        self.init(
            uid: account.uid,
            nickName: account.nickName,
            avatarURL: account.avatarURL,
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
            lastSeenMilliseconds: device.lastSeenMs,
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

extension RoomUser {
    init(_ user: Hermes_V1_RoomUser) {
        self.init(name: user.name, level: user.level, iconURL: user.iconURL)
    }

    var wire: Hermes_V1_RoomUser {
        var user = Hermes_V1_RoomUser()
        user.name = name
        user.level = level
        user.iconURL = iconURL
        return user
    }
}

extension RoomEvent {
    init?(_ event: Hermes_V1_RoomEvent) {
        let kind: Kind
        switch event.event {
        case .joined: kind = .joined
        case .left: kind = .left
        case .text(let text): kind = .text(text.text)
        case .gift(let gift): kind = .gift(name: gift.name, count: gift.count, url: gift.url)
        case .custom(let custom):
            kind = .custom(type: UInt16(truncatingIfNeeded: custom.type), data: [UInt8](custom.data))
        case .notice(let notice): kind = .notice(notice.text)
        case .kicked(let kicked): kind = .kicked(reason: kicked.reason)
        case nil: return nil
        }
        self.init(
            room: event.room,
            user: event.hasUser ? RoomUser(event.user) : nil,
            uid: event.uid,
            kind: kind
        )
    }
}
