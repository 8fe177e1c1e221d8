// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Removes the filters of ended sessions from the index. A session that has ended is no longer found, and its filters
/// no longer count against limits. The filters are removed a few at a time, because every publisher to kept sessions
/// waits for the lock meanwhile.
extension DurableState {
    /// The number of filters that are added to the index or removed from it at once. Adding or removing them takes a
    /// few tenths of a millisecond.
    static let filtersAtOnce = 256

    /// Returns the loads of the stored sessions with these keys.
    func loads(of keys: [SessionKey]) -> [DurableLoad] {
        keys.compactMap { key in seats[key].flatMap { records[$0.session]?.load } }
    }

    /// Returns the load of a session; nil if the session has ended and gets no more publications.
    func load(of id: DurableSessionID) -> DurableLoad? {
        // The record is read in place, without a copy.
        guard let place = records.index(forKey: id), !records.values[place].hasEnded else { return nil }
        return records.values[place].load
    }

    /// Ends all subscriptions of a session that has ended. Their filters stay in the index until ``trimIndex()``
    /// removes them.
    mutating func leaveAll(_ id: DurableSessionID) {
        guard let record = records[id], !record.subscriptions.isEmpty else { return }
        records[id]?.subscriptions = []
        records[id]?.sharedSubscriptions = []
        let units = record.subscriptions.reduce(0) { $0 + DurableQuota.units(of: $1.rawValue) }
        giveBack(units, of: id, payer: record.payer)
        index.membersChanged()
        leaving.append((id, Array(record.subscriptions)))
    }

    /// Removes the filters of an ended session from the index at once, because the session exists again.
    mutating func finishLeaving(_ id: DurableSessionID) {
        guard let place = leaving.firstIndex(where: { $0.id == id }) else { return }
        for filter in leaving.remove(at: place).filters { index.forget(id, filter.rawValue) }
    }

    /// Removes some filters of ended sessions from the index.
    mutating func trimIndex() {
        var room = Self.filtersAtOnce
        while room > 0, var next = leaving.popLast() {
            let count = min(room, next.filters.count)
            for filter in next.filters.suffix(count) { index.forget(next.id, filter.rawValue) }
            next.filters.removeLast(count)
            room -= count
            if !next.filters.isEmpty { leaving.append(next) }
        }
    }
}
