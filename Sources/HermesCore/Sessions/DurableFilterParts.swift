// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of adding or removing the subscriptions of a list of filters.
package struct FilterChange: Sendable {
    /// The number of filters for which the change is stored, counted from the start of the list.
    package let done: Int
    /// The reason why the change is not stored for the other filters; nil: there are no others.
    package let error: HermesError?

    package init(done: Int, error: HermesError? = nil) {
        self.done = done
        self.error = error
    }

    /// Creates the change that a result holds. If the result is a failure, nothing is stored.
    package init(_ result: Result<FilterChange, HermesError>) {
        switch result {
        case .success(let change): self = change
        case .failure(let error): self.init(done: 0, error: error)
        }
    }

    package var result: Result<Void, HermesError> { error.map { .failure($0) } ?? .success(()) }
}

/// The filters of a SUBSCRIBE or an UNSUBSCRIBE packet. They are stored and take effect in parts, because all other
/// commits and all event loops wait during each part.
///
/// Unchecked Sendable because only the committer's thread calls it after it is submitted (``SessionParts``).
final class DurableFilterParts<Element: Sendable>: SessionParts, @unchecked Sendable {
    private let elements: [Element]
    private let operation: @Sendable ([Element]) -> SessionOperation
    private let apply: @Sendable (Int, [Element]) -> Void
    /// The number of stored parts.
    private(set) var stored = 0

    /// - Parameter stored: called after each part is stored; gets the part's number (from 0) and its filters.
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
        _ completion: @escaping @Sendable (FilterChange) -> Void
    ) {
        committer.submit(parts, bytes: bytes, rows: DurableState.filtersAtOnce, of: source) { result in
            completion(FilterChange(done: parts.done, error: result.error))
        }
    }

    /// Reserves room for all filters that a session is about to get, or for none of them.
    ///
    /// - Returns: the units (``DurableQuota/units(of:)``) that were reserved for each part, and the source that pays
    ///   for them.
    func reserve(
        _ id: DurableSessionID,
        _ subscriptions: [DurableSubscription]
    ) -> Result<(units: [Int], payer: CommitSource?), HermesError> {
        var units: [Int] = []
        var payer: CommitSource?
        // A filter that is named twice counts once.
        var seen: Set<TopicText> = []
        for slice in subscriptions.slices(of: DurableState.filtersAtOnce) {
            let part = slice.map { TopicText($0.filter) }.filter { seen.insert($0).inserted }
            let reserved = shared.state.withLock { state in
                payer = state.records[id]?.payer ?? payer
                return state.reserve(id, part)
            }
            switch reserved {
            case .success(let count):
                units.append(count)
            case .failure(let error):
                let taken = units.reduce(0, +)
                if taken > 0 { shared.change { [payer] in $0.giveBack(taken, of: id, payer: payer) } }
                return .failure(error)
            }
        }
        return .success((units, payer))
    }
}
