// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A publication that gets the next number of its topic (``TopicNumbers``).
package enum NumberedPublication: Sendable, Hashable {
    case push(TopicPush)
    /// A notice to the members of a room.
    case notice(String, in: RoomName)

    package var topic: TopicName {
        switch self {
        case .push(let push): push.topic
        case .notice(_, let room): room.topic
        }
    }
}

/// A push to the subscribers of a topic.
package struct TopicPush: Sendable, Hashable {
    package let push: Push
    package let topic: TopicName
    /// Whether the push expires on the topic: subscribers are told the expiry time, and a retained push is removed at
    /// that time.
    package let expires: Bool
    /// Whether the payload is JSON. If not, it is protobuf.
    package let isJSON: Bool
    package let retains: Bool

    package init(_ push: Push, to topic: TopicName, expires: Bool, isJSON: Bool, retains: Bool) {
        self.push = push
        self.topic = topic
        self.expires = expires
        self.isJSON = isJSON
        self.retains = retains
    }
}
