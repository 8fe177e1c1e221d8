// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The steps of a message or push, as far as they are remembered.
package struct MessageTrace: Sendable {
    package let message: TracedMessage
    /// The steps, in the order of their times.
    package let steps: [TraceStep]
}

/// A message or a back end's push that was committed or refused. The content is not included.
package struct TracedMessage: Sendable {
    /// The message's entry in an inbox.
    package struct Place: Sendable, Hashable {
        package let user: UserID
        package let seq: UInt64
    }

    package let id: MessageID
    package let clientID: String?
    /// The account that sent the message; nil if a back end sent it.
    package let sender: UserID?
    package let senderDevice: DeviceID?
    /// The conversation of the message; nil if it is a push.
    package let conversation: ConversationID?
    /// The time at which the message reached the core (``TimeSource/uptime()``).
    package let acceptedAt: Duration
    /// The time at which the commit of the message was complete (``TimeSource/uptime()``).
    package let committedAt: Duration
    /// The time at which the commit of the message was complete, on the wall clock.
    package let committedTime: Timestamp
    /// The error with which the message was refused; nil if the message was committed.
    package let refusal: HermesError?
    /// The number of inboxes to which the message was appended. For a push to many accounts, the number grows with each
    /// step of the fan-out.
    package private(set) var recipients: Int
    /// The message's entries in the first ``MessageTraces/maxPlaces`` of these inboxes.
    package private(set) var places: [Place] = []

    /// - Returns: nil for a repetition, which changes nothing, and for an operation that is neither a message nor a
    ///   push.
    init?(
        _ operation: WriteOperation,
        _ outcome: WriteOutcome,
        acceptedAt: Duration,
        committedAt: Duration,
        committedTime: Timestamp
    ) {
        let deliveries: [InboxDelivery]
        switch (operation, outcome) {
        case (.append, .appended(_, let found)):
            (deliveries, refusal) = (found, nil)
        case (.push, .pushed(let pushed)) where pushed.firstAnswer == nil:
            (deliveries, refusal) = (pushed.deliveries, nil)
        case (.append, .refused(let error)), (.push, .refused(let error)):
            (deliveries, refusal) = ([], error)
        default:
            return nil
        }
        switch operation {
        case .append(let append):
            id = append.id
            clientID = append.draft.clientID
            sender = append.sender.user
            senderDevice = append.sender.device
            conversation = append.draft.conversation
        case .push(.append(let push, _, _)):
            (id, clientID, sender, senderDevice, conversation) = (push.id, nil, nil, nil, nil)
        case .push(.accept(let job, _)):
            (id, clientID, sender, senderDevice, conversation) = (job.push.id, nil, nil, nil, nil)
        default:
            return nil
        }
        self.acceptedAt = acceptedAt
        self.committedAt = committedAt
        self.committedTime = committedTime
        recipients = 0
        add(deliveries)
    }

    /// Adds further inboxes to which the message was appended.
    mutating func add(_ deliveries: [InboxDelivery]) {
        recipients += deliveries.count
        let room = MessageTraces.maxPlaces - places.count
        places += deliveries.prefix(room).map { Place(user: $0.user, seq: $0.entry.seq) }
    }

    /// The time at which the message reached the core, on the wall clock.
    package var acceptedTime: Timestamp { committedTime.advanced(by: acceptedAt - committedAt) }

    /// Returns the subject of a notification to this user: the message's conversation, or the id of the push.
    func scope(for user: UserID) -> String {
        conversation.map { HandOffPlan.name(of: $0, for: user) } ?? id.description
    }
}

/// A step of a message after its commit.
package struct TraceStep: Sendable, Hashable {
    package enum Kind: String, Sendable {
        /// The message is in the output of a device's connection.
        case delivered
        /// The device has acknowledged the message.
        case acknowledged
        /// A push service has answered a notification about the message.
        case pushed
    }

    package let kind: Kind
    package let user: UserID
    package let device: DeviceID
    /// The time since the message was accepted.
    package let after: Duration
    /// The name of the listener, or the push service and its answer; may be empty.
    package let detail: String
}
