// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Applies operations in a transaction that should be short.
protocol SlicedWriter {
    associatedtype Operation
    associatedtype Outcome

    var time: TimeSlice { get set }
    /// Whether another operation fits into the transaction.
    var hasTime: Bool { get }
    /// Whether the transaction already writes enough, even if it has time left.
    var isFull: Bool { get }
    /// The outcome of an operation that found a damaged row.
    static var refusedForDamage: Outcome { get }

    mutating func apply(_ operation: Operation) throws -> Outcome
}

extension SlicedWriter {
    var isFull: Bool { false }

    /// Applies operations while `next` gives some and the transaction has time.
    ///
    /// - Parameters:
    ///   - next: gives the next operation (`MessageStore.commit(taking:now:)`).
    ///   - slice: the usual time of a transaction.
    ///   - isAwaited: whether other changes wait for the writer. If so, a transaction that has used its time ends.
    ///   - operations: gets each operation before it is applied, so that it can be applied again if it fails.
    mutating func apply(
        taking next: (_ isLong: Bool) -> Operation?,
        slice: Duration,
        unless isAwaited: @autoclosure () -> Bool,
        _ operations: inout [Operation],
        _ outcomes: inout [Outcome]
    ) throws {
        var isLong = false
        var isSpent = false
        while !isSpent, !(isLong && isAwaited()), let operation = next(isLong) {
            if isLong { time.extend() }
            operations.append(operation)
            outcomes.append(try apply(operation))
            if isFull { break }
            guard !hasTime else { continue }
            isSpent = isLong
            isLong = true
        }
        if isLong, !isSpent { time.end(slice) }
    }
}
