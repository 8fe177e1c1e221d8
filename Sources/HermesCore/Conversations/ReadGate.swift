// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Lets a bounded number of reads run at once and a bounded number wait. Those who wait take turns, whoever asks for more;
/// one of them may use an eighth of the room.
///
/// State: a `Mutex` around the queue; nothing is called under it.
final class ReadGate: Sendable {
    private struct State: Sendable {
        var running = 0
        var waiting = FairQueue<@Sendable () async -> Void>()
    }

    private let state = Mutex(State())
    private let maxRunning: Int
    private let maxWaiting: Int

    init(maxRunning: Int, maxWaiting: Int) {
        self.maxRunning = max(1, maxRunning)
        self.maxWaiting = max(0, maxWaiting)
    }

    /// - Returns: false if too many reads wait already, or of this source; this one then does not run.
    func run(for source: CommitSource = .server, _ read: @escaping @Sendable () async -> Void) -> Bool {
        let (isAccepted, mustStart) = state.withLock { state in
            if state.running < maxRunning {
                state.running += 1
                return (true, true)
            }
            guard hasRoom(for: source, state) else { return (false, false) }
            state.waiting.append(read, bytes: 0, of: source)
            return (true, false)
        }
        if mustStart {
            // A task of its own, because the callers are event loops; at most `maxRunning` exist, each ends when
            // nothing waits.
            Task {
                var next: (@Sendable () async -> Void)? = read
                while let read = next {
                    await read()
                    next = finishOne()
                }
            }
        }
        return isAccepted
    }

    private func hasRoom(for source: CommitSource, _ state: State) -> Bool {
        let own = source == .server ? 0 : state.waiting.waiting(of: source).count
        guard own < max(1, maxWaiting / 8) else { return false }
        // Who waits for little is not refused because of others.
        return state.waiting.count < maxWaiting
            || (source != .server && own < 4 && state.waiting.count / 2 < maxWaiting)
    }

    private func finishOne() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            if let next = state.waiting.take(maxCount: 1, maxBytes: 1).first { return next }
            state.running -= 1
            return nil
        }
    }
}
