// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
package import NIOCore

/// The topics through which publishers reach the clients of other protocols, such as QSIOP. The payload of a
/// publication to one of these topics must have a form that can be sent to the topic's clients.
package enum ApplicationTopics {
    /// Whether the payloads of publications to this topic are parsed.
    static func contains(_ topic: String) -> Bool {
        GatewayCatalog.applicationTopics.contains { topic.hasBytes(startingWith: $0.topicPrefix) }
    }

    /// Returns the number of parts (``MessageParts``) that ``check(_:_:)`` parses in a payload; 0 for other topics.
    static func partCount(of topic: TopicName, _ payload: ByteBuffer) -> Int {
        contains(topic.rawValue) ? MessageParts.count(json: payload) : 0
    }

    /// Checks a publication before it is published. Only publications to application topics and to rooms are
    /// examined. Every protocol that publishes to topics calls this function. MQTT also calls it for wills.
    ///
    /// - Throws: `.invalidArgument` or `.tooLarge` if the payload cannot be sent to the clients of the topic.
    package static func check(_ topic: TopicName, _ payload: ByteBuffer) throws(HermesError) {
        try RoomLimits.check(topic, payload)
        for form in GatewayCatalog.applicationTopics { try form.check(topic, payload) }
    }
}

/// One protocol's rules for publications to the topics through which its clients are reached. ``TopicRules`` lists the
/// same topics, with the rules for who may use them.
package protocol ApplicationTopicForm: SendableMetatype {
    /// The prefix of the topics, for example `qsiop/`.
    static var topicPrefix: String { get }

    /// Checks a publication before it is published. A publication to any other topic is accepted.
    ///
    /// - Throws: `.invalidArgument` or `.tooLarge` if the payload cannot be sent to the protocol's clients.
    static func check(_ topic: TopicName, _ payload: ByteBuffer) throws(HermesError)
}
