// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import Synchronization
import Testing

/// A clock that stands still until it is moved.
final class ManualTime: TimeSource {
    private let elapsed = Mutex(Duration.zero)
    private let jumped = Mutex(Duration.zero)

    func now() -> Timestamp {
        Timestamp(rawValue: 1_800_000_000_000).advanced(by: uptime() + jumped.withLock { $0 })
    }

    /// Moves only the wall clock.
    func jump(by duration: Duration) { jumped.withLock { $0 += duration } }

    func uptime() -> Duration { elapsed.withLock { $0 } }

    func advance(by duration: Duration) { elapsed.withLock { $0 += duration } }
}

/// An attachment that records the calls that it gets.
final class RecordingAttachment: HermesCore.Attachment {
    let principal: Principal
    let order = AttachmentOrder.next()
    private let state = Mutex(
        (entries: [[InboxEntry]](), events: [EphemeralEvent](), ends: [AttachmentEnd](), isBehind: false)
    )

    let takesEvents: Bool
    /// Called after each event.
    let eventArrived = Hook<EphemeralEvent>()

    convenience init(_ principal: Principal) { self.init(principal, takesEvents: true) }

    init(_ principal: Principal, takesEvents: Bool) {
        self.principal = principal
        self.takesEvents = takesEvents
    }

    var calls: [[InboxEntry]] { state.withLock { $0.entries } }
    var events: [EphemeralEvent] { state.withLock { $0.events } }
    var ends: [AttachmentEnd] { state.withLock { $0.ends } }

    func renamed() {}

    func inboxAdvanced(_ entries: [InboxEntry]) { state.withLock { $0.entries.append(entries) } }

    var isBehind: Bool {
        get { state.withLock { $0.isBehind } }
        set { state.withLock { $0.isBehind = newValue } }
    }

    func ephemeralArrived(_ event: EphemeralEvent) -> Bool {
        state.withLock { $0.events.append(event) }
        eventArrived(event)
        return true
    }

    func ended(_ reason: AttachmentEnd) { state.withLock { $0.ends.append(reason) } }
}

/// A store in memory whose commits can be held up and made to fail.
final class FakeStore: MessageStore {
    let base = MemoryStore(settings: StoreSettings(historyPeriod: .seconds(3600)))
    private let state = Mutex((batches: [[WriteOperation]](), failures: 0))
    private let gate = Mutex<DispatchSemaphore?>(nil)
    private let entered = DispatchSemaphore(value: 0)
    private let heldReads = Mutex<Task<Void, Never>?>(nil)
    private let pages = Atomic(0)

    /// The committed operations, including failed ones.
    var batches: [[WriteOperation]] { state.withLock { $0.batches } }

    /// Makes the next `count` commits fail.
    func fail(_ count: Int) { state.withLock { $0.failures = count } }

    private let most = Mutex(Int.max)
    private let taking = Mutex<(@Sendable () -> Void)?>(nil)

    /// Calls `body` once, after the first operation of the next transaction.
    func whileTaking(_ body: @escaping @Sendable () -> Void) { taking.withLock { $0 = body } }

    /// From now on, a transaction has at most this number of operations.
    func cut(to count: Int) { most.withLock { $0 = count } }

    func commit(
        taking next: (_ isLong: Bool) -> WriteOperation?,
        now: Timestamp
    ) throws(HermesError) -> [WriteOutcome] {
        let most = most.withLock { $0 }
        var operations: [WriteOperation] = []
        while operations.count < most, let operation = next(false) {
            operations.append(operation)
            taking.withLock { taking in
                defer { taking = nil }
                return taking
            }?()
        }
        return try commit(operations, now: now)
    }

    /// From now on, each commit waits for a call of `letThrough`.
    func close() { gate.withLock { $0 = DispatchSemaphore(value: 0) } }

    func letThrough(_ count: Int = 1) {
        let gate = gate.withLock { $0 }
        for _ in 0..<count { gate?.signal() }
    }

