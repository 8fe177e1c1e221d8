// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// The messages that the app has sent and that the server has not committed yet. The client sends them as soon as it
/// can, if necessary in the next run of the app.
///
/// ```swift
/// for await entry in client.outbox.changes {
///     if case .failed(let error) = entry.status { print("\(entry.id) was refused: \(error)") }
/// }
/// ```
///
/// The actor runs on the event loop of the client's connection.
public actor Outbox {
    private let executor: LoopExecutor
    /// The executor of the client's event loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let driver: ConnectionDriver<DelimitedLink>
    private let store: any LocalStore
    private let journal: InboxJournal?
    private var queue: OutboxQueue
    private var sent: SentMessages
    /// The account of the last login, in this run or an earlier one; nil if there was none.
    private var account: InboxJournal.Account?
    /// The account whose messages the app sends; nil before the first login, and while another account may be logging
    /// in.
    private var uid: UInt32?
    private var observers: [UInt64: AsyncStream<OutboxEntry>.Continuation] = [:]
    private var lastObserver: UInt64 = 0
    /// The receipts that the app may wait for, by the numbers of their messages.
    private var promises: [UInt64: ReceiptPromise] = [:]
    private var timer: Scheduled<Void>?
    /// The keys of sent and discarded messages whose removal from the store has not succeeded yet. The write that
    /// follows the next commit of a message repeats the removals.
    private var owed: Set<String> = []
    /// The repeated calls to ``send(_:)`` that wait for the first write of their message, by the message's number.
    private var writes: [UInt64: [CheckedContinuation<Void, any Error>]] = [:]

    /// The number of unread changes that a stream buffers. Beyond this number, the stream drops the oldest changes,
    /// and the observer has to read ``entries``.
    private static let maxUnseenChanges = 4096
    /// The time, including the time for reconnects, after which a message without an answer counts as not sent. The
    /// message is then sent again.
    static let sendTimeout = Duration.seconds(300)

    init(
        driver: ConnectionDriver<DelimitedLink>,
        store: any LocalStore,
        records: [LocalRecord],
        journal: InboxJournal?,
        limits: OutboxLimits
    ) {
        self.driver = driver
        self.store = store
        self.journal = journal
        account = journal?.account
        uid = account?.uid
        sent = SentMessages(records: records)
        executor = LoopExecutor(driver.eventLoop)
        queue = OutboxQueue(limits: limits, items: records.compactMap { OutboxItem($0) })
    }

    deinit {
        for observer in observers.values { observer.finish() }
        for promise in promises.values { promise.interrupt(HermesClientError(.closed, "the client is gone")) }
    }

    /// Adds a message, and returns after it is stored. A repeated call for the same message has the same outcome as
    /// the first call.
    func send(_ send: Hermes_V1_Send) async throws -> SentMessage {
        guard let uid else {
            throw HermesClientError(.closed, "log in first: it is not known which account sends the message")
        }
        let (entry, isNew) = try queue.added(send, uid: uid, date: WallClock.milliseconds())
        let number = entry.item.number
        let promise = promises[number] ?? ReceiptPromise()
        let sent = SentMessage(id: send.clientID, promise: promise, outbox: self)
        if case .failed(let error) = entry.phase {
            promise.resolve(.failure(error))
            return sent
        }
        promises[number] = promise
        guard isNew else {
            try await waitForWrite(number)
            return sent
        }
        try await storeNew(entry.item)
        tell(entry.item.entry(.queued))
        pump()
        return sent
    }

    /// Stores a new message. If this fails, the message leaves the queue.
    private func storeNew(_ item: OutboxItem) async throws {
        let number = item.number
        writes[number] = []
        do {
            let record = try item.record()
            expect(item.send.clientID)
            // The store writes in the order of the calls, and the event loop keeps this order for the results.
            try await store.write([record], durably: true)
        } catch {
            queue.removed(number)
            let failure = error as? HermesClientError ?? HermesClientError(.storeFailed, explain(error), cause: error)
            promises.removeValue(forKey: number)?.resolve(.failure(failure))
            expectNoMore(item.send.clientID)
            endWrite(number, .failure(error))
            // A store may report the write of a later message first. That message has waited for this one.
            pump()
            throw error
        }
        queue.stored(number)
        endWrite(number, .success(()))
    }

    /// Waits for the first write of a message if it is under way.
    private func waitForWrite(_ number: UInt64) async throws {
        guard writes[number] != nil else { return }
        try await withCheckedThrowingContinuation { writes[number]?.append($0) }
    }

    private func endWrite(_ number: UInt64, _ result: Result<Void, any Error>) {
        for waiter in writes.removeValue(forKey: number) ?? [] { waiter.resume(with: result) }
    }

    /// Waits for a receipt.
    func receipt(of promise: ReceiptPromise) async throws -> Receipt {
        if !promise.isResolved { try requireStarted() }
        // Announce the waiter before anything else runs on the event loop, because the client could stop before `wait`
        // begins.
        let waiter = promise.announce()
        return try await promise.wait(as: waiter)
    }

    /// The unsent and the failed messages, in the order of sending.
    public var entries: [OutboxEntry] { queue.all.map { $0.item.entry($0.status) } }

    /// The changes of entries from now on. Each access returns a new stream, which ends when the client next stops or
    /// is deinitialized.
    public nonisolated var changes: AsyncStream<OutboxEntry> {
        AsyncStream(bufferingPolicy: .bufferingNewest(Self.maxUnseenChanges)) { continuation in
            onLoop { outbox in
                outbox.lastObserver &+= 1
                let id = outbox.lastObserver
                outbox.observers[id] = continuation
                continuation.onTermination = { [weak outbox] _ in outbox?.onLoop { $0.observers[id] = nil } }
            }
        }
    }

    /// Handles the stop of the client: there will be no connection before the next login.
    nonisolated func clientStopped() {
        onLoop { outbox in
            guard outbox.driver.assumeIsolated({ $0.isStopped }) else { return }
            outbox.queue.halted()
            outbox.interruptReceipts()
            for observer in outbox.observers.values { observer.finish() }
            outbox.observers = [:]
        }
    }

    /// Sends a failed message again.
    ///
    /// - Returns: whether a message with this client id had failed.
    /// - Throws: HermesClientError `.storeFull` or `.storeFailed`.
    @discardableResult
    public func retry(clientID: String) async throws -> Bool {
        let before = queue.entry(clientID: clientID)
        guard let entry = queue.retried(clientID: clientID) else { return false }
        do {
            try await store.write([entry.item.record()], durably: true)
        } catch {
            queue.failedAgain(entry.item.number, before?.item.failure)
            if let failure = before?.item.failure {
                promises.removeValue(forKey: entry.item.number)?.resolve(.failure(failure))
            }
            // The messages behind this one have waited for the write.
            pump()
            throw error
        }
        queue.stored(entry.item.number)
        tell(entry.item.entry(.queued))
        pump()
        return true
    }

    /// Discards a message unless it is being sent.
    ///
    /// - Returns: whether there was such a message. If the connection was lost before the receipt of a queued message
    ///   arrived, the server may have committed the message nevertheless.
    /// - Throws: HermesClientError `.storeFailed` if the change cannot be stored. The message may then reappear after a
    ///   restart of the app.
    @discardableResult
    public func discard(clientID: String) async throws -> Bool {
        guard let entry = queue.entry(clientID: clientID) else { return false }
        switch entry.phase {
        case .storing, .sending: return false
        case .queued, .resting, .failed: break
        }
        queue.removed(entry.item.number)
        let discarded = HermesClientError(.discarded, "the app discarded the message before it was sent")
        promises.removeValue(forKey: entry.item.number)?.resolve(.failure(discarded))
        expectNoMore(clientID)
        // Even if the write fails, the message is not sent in this run, and the messages behind it do not wait for it.
        defer {
            tell(entry.item.entry(.discarded))
            pump()
        }
        do {
            try await store.write([LocalChange(key: entry.item.key, value: nil)], durably: true)
        } catch {
            owed.insert(entry.item.key)
            throw error
        }
        return true
    }

    /// Starts to send the messages of the account. Called from the client's event loop at each login.
    nonisolated func loggedIn(_ session: Session) {
        onLoop { outbox in
            let account = InboxJournal.Account(session)
            (outbox.account, outbox.uid) = (account, account.uid)
            outbox.queue.started(uid: account.uid)
            outbox.pump()
        }
    }

    /// Stops sending until the next login has shown which account the credential belongs to. Until that login, the
    /// outbox accepts messages only if the credential seems to belong to the last account. Otherwise the account of
    /// the messages would be unknown.
    func halt(for credential: Credential) {
        queue.halted()
        uid = account.flatMap { $0.mayOwn(credential) ? $0.uid : nil }
        interruptReceipts()
    }

    private func requireStarted() throws { try driver.assumeIsolated { try $0.requireStarted() } }

    /// Ends the waits for receipts, because no receipt can arrive before the next login.
    private func interruptReceipts() {
        var reason: any Error = HermesClientError(
            .closed,
            "another account is logging in; the message waits until its own account logs in"
        )
        do { try requireStarted() } catch { reason = error }
        for promise in promises.values { promise.interrupt(reason) }
    }

    /// The client ids of all messages that may arrive as inbox entries.
    var clientIDs: Set<ExactText> { queue.clientIDs.union(sent.clientIDs) }
}

