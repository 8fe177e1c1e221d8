// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The outcome of subscribing or unsubscribing a list of filters.
package struct FilterChange: Sendable {
    /// How many are stored, from the first one on.
    package let done: Int
    /// Why the others are not; nil: all are.
    package let error: HermesError?

    package init(done: Int, error: HermesError? = nil) {
        self.done = done
        self.error = error
    }

    /// The change that a result holds. If the result is a failure, no filter is stored.
    package init(_ result: Result<FilterChange, HermesError>) {
        switch result {
        case .success(let change): self = change
        case .failure(let error): self.init(done: 0, error: error)
        }
    }

    package var result: Result<Void, HermesError> { error.map { .failure($0) } ?? .success(()) }
}

/// The filters of a SUBSCRIBE or an UNSUBSCRIBE. They are stored and take effect in parts, because all commits and all
/// loops wait during each part.
///
/// Unchecked Sendable because only the committer's thread calls it after it is submitted (``SessionParts``).
final class DurableFilterParts<Element: Sendable>: SessionParts, @unchecked Sendable {
    private let elements: [Element]
    private let operation: @Sendable ([Element]) -> SessionOperation
    private let apply: @Sendable (Int, [Element]) -> Void
    /// The number of stored parts.
    private(set) var stored = 0

    /// - Parameter stored: called after each part, with its number and its filters.
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

    /// How many filters are stored.
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

    /// Takes room for all filters that a session is about to get, or for none.
    ///
    /// - Returns: the units that were taken for each part, and who pays for them.
    func reserve(
        _ id: DurableSessionID,
        _ subscriptions: [DurableSubscription]
    ) -> Result<(units: [Int], payer: CommitSource?), HermesError> {
        var units: [Int] = []
        var payer: CommitSource?
        // Each filter once.
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
