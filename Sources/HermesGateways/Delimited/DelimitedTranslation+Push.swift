// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import HermesCore
import HermesWire
package import NIOCore
import SwiftProtobuf

/// Pushes.
extension DelimitedTranslation {
    static func push(_ push: Push) -> Hermes_V1_Push {
        var answer = self.push(push.content, id: push.id, priority: push.priority)
        answer.expiresAtMs = push.expiresAt.rawValue
        return answer
    }

    private static func push(_ content: PushContent, id: MessageID, priority: Push.Priority) -> Hermes_V1_Push {
        var answer = Hermes_V1_Push()
        answer.id = id.description
        answer.title = content.title
        answer.body = content.body
        answer.dataJson = content.dataJSON
        answer.collapseKey = content.collapseKey
        if let message = content.message {
            answer.messageType = message.type
            answer.messageBytes = Data(message.bytes)
        }
        answer.priority =
            switch priority {
            case .normal: .normal
            case .high: .high
            }
        return answer
    }
}

/// Encodes a push to a topic as a publication's payload: `hermes.v1.Push`, binary or as JSON.
package enum TopicPushTranslation {
    /// Returns the payload of a publication.
    ///
    /// - Parameters:
    ///   - push: the push; its `expiresAt` is nil if unsaid.
    ///   - seq: its number in the topic's sequence.
    ///   - epoch: the epoch of that sequence.
    package static func payload(
        of push: Push,
        expires: Bool,
        topic: TopicName,
        seq: UInt64,
        epoch: UInt64,
        isJSON: Bool
    ) throws(HermesError) -> ByteBuffer {
        var message = DelimitedTranslation.push(push)
        if !expires { message.expiresAtMs = 0 }
        message.topic = topic.rawValue
        message.topicSeq = seq
        message.topicEpoch = epoch
        do {
            return isJSON ? ByteBuffer(string: try message.jsonString()) : try message.wireBuffer()
        } catch {
            throw HermesError(.internalError, "the push cannot be encoded", cause: error)
        }
    }
}
