// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The steps of a message or push, as far as they are remembered.
package struct MessageTrace: Sendable {
    package let message: TracedMessage
    /// In the order of their times.
    package let steps: [TraceStep]
}

/// A message or a push of a back end as it was committed or refused. Without its content.
package struct TracedMessage: Sendable {
    /// Its entry in an inbox.
    package struct Place: Sendable, Hashable {
        package let user: UserID
        package let seq: UInt64
    }

    package let id: MessageID
    package let clientID: String?
    /// Nil: a back end.
    package let sender: UserID?
    package let senderDevice: DeviceID?
    /// Nil: a push.
    package let conversation: ConversationID?
    /// When it came to the core, in the time of ``TimeSource/uptime()``.
    package let acceptedAt: Duration
    /// When its commit was complete.
    package let committedAt: Duration
    /// The same on the wall clock.
    package let committedTime: Timestamp
    /// Nil: committed.
    package let refusal: HermesError?
    /// The number of inboxes that have it; of a push to many it grows with each part of them.
    package private(set) var recipients: Int
    /// The first ``MessageTraces/maxPlaces`` of them.
    package private(set) var places: [Place] = []

    /// - Returns: nil for all operations but messages and pushes, and for repetitions, which change nothing.
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

    /// It was appended to further inboxes.
    mutating func add(_ deliveries: [InboxDelivery]) {
        recipients += deliveries.count
        let room = MessageTraces.maxPlaces - places.count
        places += deliveries.prefix(room).map { Place(user: $0.user, seq: $0.entry.seq) }
    }

    /// When it came to the core, on the wall clock.
    package var acceptedTime: Timestamp { committedTime.advanced(by: acceptedAt - committedAt) }

    /// The name by which a notification for this user refers to it.
    func scope(for user: UserID) -> String {
        conversation.map { HandOffPlan.name(of: $0, for: user) } ?? id.description
    }
}

/// A step of a message after its commit.
package struct TraceStep: Sendable, Hashable {
    package enum Kind: String, Sendable {
        /// It is in the output of a device's connection.
        case delivered
        /// The device has acknowledged it.
        case acknowledged
        /// A push service has answered.
        case pushed
    }

    package let kind: Kind
    package let user: UserID
    package let device: DeviceID
    /// Since it was accepted.
    package let after: Duration
    /// The listener, or the push service and its answer; may be empty.
    package let detail: String
}
