// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

/// A connection that records the calls that it gets.
final class RecordingConnection: DurableAttachment {
    private let state = Mutex(
        (replaced: 0, batches: [[QueuedPublication]](), ends: [AttachmentEnd](), head: UInt64(0), sentUpTo: UInt64(0))
    )
    let replacements = Collector<Void>()
    let deliveries = Collector<[QueuedPublication]>()
    let reader: (any TopicReader)?

    let source: CommitSource
    let userName: String?
    let shown: ShownProof
    let order = AttachmentOrder.next()

    init(
        reader: (any TopicReader)? = nil,
        source: CommitSource = .server,
        userName: String? = nil,
        shown: ShownProof = .other
    ) {
        self.reader = reader
        self.source = source
        self.userName = userName
        self.shown = shown
    }

    var replacedCount: Int { state.withLock { $0.replaced } }
    var batches: [[QueuedPublication]] { state.withLock { $0.batches } }

    func replaced() {
        state.withLock { $0.replaced += 1 }
        replacements.add(())
    }

    var ends: [AttachmentEnd] { state.withLock { $0.ends } }

    func ended(_ reason: AttachmentEnd) { state.withLock { $0.ends.append(reason) } }

    func advanced(to head: UInt64) { state.withLock { $0.head = max($0.head, head) } }

    /// The newest seq that other nodes have queued, according to the last call.
    var head: UInt64 { state.withLock { $0.head } }

    var sentUpTo: UInt64 {
        get { state.withLock { $0.sentUpTo } }
        set { state.withLock { $0.sentUpTo = newValue } }
    }

    func committed(_ publications: [QueuedPublication]) {
        state.withLock { $0.batches.append(publications) }
        deliveries.add(publications)
    }
}

/// A store in memory whose commits can be held up and made to fail.
final class FakeSessionStore: SessionStore {
    let base: MemoryStore
    private let failures = Mutex((after: 0, count: 0))
    private let retainedFails = Mutex(false)
    private let gate = Mutex<DispatchSemaphore?>(nil)
    private let heldUp = Atomic(0)
    private let log = Mutex<[[SessionOperation]]>([])

    init(_ settings: StoreSettings = StoreSettings()) { base = MemoryStore(settings: settings) }

    var commits: [[SessionOperation]] { log.withLock { $0 } }

    /// Waits until the store was asked to commit such an operation.
    func untilCommitted(_ isIt: (SessionOperation) -> Bool) async {
        while !commits.joined().contains(where: isIt) { await Task.yield() }
    }

    /// Makes the next `count` commits fail, after `first` commits that succeed.
    func fail(_ count: Int, after first: Int = 0) { failures.withLock { $0 = (first, count) } }

    /// Whether the store fails to read retained publications.
    var failsToReadRetained: Bool {
        get { retainedFails.withLock { $0 } }
        set { retainedFails.withLock { $0 = newValue } }
    }

    private func checkRetained() throws(HermesError) {
        if failsToReadRetained { throw HermesError(.storageUnavailable, "broken") }
    }

    /// From now on, each commit waits for a call of ``letThrough(_:)``.
    func close() { gate.withLock { $0 = DispatchSemaphore(value: 0) } }

    func letThrough(_ count: Int = 1) {
        let gate = gate.withLock { $0 }
        for _ in 0..<count { gate?.signal() }
    }

    /// Waits until a commit waits for a call of ``letThrough(_:)``.
    func untilHeldUp() async { while heldUp.load(ordering: .relaxed) == 0 { await Task.yield() } }

    var queues: QueueBudget { base.queues }

    private let most = Mutex(Int.max)

    /// From now on, a transaction has at most this number of operations.
    func cut(to count: Int) { most.withLock { $0 = count } }

    func commit(
        taking next: (_ isLong: Bool) -> SessionOperation?,
        now: Timestamp
    ) throws(HermesError) -> [SessionOutcome] {
        let most = most.withLock { $0 }
        var operations: [SessionOperation] = []
        while operations.count < most, let operation = next(false) { operations.append(operation) }
        return try commit(operations, now: now)
    }

