// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// An implementation of all stores in memory. It is the executable specification of the ports. Tests and servers
/// without a database use it.
///
/// State: one `Mutex` around ``MemoryState``; every call is one critical section. No data outlives the process.
package final class MemoryStore: Sendable {
    private final class Record: Sendable {
        let state: Mutex<MemoryState>

        init(_ state: MemoryState) { self.state = Mutex(state) }
    }

    private let record: Record
    /// The process that uses this object; nil if the store is not used by several processes.
    private let node: NodeIdentity?

    /// Creates an empty store with a new epoch.
    package init(settings: StoreSettings = StoreSettings()) {
        record = Record(MemoryState(epoch: UInt64.random(in: 1...UInt64(Int64.max)), settings: settings))
        node = nil
    }

    private init(_ record: Record, _ node: NodeIdentity) {
        self.record = record
        self.node = node
    }

    /// Returns the same store for a process that has joined (``PlaceStore/join(_:)``). After the process is removed,
    /// its writes are refused.
    package func fenced(for node: NodeIdentity) -> MemoryStore { MemoryStore(record, node) }

    func read<Value: Sendable>(
        _ body: (MemoryState) throws(HermesError) -> Value
    ) throws(HermesError) -> Value {
        try run { (state) throws(HermesError) in try body(state) }
    }

    /// Runs a write, unless this process was removed. After a removal, other processes already do its work.
    func write<Value: Sendable>(
        _ body: (inout MemoryState) throws(HermesError) -> Value
    ) throws(HermesError) -> Value {
        try run { (state) throws(HermesError) in
            if let node, !state.places.isIn(node) { throw StoreRefusals.removedNode }
            return try body(&state)
        }
    }

    func run<Value: Sendable>(
        _ body: (inout MemoryState) throws(HermesError) -> Value
    ) throws(HermesError) -> Value {
        let result = record.state.withLock { state -> Result<Value, HermesError> in
            do throws(HermesError) { return .success(try body(&state)) } catch { return .failure(error) }
        }
        return try result.get()
    }
}

extension MemoryStore: MessageStore {
    package func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome] {
        try write { (state) throws(HermesError) in try state.commit(operations, now: now) }
    }

    package func entries(of user: UserID, after seq: UInt64, limit: Int) async throws(HermesError) -> InboxPage {
        try read { (state) throws(HermesError) in state.page(of: user, after: seq, limit: limit) }
    }

    package func position(of user: UserID) async throws(HermesError) -> InboxPosition {
        try read { (state) throws(HermesError) in state.position(of: user) }
    }

    package func history(_ query: HistoryQuery) async throws(HermesError) -> StoredHistory {
        try read { (state) throws(HermesError) in state.history(query) }
    }

    package func conversations(
        of user: UserID,
        after place: ConversationPlace?,
        limit: Int
    ) async throws(HermesError) -> [ConversationSummary] {
        try read { (state) throws(HermesError) in state.conversations(of: user, after: place, limit: limit) }
    }

    package func pushJobs() async throws(HermesError) -> [MessageID] {
        try read { (state) throws(HermesError) in state.pushJobs.map(\.job.push.id) }
    }

    package func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
        try write { (state) throws(HermesError) in state.purge(now: now, limit: limit) }
    }

    package func record(_ jump: ClockJump) async throws(HermesError) {
        try write { (state) throws(HermesError) in state.clockJumps.add(jump) }
    }

    package func takeBack(_ setback: ClockSetback) async throws(HermesError) {
        try write { (state) throws(HermesError) in state.takeBack(setback) }
    }

    package func backup(to path: String) async throws(HermesError) -> Int? {
        throw HermesError(.unsupported, "The memory store has no file to copy. Use the SQLite store for backups.")
    }
}

extension MemoryStore: AccountStore {
    package func create(_ account: NewAccount, now: Timestamp) async throws(HermesError) -> Account {
        try write { (state) throws(HermesError) in try state.create(account, now: now) }
    }

    package func find(_ key: AccountKey) async throws(HermesError) -> StoredAccount? {
        try read { (state) throws(HermesError) in state.find(key) }
    }

