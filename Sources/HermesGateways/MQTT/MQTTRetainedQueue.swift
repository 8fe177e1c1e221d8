// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import NIOCore

/// The retained messages for new subscriptions of one client: the pending searches, the progress of the present search,
/// and its last few results. Owner: the connection's event loop.
///
/// A subscription is in the queue at most once, even if the client repeats it. So the queue is never longer than the
/// list of the client's subscriptions.
final class MQTTRetainedQueue {
    struct Request {
        /// The subscription's text from the client.
        let text: String
        let filter: TopicFilter
    }

    struct Found {
        let publication: Publication
        /// Whether the publication is one of the broker's own publications (``MQTTStatistics``).
        let isOwn: Bool
    }

    /// The largest number of publications that are found at once.
    static let pageSize = 64
    /// The maximum total size of the publications that are found at once, in bytes; the last publication may exceed it.
    /// The found publications stay in memory even if newer publications replace them as retained publications
    /// meanwhile.
    static let pageBytes = 65_536
    /// The number of records that a search examines before other connections have their turn.
    static let stepsAtOnce = 4_096

    /// The first pause before the next try to put publications into the queue of a durable session that had no room for
    /// them. The pause doubles up to ``maxRetryPause`` while none of them finds room.
    static let retryPause = TimeAmount.seconds(1)
    static let maxRetryPause = TimeAmount.seconds(64)

    private var requests = Deque<Request>()
    private var requested: Set<TopicText> = []
    /// The present search.
    private(set) var current: Request?
    private var search: RetainedMessages.Search?
    private var found = Deque<Found>()
    /// The approximate size of ``found``, in bytes.
    private var foundBytes = 0
    private var retryPause = MQTTRetainedQueue.retryPause
    /// Whether the found publications were found in the present turn of the loop. Until the turn ends, the client
    /// gets no newer publications.
    var isFresh = false
    /// Whether the queue waits, because its continuation is scheduled or publications are being stored.
    var isPaused = false

    /// Returns the pause before the next try.
    ///
    /// - Parameter isStuck: whether no publication has found room since the last try.
    func nextRetryPause(isStuck: Bool) -> TimeAmount {
        if !isStuck { retryPause = Self.retryPause }
        defer { retryPause = min(retryPause + retryPause, Self.maxRetryPause) }
        return retryPause
    }

    func append(_ request: Request) {
        guard requested.insert(TopicText(request.text)).inserted else { return }
        requests.append(request)
    }

    var isEmpty: Bool { current == nil && requests.isEmpty }

    /// The approximate memory of the search and of its results, in bytes.
    var bytes: Int { (search?.bytes ?? 0) &+ foundBytes &+ 128 &* requests.count }

    var first: Found? { found.first }

    func popFirst() { foundBytes &-= found.popFirst()?.publication.weight ?? 0 }

    private func append(_ publication: Publication, isOwn: Bool) {
        found.append(Found(publication: publication, isOwn: isOwn))
        foundBytes &+= publication.weight
    }

    /// Removes and returns the found publications.
    func takeFound() -> Deque<Found> {
        defer { (found, foundBytes) = ([], 0) }
        return found
    }

    /// Puts back publications that were taken. They are sent before all others.
    func putBack(_ publications: [Publication]) {
        found = Deque(publications.map { Found(publication: $0, isOwn: false) }) + found
        foundBytes &+= publications.reduce(0) { $0 &+ $1.weight }
    }

    /// Finds the next publications.
    ///
    /// - Parameters:
    ///   - steps: the largest number of records to examine. The number of examined records is subtracted from it.
    ///   - own: the broker's own publications that match a filter.
    /// - Returns: false if all searches are done.
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
            for publication in own(current.filter) { append(publication, isOwn: true) }
            steps -= 1
        }
        guard var search else { return false }
        self.search = nil
        let page = retained.next(&search, now: now, limit: Self.pageSize, maxBytes: Self.pageBytes, steps: &steps)
        for stored in page { append(Publication(stored), isOwn: false) }
        self.search = search
        isFresh = true
        return true
    }
}