// MARK: - Sending
extension Outbox {
    /// Hands the next messages to the driver, where they wait for a connection.
    private func pump() {
        guard isStarted else { return queue.halted() }
        for entry in queue.next(now: driver.eventLoop.now) {
            let number = entry.item.number
            tell(entry.item.entry(.sending))
            let waiter = RequestWaiter<DelimitedLink.Answer> { result in
                // Handle the answer later, because the driver is in the middle of a call.
                self.onLoop { $0.answered(number, result) }
            }
            driver.assumeIsolated { driver in
                _ = driver.submit(.send(entry.item.send), replay: .always, timeout: Self.sendTimeout, waiter: waiter)
            }
        }
        schedule()
    }

    private var isStarted: Bool { driver.assumeIsolated { (try? $0.requireStarted()) != nil } }

    private func answered(_ number: UInt64, _ result: Result<DelimitedLink.Answer, any Error>) {
        defer { pump() }
        switch result {
        case .success(.result(let result)):
            guard case .receipt(let receipt) = result.value else {
                let failure = HermesClientError(.protocolViolation, "the server's answer holds no receipt")
                return refused(number, failure)
            }
            committed(number, receipt)
        case .success(.pong):
            refused(number, HermesClientError(.protocolViolation, "the server answered a message with a pong"))
        case .failure(let error):
            refused(number, error as? HermesClientError ?? HermesClientError(.connectionLost, explain(error)))
        }
    }

