// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Logging
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("Reads that share a snapshot", .inTurns, .timeLimit(.minutes(1)))
struct SharedReadsTests {
    private let directory: TemporaryDirectory
    private let clock = ManualClock()
    private let store: SQLiteStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SQLiteStore.open(
            directory: directory.path,
            durability: .normal,
            settings: StoreSettings(),
            bootID: RunRecord.bootID,
            clock: clock,
            logger: LogRecorder().logger(.error)
        )
    }

    private struct Expected: Error {}

    private final class Counter: Sendable {
        private let count = Mutex(0)

        var value: Int {
            get { count.withLock(\.self) }
            set { count.withLock { $0 = newValue } }
        }

        @discardableResult
        func increment() -> Int {
            count.withLock { count in
                count += 1
                return count
            }
        }
    }

    /// Lets a read wait on the reader's thread.
    private final class Gate: Sendable {
        private let isShut = Atomic(true)

        func open() { isShut.store(false, ordering: .relaxed) }

        func pass() {
            while isShut.load(ordering: .relaxed) { usleep(1_000) }
        }
    }

    private var reads: SharedReads { store.sharedReads }

    /// Requests reads. Returns when all of them wait.
    private func request<Value: Sendable>(
        _ count: Int,
        _ body: @escaping @Sendable (Int, Database) throws -> Value
    ) async throws -> [Task<Value, any Error>] {
        let reads = reads
        var tasks: [Task<Value, any Error>] = []
        for number in 0..<count {
            let before = reads.waitingCount
            tasks.append(Task { try await reads.read { try body(number, $0) } })
            while reads.waitingCount == before { try await Task.sleep(for: .milliseconds(1)) }
        }
        return tasks
    }

    /// Requests a read that occupies a reader until the gate opens.
    private func occupyReader(_ gate: Gate) async throws -> Task<Void, any Error> {
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let reads = reads
        let task = Task {
            defer { begin.finish() }
            try await reads.read { _ in
                begin.finish()
                gate.pass()
            }
        }
        for await _ in begun {}
        return task
    }

    private func createNumber() async throws {
        try await store.pool.write { db in
            try db.execute(sql: "CREATE TABLE number (value INTEGER)")
            try db.execute(sql: "INSERT INTO number VALUES (0)")
        }
    }

    private static func set(_ value: Int, in pool: DatabasePool) async throws {
        try await pool.write { db in try db.execute(sql: "UPDATE number SET value = ?", arguments: [value]) }
    }

    private static func number(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT value FROM number") ?? -1
    }

    @Test
    func `each read sees what was committed before it was requested`() async throws {
        try await createNumber()
        let committed = Counter()
        let (reads, pool) = (reads, store.pool)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for value in 1...300 {
                    try await Self.set(value, in: pool)
                    committed.value = value
                }
            }
            for _ in 0..<40 {
                group.addTask {
                    var found = 0
                    while found < 300 {
                        let least = committed.value
                        found = try await reads.read { try Self.number($0) }
                        #expect(found >= least)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    @Test
    func `reads that wait share a snapshot, and the error of one does not affect the others`() async throws {
        try await createNumber()
        let (first, commit) = (Gate(), Gate())
        defer {
            first.open()
            commit.open()
        }
        let occupied = try await occupyReader(first)
        let begun = Counter()
        // So few reads do not need the second reader.
        let tasks = try await request(3) { number, db -> Int in
            let found = try Self.number(db)
            // The first read waits for a commit, which the others do not see.
            if begun.increment() == 1 { commit.pass() }
            if number == 1 { throw Expected() }
            return found
        }
        #expect(begun.value == 0)
        first.open()
        while begun.value == 0 { try await Task.sleep(for: .milliseconds(1)) }
        try await Self.set(1, in: store.pool)
        commit.open()
        #expect(try await tasks[0].value == 0)
        await #expect(throws: Expected.self) { try await tasks[1].value }
        #expect(try await tasks[2].value == 0)
        try await occupied.value
        #expect(try await reads.read { try Self.number($0) } == 1)
    }

    @Test(arguments: [false, true])
    func `the rest of the reads gets a new snapshot`(isTransactionLost: Bool) async throws {
        try await createNumber()
        let (first, commit) = (Gate(), Gate())
        defer {
            first.open()
            commit.open()
        }
        let occupied = try await occupyReader(first)
        let begun = Counter()
        let clock = clock
        let tasks = try await request(3) { _, db -> Int in
            let found = try Self.number(db)
            guard begun.increment() == 1 else { return found }
            commit.pass()
            if isTransactionLost {
                try db.rollback()
                throw Expected()
            }
            clock.advance(by: TimeSlice.duration)
            return found
        }
        first.open()
        while begun.value == 0 { try await Task.sleep(for: .milliseconds(1)) }
        try await Self.set(1, in: store.pool)
        commit.open()
        if isTransactionLost {
            await #expect(throws: Expected.self) { try await tasks[0].value }
        } else {
            #expect(try await tasks[0].value == 0)
        }
        #expect(try await tasks[1].value == 1)
        #expect(try await tasks[2].value == 1)
        #expect(begun.value == 3)
        try await occupied.value
    }

    @Test
    func `many reads get a second reader, and each gets its result`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let running = Counter()
        let occupied = try await occupyReader(gate)
        let reads = reads
        let tasks = (0..<200).map { number in
            Task {
                try await reads.read { _ in
                    running.increment()
                    gate.pass()
                    return number
                }
            }
        }
        // The second reader runs its first read. The reads that it took with this one run later.
        while running.value == 0 || reads.waitingCount < 200 - 64 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(running.value == 1)
        gate.open()
        for (number, task) in tasks.enumerated() { #expect(try await task.value == number) }
        try await occupied.value
    }

    @Test
    func `each read gets one answer although the store is closed meanwhile`() async throws {
        let (reads, store) = (reads, store)
        let answers = Counter()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<2_000 {
                group.addTask {
                    _ = try? await reads.read { _ in number }
                    answers.increment()
                }
                if number == 1_000 {
                    group.addTask { #expect(throws: Never.self) { try store.close() } }
                }
            }
        }
        #expect(answers.value == 2_000 && reads.waitingCount == 0)
        await #expect(throws: (any Error).self) { try await reads.read { _ in 0 } }
    }

    @Test
    func `a closed store fails all reads`() async throws {
        try store.close()
        let reads = reads
        for number in 1...100 {
            await #expect(throws: (any Error).self) { try await reads.read { _ in number } }
        }
        let user = try #require(UserID(1))
        await #expect(throws: HermesError.self) { try await store.position(of: user) }
    }
}
