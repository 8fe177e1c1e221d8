// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores the ends of connections, and retries those that the store could not record.
extension DurableState {
    /// Returns the action that stores the end of a session's connection.
    func close(
        _ id: DurableSessionID,
        sentUpTo: UInt64,
        expiresAt: Timestamp?,
        of source: CommitSource
    ) -> [Action] {
        let opening = records[id]?.place?.opening
        return [.close(id, .close(id, sentUpTo: sentUpTo, expiresAt: expiresAt, opening: opening), source)]
    }

    /// The largest number of ends that are submitted again at once. If the store still fails, they make the commits of
    /// others fail, too.
    private static let closesAtOnce = 16

    /// Notes that the store could not record the end of a session's connection. Other errors, such as a damaged row,
    /// would only come again.
    ///
    /// If the session has ended, its removal is tried again instead. If there are several nodes, this process reads the
    /// session again and then finds that the session is not closed (``learn(_:_:now:redistributesAt:)``).
    mutating func keepUnclosed(_ id: DurableSessionID, _ error: HermesError) {
        guard node == nil, records[id]?.hasEnded == false,
            error.code == .storageUnavailable || error.code == .overloaded
        else { return }
        unclosed.set(id, dueAt: Self.longAgo)
    }

    /// Submits again the ends of connections that the store could not record. Other members of shared subscriptions get
    /// a session's messages only after the store has recorded the end of its connection.
    mutating func closeUnclosed(now: Timestamp) -> [Action] {
        var actions: [Action] = []
        // The sessions that are about to get a new connection. The opening may fail.
        var opening: [DurableSessionID] = []
        for _ in 0..<Self.closesAtOnce {
            guard let id = unclosed.popDue(now: now) else { break }
            guard let record = records[id], var seat = seats[record.key], seat.session == id else { continue }
            guard case .vacant = seat.phase else {
                opening.append(id)
                continue
            }
            seat.phase = .closing
            seats[record.key] = seat
            actions += close(id, sentUpTo: record.sentUpTo, expiresAt: record.expiresAt, of: record.payer)
        }
        for id in opening { unclosed.set(id, dueAt: Self.longAgo) }
        return actions
    }
}
