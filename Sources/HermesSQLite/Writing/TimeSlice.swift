// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The time that a transaction works before it leaves the remaining work to the next transaction, so that no client
/// waits long for another client's data.
struct TimeSlice {
    /// The time of a transaction that can leave work to the next one. Writing its pages to the log takes some 0.1 ms
    /// more. A message waits for the running transaction and then for its own. A message that answers it waits again in
    /// the same way.
    static let duration = Duration.milliseconds(5)
    /// The time of such a transaction if each commit waits for the disk. Waiting for the disk takes about as long as
    /// the work, or longer.
    static let durationWithSync = Duration.milliseconds(20)
    /// The longest time of a transaction for which only the clients that keep it busy wait. More rows then share the
    /// cost of the transaction and of common pages.
    static let longest = Duration.milliseconds(20)

    private(set) var duration: Duration
    private let clock: any TimeSource
    private let start: Duration

    /// Starts now.
    init(_ clock: any TimeSource, _ duration: Duration) {
        self.clock = clock
        self.duration = duration
        start = clock.uptime()
    }

    /// The time since the start of the slice.
    var elapsed: Duration { clock.uptime() - start }

    var isSpent: Bool { elapsed >= duration }

    /// Extends the transaction to ``longest``.
    mutating func extend() { duration = max(duration, Self.longest) }

    /// Ends an extended transaction soon. Its work besides operations gets half of a usual slice.
    mutating func end(_ slice: Duration) { duration = min(duration, elapsed + slice / 2) }
}

/// Applies operations in a transaction that should be short.
protocol SlicedWriter {
    associatedtype Operation
    associatedtype Outcome

    var time: TimeSlice { get set }
    /// Whether another operation fits into the transaction.
    var hasTime: Bool { get }
    /// Whether the transaction already writes enough, even if it has time left.
    var isFull: Bool { get }

    mutating func apply(_ operation: Operation) throws -> Outcome
}

extension SlicedWriter {
    var isFull: Bool { false }

    /// Applies operations while `next` gives some and the transaction has time.
    ///
    /// - Parameters:
    ///   - next: gives the next operation (`MessageStore.commit(taking:now:)`).
    ///   - slice: the usual time of a transaction.
    ///   - isAwaited: whether other changes wait for the writer; then a transaction that has used its time ends.
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

/// The number of rows in a step, so that a step takes a small part of a ``TimeSlice``. The number follows the time that
/// the last steps took, because rows from a cold disk take much longer than rows in memory.
struct StepSize {
    private(set) var rows = 64

    private static let range = 8...512

    mutating func learn(_ time: Duration) {
        if time > TimeSlice.duration / 2 { rows = max(Self.range.lowerBound, rows / 2) }
        if time < TimeSlice.duration / 8 { rows = min(Self.range.upperBound, rows * 2) }
    }
}
