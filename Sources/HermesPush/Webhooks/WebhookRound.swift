// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import Synchronization

/// One check of the queue of webhooks: the lists of events that were due, and the outcomes of the posted events. A list
/// has the events of one user, or one event without a user. Its events are posted one after the other.
///
/// A list that takes a long time does not hold up the next round: after a round is closed, its workers themselves
/// record the outcomes of the posts that they still finish.
///
/// State: a `Mutex`; nothing is called under it.
final class WebhookRound: Sendable {
    private struct State {
        var waiting: Deque<[StoredWebhook]>
        var settlements: [WebhookSettlement] = []
        var workers: Int
        var isClosed = false
    }

    private let state: Mutex<State>
    /// Signals that all lists were begun.
    private let begun = WakeUp()
    /// Signals that all workers have ended.
    private let ended = WakeUp()

    /// - Parameter workers: the number of workers that post the lists.
    init(_ lines: [[StoredWebhook]], workers: Int) {
        state = Mutex(State(waiting: Deque(lines), workers: workers))
    }

    /// Returns the next list to post; nil if the worker has nothing more to do.
    func next() -> [StoredWebhook]? {
        let (line, isLast) = state.withLock { state -> ([StoredWebhook]?, Bool) in
            guard !state.isClosed, let line = state.waiting.popFirst() else { return (nil, false) }
            return (line, state.waiting.isEmpty)
        }
        if isLast { begun.signal() }
        return line
    }

    /// Adds the outcomes of a list.
    ///
    /// - Returns: false if the round is closed. In that case the worker records the outcomes.
    func add(_ settlements: [WebhookSettlement]) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.settlements += settlements
            return true
        }
    }

    /// - Returns: whether the round is closed.
    func workerEnded() -> Bool {
        let (isLast, isClosed) = state.withLock { state in
            state.workers -= 1
            return (state.workers == 0, state.isClosed)
        }
        if isLast { ended.signal() }
        return isClosed
    }

    /// Waits until all lists were begun. Then waits until all workers have ended, but at most for `limit`, and closes
    /// the round. So workers are idle only if nothing is due.
    ///
    /// - Returns: the outcomes so far, and the lists that no worker has begun.
    func close(after limit: Duration?) async -> (settlements: [WebhookSettlement], rest: [[StoredWebhook]]) {
        if state.withLock({ $0.workers > 0 && !$0.waiting.isEmpty }) { await begun.wait() }
        if state.withLock({ $0.workers > 0 }) { await ended.wait(atMost: limit) }
        return state.withLock { state in
            state.isClosed = true
            return (state.settlements, Array(state.waiting))
        }
    }
}

/// The posts that are under way, over all rounds. Does no I/O; owner: ``WebhookPoster``.
struct WebhookPostsUnderWay: Sendable {
    private let most: Int
    private(set) var workers = 0
    private var users: Set<UserID> = []
    private var numbers: Set<Int64> = []
    /// The outcomes of closed rounds that the counts of the next round will include.
    private var late = WebhookPoster.Round(posted: 0, failed: 0)

    /// - Parameter most: the largest number of workers.
    init(most: Int) { self.most = most }

    /// Divides due events into lists, except events whose list is already under way, and assigns workers to the
    /// lists. All these lists are then under way.
    mutating func take(_ due: [StoredWebhook]) -> (lines: [[StoredWebhook]], workers: Int) {
        var lines: [[StoredWebhook]] = []
        var places: [UserID: Int] = [:]
        for webhook in due where !has(webhook) {
            if let user = webhook.event.user, let place = places[user] {
                lines[place].append(webhook)
            } else {
                if let user = webhook.event.user { places[user] = lines.count }
                lines.append([webhook])
            }
        }
        for line in lines { began(line) }
        let taken = min(most - workers, lines.count)
        workers += taken
        return (lines, taken)
    }

    /// Whether a post of the event's list is under way.
    func has(_ webhook: StoredWebhook) -> Bool {
        webhook.event.user.map(users.contains) ?? numbers.contains(webhook.number)
    }

    private mutating func began(_ line: [StoredWebhook]) {
        if let user = line.first?.event.user { users.insert(user) } else { numbers.formUnion(line.map(\.number)) }
    }

    mutating func ended(_ line: [StoredWebhook]) {
        if let user = line.first?.event.user { users.remove(user) } else { numbers.subtract(line.map(\.number)) }
    }

    mutating func workerEnded() { workers -= 1 }

    mutating func endedLate(_ round: WebhookPoster.Round) { late = late + round }

    /// Returns a round's counts together with the late outcomes of earlier rounds.
    mutating func takeLate(with round: WebhookPoster.Round) -> WebhookPoster.Round {
        defer { late = WebhookPoster.Round(posted: 0, failed: 0) }
        return round + late
    }
}
