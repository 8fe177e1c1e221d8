// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The durable queue of webhooks.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `WebhookStoreConformance` of HermesTestKit.
package protocol WebhookStore: Sendable {
    /// Appends events, and in the same commit records the last inbox seq up to which undelivered messages were
    /// reported.
    ///
    /// - Parameters:
    ///   - limit: the largest number of events that may wait. If there are more, the oldest events are dropped. One
    ///     user may have at most ``WebhookEvent/maxWaiting(perUserOf:)`` events. Beyond that, the user's oldest events
    ///     are dropped.
    ///   - marks: for each user, the seq to be recorded. A mark only moves forward.
    /// - Returns: the number of dropped events.
    func appendWebhooks(
        _ events: [WebhookEvent],
        marks: [UserID: UInt64],
        limit: Int
    ) async throws(HermesError) -> Int

    /// Returns due events (``WebhookEvent/isDue(at:now:)``) in the order in which they were appended. If there are too
    /// many, the events that have been due longest are returned. Events that were queued while the clock was ahead come
    /// first. At most ``WebhookEvent/maxDuePerUser`` events of one user are returned, so that a user with many events
    /// does not keep other users waiting. An event is left out while an earlier event of the same user waits for a
    /// retry. When the earlier event has failed ``WebhookEvent/attemptsInOrder`` times, it no longer delays later
    /// events.
    func dueWebhooks(now: Timestamp, limit: Int) async throws(HermesError) -> [StoredWebhook]

    /// Records the outcomes of events, in one commit.
    func settleWebhooks(_ settlements: [WebhookSettlement]) async throws(HermesError)

    /// Returns the number of waiting events, and the earliest time at which one of them is due; nil if no event waits.
    func webhookQueue() async throws(HermesError) -> (count: Int, nextDue: Timestamp?)

    /// Returns the last inbox seq of a user up to which undelivered messages were reported; 0 if none were reported.
    func undeliveredMark(of user: UserID) async throws(HermesError) -> UInt64

    /// Returns users with an id above `user`, in ascending order of their ids. Each of them has an entry after the mark
    /// and after the cursors of all devices. A page may have fewer than `limit` users although more users follow. A
    /// page is empty only after the last user.
    func usersWithUndelivered(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID]
}

/// An event for the operator's back end.
package struct WebhookEvent: Sendable, Hashable {
    /// The number of failures after which an event no longer holds up later events of its user.
    package static let attemptsInOrder = 4

    /// The largest number of events of one user that are posted before other users have their turn.
    package static let maxDuePerUser = 8

    /// The longest wait before a retry. It is the sum of the server's own wait of up to one hour, and a wait of up to
    /// one hour for which the receiver may ask. An event waits longer only if the clock is set back.
    package static let maxWait = Duration.seconds(2 * 3600)

    /// Whether an event is due. If the due time is further away than ``maxWait``, the event was queued while the clock
    /// was ahead. Such an event is due at once.
    package static func isDue(at due: Timestamp, now: Timestamp) -> Bool {
        due <= now || due > now.advanced(by: maxWait)
    }

    /// Returns how many events of one user may wait: a hundredth of the limit for all users, but at least 100. Only
    /// events that hold up later events count.
    package static func maxWaiting(perUserOf limit: Int) -> Int { max(100, limit / 100) }

    /// The id by which the receiver recognizes a repetition: 26 characters, sortable by time.
    package let id: String
    /// The user whose events are posted in order, this event included; nil if the order of this event does not matter.
    package let user: UserID?
    package let createdAt: Timestamp
    /// The JSON object.
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
    /// The number of the event in the queue.
    package let number: Int64
    package let event: WebhookEvent
    /// The number of failed attempts.
    package let attempts: Int

    package init(number: Int64, event: WebhookEvent, attempts: Int) {
        self.number = number
        self.event = event
        self.attempts = attempts
    }
}

/// The outcome of an event in the queue.
package enum WebhookSettlement: Sendable, Hashable {
    /// The event leaves the queue, because the receiver has accepted it or because the server no longer tries to post
    /// it.
    case done(Int64)
    /// The attempt failed. The event is tried again at `due`.
    case again(Int64, attempts: Int, due: Timestamp)
}
