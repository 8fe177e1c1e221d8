// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of adding or removing the subscriptions of a list of filters.
package struct FilterChange: Sendable {
    /// The number of filters for which the change is stored, counted from the start of the list.
    package let done: Int
    /// The reason why the change is not stored for the remaining filters; nil if there are none.
    package let error: HermesError?
    /// The filters for which there is no room. ``done`` counts as if they were not in the list.
    package let refused: Set<TopicText>

    package init(done: Int, error: HermesError? = nil, refused: Set<TopicText> = []) {
        self.done = done
        self.error = error
        self.refused = refused
    }

    /// Creates a change from a result. A failure means that the change is stored for no filter.
    package init(_ result: Result<FilterChange, HermesError>) {
        switch result {
        case .success(let change): self = change
        case .failure(let error): self.init(done: 0, error: error)
        }
    }

    /// The change as a result. Success means that the change is stored for all filters.
    package var result: Result<Void, HermesError> {
        if let error { return .failure(error) }
        return refused.isEmpty ? .success(()) : .failure(DurableQuota.tooManyFilters)
    }
}

/// The room that is reserved for the filters of a SUBSCRIBE packet.
struct FilterReservation: Sendable {
    /// The subscriptions for which there is room.
    let accepted: [DurableSubscription]
    /// The filters for which there is no room.
    let refused: Set<TopicText>
    /// The units (``DurableQuota/units(of:)``) that are reserved for each part of ``accepted``.
    let units: [Int]
    /// The source that pays for the units.
    let payer: CommitSource?
}

/// The filters of a SUBSCRIBE or an UNSUBSCRIBE packet. They are stored and take effect in parts, because all other
/// commits and all event loops wait during each part.
///
/// Unchecked Sendable, because only the committer's thread uses the parts after their submission (``SessionParts``).
final class DurableFilterParts<Element: Sendable>: SessionParts, @unchecked Sendable {
    private let elements: [Element]
    private let operation: @Sendable ([Element]) -> SessionOperation
    private let apply: @Sendable (Int, [Element]) -> Void
    /// The number of stored parts.
    private(set) var stored = 0

    /// - Parameter stored: called after each part is stored, with the part's number (from 0) and its filters.
    init(
        _ elements: [Element],
        operation: @escaping @Sendable ([Element]) -> SessionOperation,
        stored apply: @escaping @Sendable (_ number: Int, _ part: [Element]) -> Void
    ) {
        self.elements = elements
        self.operation = operation
        self.apply = apply
    }

    private var part: [Element] {
        let start = min(stored * DurableState.filtersAtOnce, elements.count)
        return Array(elements[start..<min(start + DurableState.filtersAtOnce, elements.count)])
    }

    /// The number of filters in the stored parts.
    var done: Int { min(stored * DurableState.filtersAtOnce, elements.count) }

    func next() -> SessionOperation { operation(part) }

    func committed(_ outcome: SessionOutcome) -> Bool {
        apply(stored, part)
        stored += 1
        return done < elements.count
    }
}

extension DurableSessions {
    func submit<Element>(
        _ parts: DurableFilterParts<Element>,
        bytes: Int,
        of source: CommitSource,
        isUrgent: Bool = false,
        _ completion: @escaping @Sendable (FilterChange) -> Void
    ) {
        let rows = DurableState.filtersAtOnce
        committer.submit(parts, bytes: bytes, rows: rows, of: source, isUrgent: isUrgent) { result in
            completion(FilterChange(done: parts.done, error: result.error))
        }
    }

    /// Reserves room for the filters that a session is about to get. A filter for which there is no room is refused;
    /// the other filters are accepted.
    func reserve(_ id: DurableSessionID, _ subscriptions: [DurableSubscription]) -> FilterReservation {
        var payer: CommitSource?
        var taken: [TopicText: Int] = [:]
        var refused: Set<TopicText> = []
        // A filter that is named twice counts once.
        var seen: Set<TopicText> = []
        for slice in subscriptions.slices(of: DurableState.filtersAtOnce) {
            let part = slice.map { TopicText($0.filter) }.filter { seen.insert($0).inserted }
            let units = shared.state.withLock { state in
                payer = state.records[id]?.payer ?? payer
                return state.reserve(id, part)
            }
            for (filter, units) in zip(part, units) {
                if let units { taken[filter] = units } else { refused.insert(filter) }
            }
        }
        let accepted =
            refused.isEmpty ? subscriptions : subscriptions.filter { !refused.contains(TopicText($0.filter)) }
        let units = accepted.slices(of: DurableState.filtersAtOnce).map { part in
            part.reduce(0) { $0 + (taken.removeValue(forKey: TopicText($1.filter)) ?? 0) }
        }
        return FilterReservation(accepted: accepted, refused: refused, units: units, payer: payer)
    }
}