    private func committed(_ number: UInt64, _ receipt: Hermes_V1_Receipt) {
        guard let entry = queue.removed(number) else { return }
        var changes = [LocalChange(key: entry.item.key, value: nil)]
        if receipt.inboxSeq > 0 { changes += noteSent(entry.item, seq: receipt.inboxSeq) }
        // If this removal is lost, the client sends the message again. For a day, the server recognizes the repetition.
        owed.insert(entry.item.key)
        writeLater(changes)
        expectNoMore(entry.item.send.clientID)
        let committed = Receipt(receipt)
        promises.removeValue(forKey: number)?.resolve(.success(committed))
        tell(entry.item.entry(.sent(committed)))
    }

    private func refused(_ number: UInt64, _ failure: HermesClientError) {
        guard isStarted else {
            // The client was closed or kicked. This does not mean that the message was refused.
            queue.interrupted(number)
            queue.halted()
            return
        }
        guard let entry = queue.refused(number, failure, now: driver.eventLoop.now) else { return }
        if case .failed(let error) = entry.phase {
            promises.removeValue(forKey: number)?.resolve(.failure(error))
            // If this change is lost, the message is sent again, and the server refuses it once more.
            if let record = try? entry.item.record() { store.write([record], durably: false) { _ in } }
        }
        tell(entry.item.entry(entry.status))
    }

    /// Notes the seq of a committed message, and returns the changes to store.
    private func noteSent(_ item: OutboxItem, seq: UInt64) -> [LocalChange] {
        let (owner, current) = driver.assumeIsolated { driver in
            (driver.link.owner, Cursor(epoch: driver.link.inbox.epoch, seq: driver.link.inbox.taken))
        }
        // If another account has logged in meanwhile, the message's inbox and the app's place in this inbox are
        // unknown.
        let epoch = owner == item.uid ? current.epoch : 0
        let inbox = SentMessages.Inbox(uid: item.uid, epoch: epoch)
        let place = epoch == 0 ? 0 : journal.map { $0.place(in: inbox) } ?? current.seq
        // The receipt may already have moved the place past the message. The message is forgotten only when a later
        // message is committed, because the store may not have recorded that place yet.
        return sent.sent(item.send.clientID, seq: seq, in: inbox, place: min(place, seq - 1))
    }

    /// Writes changes, together with the removals that have not succeeded yet.
    private func writeLater(_ changes: [LocalChange]) {
        let written = owed
        let removals = written.filter { key in !changes.contains { $0.key == key } }
        store.write(removals.map { LocalChange(key: $0, value: nil) } + changes, durably: false) { result in
            guard case .success = result else { return }
            self.onLoop { $0.owed.subtract(written) }
        }
    }

    private func schedule() {
        timer?.cancel()
        timer = nil
        guard let deadline = queue.nextDeadline else { return }
        timer = driver.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
            self?.assumeIsolated { $0.pump() }
        }
    }

    /// Tells the link that an inbox entry with this client id is this device's own message.
    private func expect(_ clientID: String) {
        driver.assumeIsolated { _ = $0.link.outgoing.insert(ExactText(clientID)) }
    }

    /// Tells the link that no inbox entry with this client id is expected any more.
    private func expectNoMore(_ clientID: String) {
        driver.assumeIsolated { _ = $0.link.outgoing.remove(ExactText(clientID)) }
    }

    private func tell(_ entry: OutboxEntry) {
        for observer in observers.values { observer.yield(entry) }
    }

    private nonisolated func onLoop(_ body: @escaping @Sendable (isolated Outbox) -> Void) {
        executor.eventLoop.execute { self.assumeIsolated { body($0) } }
    }
}
