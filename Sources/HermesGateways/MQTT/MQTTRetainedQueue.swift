// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import NIOCore

/// What new subscriptions of one session want of what is retained: which are to be searched for, how far the search is,
/// and the few publications it found last. Owner: the connection's event loop.
///
/// A subscription has at most one place in it, however often it is asked for, so that it is never longer than the
/// session's subscriptions.
final class MQTTRetainedQueue {
    struct Request {
        /// The subscription, as the client wrote it.
        let text: String
        let filter: TopicFilter
        let options: SubscriptionOptions
    }

    /// How many publications are found at once.
    static let pageSize = 64
    /// How many records a search looks at before others have their turn.
    static let stepsAtOnce = 4_096
    /// Until it goes on: not at once, because a loop runs all tasks that are due before it looks at its connections.
    static let pause = TimeAmount.milliseconds(1)

    private var requests = Deque<Request>()
    private var requested: Set<TopicText> = []
    /// The one that is being searched for.
    private(set) var current: Request?
    private var search: RetainedMessages.Search?
    private var found = Deque<Publication>()
    /// Going on is scheduled already, or a page is on its way into the store.
    var isPaused = false

    func append(_ request: Request) {
        guard requested.insert(TopicText(request.text)).inserted else { return }
        requests.append(request)
    }

    var isEmpty: Bool { current == nil && requests.isEmpty }

    var first: Publication? { found.first }

    func removeFirst() { found.removeFirst() }

    /// All that was found and not taken.
    func takeFound() -> Deque<Publication> {
        defer { found = [] }
        return found
    }

    /// Finds the next publications.
    ///
    /// - Parameters:
    ///   - steps: how many records may be looked at; what was used is subtracted.
    ///   - own: what the broker says about itself that a filter matches.
    /// - Returns: false if nothing is left to search for.
    func advance(
        in retained: RetainedMessages,
        now: Timestamp,
        steps: inout Int,
        own: (TopicFilter) -> [Publication]
    ) -> Bool {
        if search?.isAtEnd ?? true {
            search = nil
            current = requests.popFirst()
            guard let current else { return false }
            requested.remove(TopicText(current.text))
            search = retained.search(current.filter)
            found.append(contentsOf: own(current.filter))
            steps -= 1
        }
        guard var search else { return false }
        self.search = nil
        for stored in retained.next(&search, now: now, limit: Self.pageSize, steps: &steps) {
            found.append(Publication(stored))
        }
        self.search = search
        return true
    }
}