    func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome] {
        if let gate = gate.withLock({ $0 }) {
            heldUp.add(1, ordering: .relaxed)
            gate.wait()
            heldUp.subtract(1, ordering: .relaxed)
        }
        log.withLock { $0.append(operations) }
        let mustFail = failures.withLock { failures in
            if failures.after > 0 {
                failures.after -= 1
                return false
            }
            defer { failures.count = max(0, failures.count - 1) }
            return failures.count > 0
        }
        if mustFail { throw HermesError(.storageUnavailable, "full") }
        return try base.commit(operations, now: now)
    }

    func sessions() async throws(HermesError) -> [StoredSession] { try await base.sessions() }

    func queued(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try await base.queued(of: session, after: seq, limit: limit, maxBytes: maxBytes)
    }

    func shared(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try await base.shared(of: session, after: seq, limit: limit, maxBytes: maxBytes)
    }

    func retained(of topics: [TopicName]) async throws(HermesError) -> [StoredPublication] {
        try checkRetained()
        return try await base.retained(of: topics)
    }

    func retained(
        after topic: TopicName?,
        limit: Int
    ) async throws(HermesError) -> (publications: [StoredPublication], next: TopicName?) {
        try checkRetained()
        return try await base.retained(after: topic, limit: limit)
    }

    func purgeSessions(
        now: Timestamp,
        limit: Int,
        sentUpTo: @escaping @Sendable (DurableSessionID) -> UInt64
    ) async throws(HermesError) -> SessionPurge {
        try await base.purgeSessions(now: now, limit: limit, sentUpTo: sentUpTo)
    }
}

extension DurableSessions {
    func attached(
        _ clientID: String,
        clean: Bool = false,
        expiry: Duration? = .seconds(60),
        _ connection: RecordingConnection = RecordingConnection()
    ) async throws -> (opening: DurableOpening, connection: RecordingConnection) {
        let key = SessionKey(owner: .subject("ann"), clientID: clientID)
        let opening = try await asking { completion in
            self.attach(key, clean: clean, expiry: expiry, attachment: connection, completion: completion)
        }
        return (opening, connection)
    }

    func subscribed(_ id: DurableSessionID, _ filter: String, _ options: SubscriptionOptions) async throws {
        try await asking { completion in
            self.subscribe(id, [DurableSubscription(filter: filter, options: options)]) { completion($0.result) }
        }
    }

    /// Publishes to all subscribers.
    func published(
        _ text: String,
        to topic: String,
        qos: QoS = .atLeastOnce,
        retain: Bool = false,
        from publisher: DurableSessionID? = nil,
        receivedID: UInt16? = nil,
        details: PublicationDetails? = nil
    ) async throws {
        let topic = try #require(TopicName(topic))
        let publication = StoredPublication(
            topic: topic,
            payload: ByteBuffer(string: text),
            qos: qos,
            retain: retain,
            details: details,
            publishedAt: time.now()
        )
        let targets = targets(of: topic)
        try await asking { completion in
            self.publish(
                publication,
                targets: targets,
                from: publisher,
                receivedID: receivedID,
                retains: retain,
                completion: completion
            )
        }
    }

    func page(of id: DurableSessionID, after seq: UInt64 = 0, limit: Int = 100) async throws -> DurablePage {
        try await asking { self.queued(of: id, after: seq, limit: limit, completion: $0) }
    }

    /// Returns "seq:payload" for all waiting publications.
    func waiting(_ id: DurableSessionID, after seq: UInt64 = 0) async throws -> [String] {
        try await page(of: id, after: seq).publications.map(\.summary)
    }
}

extension QueuedPublication {
    var summary: String { "\(seq):\(String(buffer: publication.payload))" }
}

/// Awaits a completion.
func asking<Value: Sendable>(
    _ call: (@escaping @Sendable (Result<Value, HermesError>) -> Void) -> Void
) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        call { continuation.resume(with: $0.mapError { $0 as any Error }) }
    }
}
