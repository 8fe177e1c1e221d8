// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
package import NIOCore
import SwiftProtobuf

/// Encodes a push to a topic as a publication's payload: `hermes.v1.Push`, binary or as JSON.
package enum TopicPushTranslation {
    /// Returns the payload of a publication.
    ///
    /// - Parameters:
    ///   - push: the push.
    ///   - expires: whether the payload says when the push expires.
    ///   - seq: the push's number in the topic's sequence.
    ///   - epoch: the epoch of that sequence.
    package static func payload(
        of push: Push,
        expires: Bool,
        topic: TopicName,
        seq: UInt64,
        epoch: UInt64,
        isJSON: Bool
    ) throws(HermesError) -> ByteBuffer {
        var message = Hermes_V1_Push(push)
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