    /// Waits until a commit has begun.
    func waitForCommit() async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                self.entered.wait()
                continuation.resume()
            }
        }
    }

    func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome] {
        let mustFail = state.withLock { state in
            state.batches.append(operations)
            defer { state.failures = max(0, state.failures - 1) }
            return state.failures > 0
        }
        entered.signal()
        gate.withLock { $0 }?.wait()
        if mustFail { throw HermesError(.storageUnavailable, "full") }
        return try base.commit(operations, now: now)
    }

    /// The number of pages that were read.
    var pageReads: Int { pages.load(ordering: .relaxed) }

    func entries(of user: UserID, after seq: UInt64, limit: Int) async throws(HermesError) -> InboxPage {
        pages.add(1, ordering: .relaxed)
        await waitToRead()
        return try await base.entries(of: user, after: seq, limit: limit)
    }

    /// Holds up all reads until the returned function is called.
    func holdReads() -> @Sendable () -> Void {
        let (held, release) = AsyncStream<Void>.makeStream()
        heldReads.withLock { $0 = Task { for await _ in held {} } }
        return { release.finish() }
    }

    private func waitToRead() async { await heldReads.withLock { $0 }?.value }

    func position(of user: UserID) async throws(HermesError) -> InboxPosition { try await base.position(of: user) }

    func history(_ query: HistoryQuery) async throws(HermesError) -> StoredHistory {
        await waitToRead()
        return try await base.history(
            HistoryQuery(
                of: query.conversation,
                after: query.after,
                before: query.before,
                limit: query.limit,
                maxBytes: query.maxBytes,
                unexpiredAt: query.time,
                maxPassed: min(query.maxPassed, maxPassed.withLock { $0 })
            )
        )
    }

    /// The largest number of messages that a read of history leaves out.
    let maxPassed = Mutex(Int.max)

    func conversations(
        of user: UserID,
        after place: ConversationPlace?,
        limit: Int
    ) async throws(HermesError) -> [ConversationSummary] {
        await waitToRead()
        return try await base.conversations(of: user, after: place, limit: limit)
    }

    func pushJobs() async throws(HermesError) -> [MessageID] { try await base.pushJobs() }

    func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
        try await base.purge(now: now, limit: limit)
    }

    func backup(to path: String) async throws(HermesError) -> Int? { 0 }
}

/// Collects the results that completions get, in the order in which they arrive.
final class Collector<Value: Sendable>: Sendable {
    private let stream: AsyncStream<Value>
    private let continuation: AsyncStream<Value>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func add(_ value: Value) { continuation.yield(value) }

    func next(_ count: Int) async -> [Value] {
        var values: [Value] = []
        for await value in stream {
            values.append(value)
            if values.count == count { break }
        }
        return values
    }
}

func user(_ number: Int32) throws -> UserID { try #require(UserID(rawValue: number)) }

func device(_ name: String) throws -> DeviceID { try #require(DeviceID(name)) }

func principal(_ number: Int32, _ deviceName: String = "phone") throws -> Principal {
    try Principal(user: user(number), nickName: NickName("user\(number)"), device: device(deviceName))
}

/// Creates the accounts from 1 to `count`, each with the device `phone`.
func addAccounts(_ count: Int32, to store: MemoryStore) async throws {
    for number in 1...count {
        let new = NewAccount(nickName: try NickName("user\(number)"), password: PasswordHash(phc: ""))
        let account = try await store.create(new, now: Timestamp(rawValue: 0))
        let description = DeviceDescription(id: try device("phone"))
        _ = try await store.open(description, of: account.id, token: nil, now: Timestamp(rawValue: 0))
    }
}

func code(_ body: () async throws -> Void) async -> HermesError.Code? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? HermesError)?.code
    }
}

extension Messenger {
    /// Creates a messenger over one store in memory.
    ///
    /// - Parameter messages: the store of the messages, if it is a different store, such as a ``FakeStore`` over
    ///   `store`.
    convenience init(
        _ store: MemoryStore,
        messages: (any MessageStore)? = nil,
        settings: MessageSettings = MessageSettings(),
        time: any TimeSource
    ) {
        self.init(
            accountStore: store,
            messageStore: messages ?? store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            messageSettings: settings,
            time: time
        )
    }
}
