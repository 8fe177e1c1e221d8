// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// The present step of opening a database, for those who wait for the database.
package enum OpeningProgress: Sendable, Hashable {
    /// The check of the whole file begins.
    case checking
    /// A migration of an older file begins.
    ///
    /// - Parameter name: the migration's name.
    case migrating(name: String)
    /// The check or the migration still runs. Reported every five seconds.
    case working
}

/// Reports at intervals that a step still runs, because SQLite reports no progress.
enum LongStep {
    /// The interval of the reports, in seconds.
    static let interval = 5.0

    /// Runs a step on this thread.
    ///
    /// - Parameter report: gets the seconds since the step began, on another thread.
    static func run<Value>(
        every interval: Double = LongStep.interval,
        _ report: @escaping @Sendable (_ seconds: Int64) -> Void,
        _ step: () throws -> Value
    ) rethrows -> Value {
        let began = ContinuousClock.now
        let timer = DispatchSource.makeTimerSource(queue: .global())
        timer.schedule(deadline: .now() + interval, repeating: interval)
        timer.setEventHandler { report((ContinuousClock.now - began).components.seconds) }
        timer.resume()
        defer { timer.cancel() }
        return try step()
    }
}
