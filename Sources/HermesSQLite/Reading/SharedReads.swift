// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore
import Synchronization

/// Runs the short reads of many callers together, on one snapshot. If thousands of clients log in within a second,
/// getting a reader from the pool takes several times as much processor time as the queries.
///
/// State: a `Mutex` around the waiting reads; nothing is called while it is locked.
final class SharedReads: Sendable {
    /// A read that waits. It is called once, with the snapshot or with the error that prevented the snapshot. It passes
    /// the result to its caller.
    private typealias Read = @Sendable (Result<Database, any Error>) -> Void

    private struct State: Sendable {
        var waiting: [Read] = []
        /// The number of readers that run reads, or are about to.
        var readers = 0
    }

    /// The largest number of readers at once.
    static let maxReaders = 2
    /// With this many waiting reads, a second reader starts.
    private static let readsOfOneReader = 4
    /// The largest number of reads that one reader takes at once. Another reader can run the rest.
    private static let maxTogether = 64
    /// The number of snapshots after which a reader goes back to the pool, which may be waiting for it to close.
    private static let maxSnapshots = 16

    private let pool: DatabasePool
    private let clock: any TimeSource
    private let state = Mutex(State())

    init(_ pool: DatabasePool, clock: any TimeSource) {
        self.pool = pool
        self.clock = clock
    }

    /// The number of reads that wait.
    var waitingCount: Int { state.withLock(\.waiting.count) }

    /// Runs queries on a snapshot of the database that is not older than this call. The queries must be short, because
    /// other callers wait for them. After this function has begun to wait, the caller's cancellation has no effect.
    func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try Task.checkCancellation()
        return try await withCheckedThrowingContinuation { continuation in
            let startsReader = state.withLock { state in
                state.waiting.append { database in
                    continuation.resume(with: Result { try body(database.get()) })
                }
                let needed = state.waiting.count < Self.readsOfOneReader ? 1 : Self.maxReaders
                guard state.readers < needed else { return false }
                state.readers += 1
                return true
            }
            if startsReader { startReader() }
        }
    }

    private func startReader() {
        pool.asyncUnsafeRead { [self] database in
            switch database {
            case .success(let db):
                for _ in 0..<Self.maxSnapshots {
                    guard let reads = next() else { return }
                    run(reads, on: db)
                }
                startReader()
            case .failure(let error):
                guard isLastReader() else { return }
                while let reads = next() { for read in reads { read(.failure(error)) } }
            }
        }
    }

    /// Whether there is no other reader that runs the waiting reads. If there is one, the caller does not count as a
    /// reader any more.
    private func isLastReader() -> Bool {
        state.withLock { state in
            guard state.readers > 1 else { return true }
            state.readers -= 1
            return false
        }
    }

    /// Returns the next reads that run together; nil if the reader must end, because no reads wait.
    private func next() -> [Read]? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.readers -= 1
                return nil
            }
            let reads = Array(state.waiting.prefix(Self.maxTogether))
            state.waiting.removeFirst(reads.count)
            return reads
        }
    }

    /// Runs reads on a new snapshot, which contains all that was committed before the reads were requested. If the
    /// reads take long, the remaining ones wait for the next snapshot, because an old snapshot keeps the log from being
    /// written back.
    private func run(_ reads: [Read], on db: Database) {
        var done = 0
        do {
            let slice = TimeSlice(clock, TimeSlice.duration)
            try db.inTransaction(.deferred) {
                repeat {
                    reads[done](.success(db))
                    done += 1
                    // Some errors end the transaction, and with it the snapshot.
                } while done < reads.count && !slice.isSpent && db.isInsideTransaction
                return .commit
            }
        } catch {
            // If reads have run, they have their results, and only the end of the transaction has failed.
            if done == 0 {
                for read in reads { read(.failure(error)) }
                return
            }
        }
        guard done < reads.count else { return }
        state.withLock { $0.waiting.insert(contentsOf: reads[done...], at: 0) }
    }
}
