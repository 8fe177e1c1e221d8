// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The filters of ended sessions. Nobody finds a session that has ended, and its filters count no more; they leave the
/// index a few at a time, because everybody who publishes to kept sessions waits for the lock meanwhile.
extension DurableState {
    /// The number of filters that come or leave at once: some tenths of a millisecond.
    static let filtersAtOnce = 256

    /// The loads of stored sessions.
    func loads(of keys: [SessionKey]) -> [DurableLoad] {
        keys.compactMap { key in seats[key].flatMap { records[$0.session]?.load } }
    }

    /// The load of a session that publications may go to; nil if it has ended.
    func load(of id: DurableSessionID) -> DurableLoad? {
        // Without a copy of the record.
        guard let place = records.index(forKey: id), !records.values[place].hasEnded else { return nil }
        return records.values[place].load
    }

    /// Ends all subscriptions of a session that has ended.
    mutating func leaveAll(_ id: DurableSessionID) {
        guard let record = records[id], !record.subscriptions.isEmpty else { return }
        records[id]?.subscriptions = []
        let units = record.subscriptions.reduce(0) { $0 + DurableQuota.units(of: $1.rawValue) }
        giveBack(units, of: id, payer: record.payer)
        index.membersChanged()
        leaving.append((id, Array(record.subscriptions)))
    }

    /// The filters of a session that is there again leave at once.
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
