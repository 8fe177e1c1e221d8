// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The durable queue of webhooks.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `WebhookStoreConformance` of HermesTestKit.
package protocol WebhookStore: Sendable {
    /// Appends events, and notes in the same commit up to where undelivered messages were reported.
    ///
    /// - Parameters:
    ///   - limit: how many may wait; the oldest beyond that are dropped.
    ///   - marks: up to which inbox seq of each user; a mark only moves forward.
    /// - Returns: how many were dropped.
    func appendWebhooks(
        _ events: [WebhookEvent],
        marks: [UserID: UInt64],
        limit: Int
    ) async throws(HermesError) -> Int

    /// Events that are due, those that have been for longest first among many, in the order in which they were appended. One that waits behind an earlier event of the
    /// same user is left out, unless that one has failed ``WebhookEvent/attemptsInOrder`` times already.
    func dueWebhooks(now: Timestamp, limit: Int) async throws(HermesError) -> [StoredWebhook]

    /// Notes what became of events, in one commit.
    func settleWebhooks(_ settlements: [WebhookSettlement]) async throws(HermesError)

    /// How many wait, and when the next is due; nil: none waits.
    func webhookQueue() async throws(HermesError) -> (count: Int, nextDue: Timestamp?)

    /// Up to which inbox seq of a user undelivered messages were reported; 0: never.
    func undeliveredMark(of user: UserID) async throws(HermesError) -> UInt64

    /// Users with an id above `user`, ascending, whose inbox goes on behind the mark and behind the cursors of all devices.
    func usersWithUndelivered(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID]
}

/// Something that happened, as it is posted to the operator's back end.
package struct WebhookEvent: Sendable, Hashable {
    /// After so many failures an event no longer holds up the later ones of its user.
    package static let attemptsInOrder = 4

    /// For the receiver to recognise a repetition: 26 characters, sortable by time.
    package let id: String
    /// Whose order it has to keep; nil: nobody's.
    package let user: UserID?
    package let createdAt: Timestamp
    /// The JSON object that is posted.
    package let body: [UInt8]

    package init(id: String, user: UserID?, createdAt: Timestamp, body: [UInt8]) {
        self.id = id
        self.user = user
        self.createdAt = createdAt
        self.body = body
    }
}

/// An event in the queue.
package struct StoredWebhook: Sendable, Hashable {
    /// Its place in the queue.
    package let number: Int64
    package let event: WebhookEvent
    /// How often it was posted in vain.
    package let attempts: Int

    package init(number: Int64, event: WebhookEvent, attempts: Int) {
        self.number = number
        self.event = event
        self.attempts = attempts
    }
}

/// What became of an event in the queue.
package enum WebhookSettlement: Sendable, Hashable {
    /// Taken by the receiver, or given up: it leaves the queue.
    case done(Int64)
    /// Not taken: again at `due`.
    case again(Int64, attempts: Int, due: Timestamp)
}
