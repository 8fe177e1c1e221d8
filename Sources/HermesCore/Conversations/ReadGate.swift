// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Lets a bounded number of reads run at once, and a bounded number of reads wait. Waiting sources take turns,
/// regardless of the number of their waiting reads. One source may use an eighth of the room for waiting reads.
///
/// A read that runs must not wait for a turn in any gate.
///
/// State: a `Mutex` around the queue; nothing is called while it is locked.
package final class ReadGate: Sendable {
    /// A caller that waits for its turn.
    private enum Waiter: Sendable {
        /// A read whose caller does not wait.
        case read(@Sendable () async -> Void)
        /// A task that reads by itself when its turn has come.
        case task(CheckedContinuation<Void, Never>)
    }

    private struct State: Sendable {
        var running = 0
        var waiting = FairQueue<Waiter>()
    }

    private let state = Mutex(State())
    let maxRunning: Int
    private let maxWaiting: Int

    /// The number of reads that a gate for short reads lets run at once. The store runs them together.
    static let maxSharedReads = 16

    init(maxRunning: Int, maxWaiting: Int) {
        self.maxRunning = max(1, maxRunning)
        self.maxWaiting = max(0, maxWaiting)
    }

    /// Waits for the turn of a source, reads, and then lets the next read run.
    ///
    /// - Throws: `.overloaded` if too many reads wait already, in total or for this source; otherwise the error of the
    ///   read.
    func turn<Value: Sendable>(
        of source: CommitSource,
        _ read: () async throws(HermesError) -> Value
    ) async throws(HermesError) -> Value {
        guard await enter(source) else { throw Self.tooManyReads }
        defer { leave() }
        return try await read()
    }

    /// Runs a read when it is its source's turn; the caller does not wait for the read.
    ///
    /// - Returns: false if too many reads wait already, in total or for this source; the read then does not run.
    func run(for source: CommitSource = .server, _ read: @escaping @Sendable () async -> Void) -> Bool {
        switch state.withLock({ ask(source, &$0, { .read(read) }) }) {
        case .go: start(read)
        case .wait: break
        case .refused: return false
        }
        return true
    }

    /// The number of reads that run.
    var running: Int { state.withLock(\.running) }

    /// The number of a source's reads that wait.
    func waiting(of source: CommitSource) -> Int { state.withLock { $0.waiting.waiting(of: source).count } }

    /// The error of a read that finds no room to wait.
    static var tooManyReads: HermesError {
        HermesError(.overloaded, "too many reads at once; try again shortly", retryAfter: .seconds(1))
    }

    private enum Answer {
        case go
        case wait
        case refused
    }

    private func ask(_ source: CommitSource, _ state: inout State, _ waiter: () -> Waiter) -> Answer {
        if state.running < maxRunning {
            state.running += 1
            return .go
        }
        guard hasRoom(for: source, state) else { return .refused }
        state.waiting.append(waiter(), bytes: 0, of: source)
        return .wait
    }

    private func enter(_ source: CommitSource) async -> Bool {
        // If there is room, which is nearly always the case, no continuation is needed.
        let isFree = state.withLock { state in
            guard state.running < maxRunning else { return false }
            state.running += 1
            return true
        }
        if isFree { return true }
        let isRefused = Mutex(false)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            switch state.withLock({ ask(source, &$0, { .task(continuation) }) }) {
            case .wait: break
            case .go: continuation.resume()
            case .refused:
                isRefused.withLock { $0 = true }
                continuation.resume()
            }
        }
        return !isRefused.withLock(\.self)
    }

    /// Runs a read, and then the reads that wait after it.
    private func start(_ read: @escaping @Sendable () async -> Void) {
        // The reads run in a task of their own, because the callers are event loops. At most `maxRunning` such tasks
        // exist. A task ends when nothing waits, or when the next waiter has a task of its own.
        Task {
            var next: (@Sendable () async -> Void)? = read
            while let read = next {
                await read()
                next = finishOne()
            }
        }
    }

    private func leave() {
        if let next = finishOne() { start(next) }
    }

    /// Passes the place of a finished read to the next waiter.
    ///
    /// - Returns: the next read if the caller must run it; otherwise nil.
    private func finishOne() -> (@Sendable () async -> Void)? {
        let next = state.withLock { state -> Waiter? in
            if let next = state.waiting.takeOne() { return next }
            state.running -= 1
            return nil
        }
        switch next {
        case .read(let read): return read
        case .task(let continuation): continuation.resume()
        case nil: break
        }
        return nil
    }

    private func hasRoom(for source: CommitSource, _ state: State) -> Bool {
        let own = source == .server ? 0 : state.waiting.waiting(of: source).count
        guard own < max(1, maxWaiting / 8) else { return false }
        // A source with few waiting reads is not refused because of other sources.
        return state.waiting.count < maxWaiting
            || (source != .server && own < 4 && state.waiting.count / 2 < maxWaiting)
    }
}