    package func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account] {
        try read { (state) throws(HermesError) in state.accounts(after: id, limit: limit) }
    }

    package func update(_ id: UserID, _ change: AccountChange) async throws(HermesError) -> Account {
        try write { (state) throws(HermesError) in try state.update(id, change) }
    }

    package func keptNames() async throws(HermesError) -> [KeptName] {
        try read { (state) throws(HermesError) in state.keptNames.map { KeptName(key: $0.key, user: $0.value) } }
    }

    package func keeps(_ name: KeptName) async throws(HermesError) -> Bool {
        try read { (state) throws(HermesError) in state.keptNames[name.key] == name.user }
    }

    package func free(_ name: KeptName) async throws(HermesError) {
        try write { (state) throws(HermesError) in
            if state.keptNames[name.key] == name.user { state.keptNames[name.key] = nil }
        }
    }

    package func open(_ opening: DeviceOpening, now: Timestamp) async throws(HermesError) -> Device {
        try write { (state) throws(HermesError) in try state.open(opening, now: now) }
    }

    package func standing(
        _ key: LoginKey,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> LoginStanding? {
        try read { (state) throws(HermesError) in state.standing(key, device: device, address: address) }
    }

    package func note(_ traces: [LoginTrace]) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.note(traces) }
    }

    package func devices(of user: UserID) async throws(HermesError) -> [Device] {
        try read { (state) throws(HermesError) in state.records[user]?.devices ?? [] }
    }

    package func tokens(of user: UserID) async throws(HermesError) -> [DeviceToken] {
        try read { (state) throws(HermesError) in state.tokens(of: user) }
    }

    package func owner(of token: TokenHash) async throws(HermesError) -> TokenOwner? {
        try read { (state) throws(HermesError) in state.tokens[token]?.owner }
    }

    package func revoke(_ scope: RevocationScope, now: Timestamp) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.revoke(scope) }
    }
}

extension MemoryStore: SocialStore {
    package func blockers(of user: UserID, among users: [UserID]) async throws(HermesError) -> Set<UserID> {
        try read { (state) throws(HermesError) in state.blockers(of: user, among: users) }
    }

    package func contacts(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact] {
        try read { (state) throws(HermesError) in state.contacts(of: user, after: after, limit: limit) }
    }

    package func group(_ id: GroupID) async throws(HermesError) -> Group? {
        try read { (state) throws(HermesError) in state.groups[id] }
    }

    package func groups(of user: UserID, after: GroupID?, limit: Int) async throws(HermesError) -> [GroupSummary] {
        try read { (state) throws(HermesError) in state.groups(of: user, after: after, limit: limit) }
    }

    package func groups(
        after: GroupID?,
        named key: String,
        limit: Int
    ) async throws(HermesError) -> (found: [GroupSummary], next: GroupID?) {
        try read { (state) throws(HermesError) in state.groups(after: after, named: key, limit: limit) }
    }

    package func readableAfter(_ user: UserID, in group: GroupID) async throws(HermesError) -> UInt64? {
        try read { (state) throws(HermesError) in state.groups[group]?.readableAfter(user) }
    }

    package func names(of users: [UserID]) async throws(HermesError) -> [UserID: String] {
        try read { (state) throws(HermesError) in
            var names: [UserID: String] = [:]
            for user in users { names[user] = state.records[user]?.stored.account.nickName.rawValue }
            return names
        }
    }
}

extension MemoryStore: SessionStore {
    package func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome] {
        try write { (state) throws(HermesError) in try state.commit(operations, now: now) }
    }

    package func sessions() async throws(HermesError) -> [StoredSession] {
        try read { (state) throws(HermesError) in state.storedSessions() }
    }

    package func queued(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try read { (state) throws(HermesError) in
            state.queued(of: session, after: seq, limit: limit, maxBytes: maxBytes)
        }
    }

    package func shared(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try read { (state) throws(HermesError) in
            state.queued(of: session, after: seq, limit: limit, maxBytes: maxBytes, isSharedOnly: true)
        }
    }

    package func retained(of topics: [TopicName]) async throws(HermesError) -> [StoredPublication] {
        try read { (state) throws(HermesError) in topics.compactMap { state.retained[$0] } }
    }

    package func retained(
        after topic: TopicName?,
        limit: Int
    ) async throws(HermesError) -> (publications: [StoredPublication], next: TopicName?) {
        try read { (state) throws(HermesError) in
            func isBefore(_ one: TopicName, _ other: TopicName) -> Bool {
                one.rawValue.utf8.lexicographicallyPrecedes(other.rawValue.utf8)
            }
            // This finds the lowest topics without sorting all topics.
            var page: [StoredPublication] = []
            var greatest: TopicName?
            var count = 0
            for one in state.retained.values where topic.map({ isBefore($0, one.topic) }) ?? true {
                count += 1
                guard greatest.map({ isBefore(one.topic, $0) }) ?? true else { continue }
                page.append(one)
                guard page.count >= 2 * max(1, limit) else { continue }
                page.sort { isBefore($0.topic, $1.topic) }
                page.removeLast(page.count - max(1, limit))
                greatest = page.last?.topic
            }
            page.sort { isBefore($0.topic, $1.topic) }
            page.removeLast(max(0, page.count - limit))
            return (page, count > page.count ? page.last?.topic : nil)
        }
    }

    package func purgeSessions(
        now: Timestamp,
        limit: Int,
        sentUpTo: @escaping @Sendable (DurableSessionID) -> UInt64
    ) async throws(HermesError) -> SessionPurge {
        try write { (state) throws(HermesError) in state.purgeSessions(now: now, limit: limit, sentUpTo) }
    }

    package var inboxes: InboxLedger { record.state.withLock { $0.inboxes } }

    package var queues: QueueBudget { record.state.withLock { $0.queues } }
}
