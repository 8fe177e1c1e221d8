// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
package import NIOCore

/// The topics through which clients of other protocols are reached. A publication there must have a form that these
/// clients can be given.
package enum ApplicationTopics {
    /// Whether the payloads of publications to this topic are parsed.
    static func contains(_ topic: String) -> Bool {
        GatewayCatalog.applicationTopics.contains { topic.hasBytes(startingWith: $0.topicPrefix) }
    }

    /// The parts of a publication that ``check(_:_:)`` parses (``MessageParts``); 0 elsewhere.
    static func partCount(of topic: TopicName, _ payload: ByteBuffer) -> Int {
        contains(topic.rawValue) ? MessageParts.count(json: payload) : 0
    }

    /// Checks a publication before it is published, to these topics and to rooms. Every protocol that publishes to
    /// topics calls this, for wills too.
    ///
    /// - Throws: `.invalidArgument`, `.tooLarge` if the clients of the topic cannot get this payload.
    package static func check(_ topic: TopicName, _ payload: ByteBuffer) throws(HermesError) {
        try RoomLimits.check(topic, payload)
        for form in GatewayCatalog.applicationTopics { try form.check(topic, payload) }
    }
}

/// The demands of one protocol on publications to the topics through which its clients are reached. ``TopicRules``
/// names the same topics: it says who may use them.
package protocol ApplicationTopicForm: SendableMetatype {
    /// The beginning of the topics.
    static var topicPrefix: String { get }

    /// Checks a publication before it is published; of other topics, too.
    ///
    /// - Throws: `.invalidArgument`, `.tooLarge` if the protocol's clients cannot be given this payload.
    static func check(_ topic: TopicName, _ payload: ByteBuffer) throws(HermesError)
}
