// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Lists retained publications for operators.
extension RetainedMessages {
    /// The largest number of topics that one page examines.
    private static let maxSearched = 20_000

    /// Returns a page of the publications that a filter matches. A list that fits into one page is sorted by topic. A
    /// longer list has no order, but each publication that stays retained is in exactly one page.
    ///
    /// - Parameters:
    ///   - place: the end of the previous page; 0 for the first page.
    ///   - limit: the largest number of publications.
    /// - Returns: the publications, and the place after which the next page begins; the place is nil if there are no
    ///   more publications.
    package func page(
        of filter: TopicFilter,
        behind place: Int,
        now: Timestamp,
        limit: Int
    ) -> (found: [StoredPublication], next: Int?) {
        let limit = max(1, limit)
        if place == 0, let whole = self.whole(filter, now: now, atMost: limit) { return (whole, nil) }
        // `place` comes from outside, so it may be any number.
        var last = min(max(0, place), Int(Int32.max))
        let end = last + Self.maxSearched
        var found: [StoredPublication] = []
        while last < end {
            let (candidates, isLast) = publications(behind: last, count: Self.slice)
            for (place, publication) in candidates where filter.matches(publication.topic) {
                guard !publication.hasExpired(at: now) else { continue }
                found.append(publication)
                if found.count == limit { return (found, place) }
            }
            if isLast { return (found, nil) }
            last += Self.slice
        }
        return (found, last)
    }

    /// The largest number of bytes of topics that one search for a text examines.
    private static let maxSearchedBytes = 1 << 20

    /// Returns topics that contain a given text and have a retained publication, in no particular order. The case of
    /// ASCII letters does not matter. A search examines at most as many topics as one page does, and at most 1 MiB of
    /// topics.
    ///
    /// - Parameter limit: the largest number of topics.
    package func topics(containing text: String, now: Timestamp, limit: Int) -> [TopicName] {
        let wanted = Group.searchKey(text)
        var found: [TopicName] = []
        var bytes = 0
        for place in stride(from: 0, to: Self.maxSearched, by: Self.slice) {
            let (candidates, isLast) = publications(behind: place, count: Self.slice)
            for (_, publication) in candidates {
                bytes += publication.topic.rawValue.utf8.count
                guard bytes <= Self.maxSearchedBytes else { return found }
                guard !publication.hasExpired(at: now), Group.searchKey(publication.topic.rawValue).contains(wanted)
                else {
                    continue
                }
                found.append(publication.topic)
                if found.count == limit { return found }
            }
            if isLast { break }
        }
        return found
    }

    /// Returns all publications that a filter matches, if there are only a few and they can be found quickly; otherwise
    /// nil.
    private func whole(_ filter: TopicFilter, now: Timestamp, atMost limit: Int) -> [StoredPublication]? {
        guard filter.hasWildcard else { return matching(filter, now: now) }
        var search = self.search(filter)
        var steps = Self.maxSearched
        let found = next(&search, now: now, limit: limit + 1, steps: &steps)
        guard search.isAtEnd, found.count <= limit else { return nil }
        return found.sorted { $0.topic.rawValue < $1.topic.rawValue }
    }
}
