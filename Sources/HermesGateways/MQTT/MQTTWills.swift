// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics
import NIOCore
import Synchronization

/// The wills of clients that are gone. They wait until their delay has passed (3.1.3.2.2), or until the store has
/// room. With several nodes, each will is also in the record, which is the content of the store that the nodes share.
/// The node that takes a will from the record publishes it (``WillLedger``).
///
/// A waiting will counts towards the share of its owner (``OwnerShares``), so that the wills of one owner do not use up
/// the room of other owners.
///
/// State: a `Mutex` around a dictionary. No other code is called while it is held.
final class MQTTWills: Sendable {
    private struct Waiting: Sendable {
        let will: PendingWill
        let loop: LoopContext
    }

    private struct State: Sendable {
        var waiting = DelayedValues<SessionKey, Waiting>()
        /// Whether a loop regularly checks for wills that are due.
        var isTicking = false
        /// The owners' shares of the waiting wills, including those that wait for the store. If there is no room for
        /// a will, the will is published at once, because otherwise it would be lost.
        var shares: OwnerShares
        /// The wills that are on their way to the store, by the account name to which the topics of the wills belong.
        var underWay: [OwnerName: UnderWay] = [:]

        init(shares: OwnerShares) { self.shares = shares }

        mutating func remove(_ key: SessionKey) -> Waiting? {
            let removed = waiting.remove(key)
            if let removed { shares.add(-removed.will.holding, of: removed.will.source) }
            return removed
        }

        mutating func popDue(now: Duration) -> Waiting? {
            let due = waiting.popDue(now: now)
            if let due { shares.add(-due.will.holding, of: due.will.source) }
            return due
        }

        /// Counts a will that is on its way to the store.
        mutating func begin(_ will: PendingWill) {
            if let name = will.name { underWay[name, default: UnderWay()].count += 1 }
        }

        mutating func end(_ will: PendingWill) {
            guard let name = will.name, var found = underWay[name] else { return }
            found.count -= 1
            underWay[name] = found.count > 0 ? found : nil
        }

        /// Returns a will in the form in which it is published now. It is not retained if its topic belongs to a name
        /// that the will's account has lost.
        func current(_ will: PendingWill) -> PendingWill {
            will.name.flatMap { underWay[$0] }?.isNameFree == true ? will.leavingNothing() : will
        }
    }

    /// An account, and a name that it has or had.
    struct OwnerName: Hashable, Sendable {
        let user: UserID
        let name: String
    }

    /// The wills of an account that are on their way to the store and whose topics belong to the account's name.
    fileprivate struct UnderWay: Sendable {
        var count = 0
        /// Whether the account has lost the name meanwhile.
        var isNameFree = false
    }

    /// The accuracy of delays; clients give them in seconds.
    private static let accuracy = TimeAmount.milliseconds(200)
    /// The number of wills published in one turn of a loop.
    private static let maxPerTurn = 256

    private let state: Mutex<State>
    private let metrics = MQTTMetrics()
    private let durable: DurableSessions
    private let ledger: WillLedger?
    private let access: TopicAccess
    private let accounts: AccountService
    private let time: any TimeSource
    /// The loop on which wills of other nodes are published.
    private let heirLoop: LoopContext?

    /// - Parameter memoryBytes: `limits.memory`. Waiting wills may use a quarter of it, and the wills of one owner a
    ///   sixteenth.
    init(messenger: Messenger, access: TopicAccess, loops: LoopContexts, memoryBytes: Int) {
        let total = memoryBytes / 4
        let bytes = SharedLimit(total, perAccount: total / 4, perAddress: total / 4)
        state = Mutex(State(shares: OwnerShares(entries: SharedLimit(.max), bytes: bytes)))
        self.access = access
        durable = messenger.durable
        ledger = messenger.wills
        accounts = messenger.accounts
        time = messenger.time
        heirLoop = loops.all.first
    }

    /// The number and the size in bytes of the wills that wait for their delay or for the store.
    var waiting: Holding { state.withLock { $0.shares.tally.total } }

    /// Writes the client's will into the record, after the client has connected or renewed its token.
    func keep(willOf client: MQTTClientState) {
        guard let will = client.will, let ledger else { return }
        client.will = ledger.give(will, of: client.key, delay: min(will.delay, client.sessionExpiry))
    }

    /// Removes a will from the record, because it was published or must not be published.
    func withdraw(_ will: PendingWill) {
        if let id = will.id { ledger?.remove(id) }
    }

    /// Takes over the wills that another node left.
    func inherited(_ wills: [StoredWill]) {
        guard let loop = heirLoop else { return }
        for stored in wills {
            // If the client is back, its will does not wait: the record decides at once whether the will is published.
            let isWaiting =
                stored.state == .gone && stored.isReplacedByClean == nil
                && wait(for: stored.delay, stored.will, of: stored.key, on: loop)
            if !isWaiting { publishSoon(stored.will, on: loop) }
        }
    }

    /// Handles the will of a connection that ended without DISCONNECT. The will is published after its delay, or when
    /// the session ends, whichever comes first [MQTT-3.1.3-9]. Called on the connection's loop.
    ///
    /// - Parameter isNameFree: whether the session's owner has lost its name. If so, the will is published at once.
    func ended(
        _ will: PendingWill,
        of key: SessionKey,
        sessionExpiry: Duration,
        isNameFree: Bool,
        on loop: LoopContext
    ) {
        guard !isNameFree else { return publish(will.leavingNothing(), on: loop) }
        let delay = min(will.delay, sessionExpiry)
        guard delay > .zero else { return publish(will, on: loop) }
        if let id = will.id { ledger?.wait(id, delay: delay) }
        if !wait(for: delay, will, of: key, on: loop) { publish(will, on: loop) }
    }

    /// Makes a will wait for its delay.
    ///
    /// - Returns: false if the will has no delay, or if there is no room for it to wait.
    private func wait(for delay: Duration, _ will: PendingWill, of key: SessionKey, on loop: LoopContext) -> Bool {
        guard delay > .zero else { return false }
        let dueAt = time.uptime() + delay
        let (isWaiting, isFirst, other) = state.withLock { state in
            let other = state.remove(key)
            guard state.shares.take(will.holding, of: will.source) else { return (false, false, other) }
            state.waiting.insert(Waiting(will: will, loop: loop), for: key, dueAt: dueAt)
            defer { state.isTicking = true }
            return (true, !state.isTicking, other)
        }
        // The session's earlier will was left by another node. The client has been back since then, so the record
        // decides whether that will is published.
        if let other, other.will.id != nil { publishSoon(other.will, on: loop) }
        // One timer serves all wills. A timer for each will would stay after its client has returned, for the whole
        // delay that the client chose.
        if isFirst { loop.eventLoop.scheduleTask(in: Self.accuracy) { self.publishDue(on: loop) } }
        return isWaiting
    }

    private func publishDue(on loop: LoopContext) {
        let now = time.uptime()
        let (due, isAnyLeft) = state.withLock { state in
            var due: [Waiting] = []
            while due.count < Self.maxPerTurn, let next = state.popDue(now: now) { due.append(next) }
            state.isTicking = !state.waiting.isEmpty
            return (due, state.isTicking)
        }
        for waiting in due { publishSoon(waiting.will, on: waiting.loop) }
        guard isAnyLeft else { return }
        let pause = due.count < Self.maxPerTurn ? Self.accuracy : .milliseconds(1)
        loop.eventLoop.scheduleTask(in: pause) { self.publishDue(on: loop) }
    }

    /// Handles the return of a client before its will was due. The will is published if the session starts clean, and
    /// is discarded otherwise.
    func connected(_ key: SessionKey, isClean: Bool) {
        guard let waiting = state.withLock({ $0.remove(key) }) else { return }
        if isClean { publishSoon(waiting.will, on: waiting.loop) } else { withdraw(waiting.will) }
    }

    /// Publishes the waiting will of a session that has ended without a connection.
    func sessionEnded(_ key: SessionKey) {
        guard let waiting = state.withLock({ $0.remove(key) }) else { return }
        publishSoon(waiting.will, on: waiting.loop)
    }

    /// Publishes the waiting wills that were given under a name that their account no longer has.
    func nameFreed(_ freed: FreedName) {
        let due = state.withLock { state in
            state.underWay[OwnerName(user: freed.user, name: freed.name)]?.isNameFree = true
            return freed.sessions.compactMap { key in
                let isOfName = state.waiting[key]?.will.identity.userName == freed.name
                return isOfName ? state.remove(key) : nil
            }
        }
        for waiting in due { publishSoon(waiting.will.leavingNothing(), on: waiting.loop) }
    }

    /// Returns the number of queues to which a will would be written now.
    func reach(of will: PendingWill) -> Int {
        guard will.publication.qos > .atMostOnce, durable.hasSubscriptions else { return 0 }
        let publication = StoredPublication(will.publication, publishedAt: time.now())
        return durable.reach(of: publication, to: durable.targets(of: publication.topic))
    }

    /// Publishes a will that has waited, unless its account was disabled meanwhile. Runs on the will's loop.
    private func publishSoon(_ will: PendingWill, on loop: LoopContext) {
        loop.post(
            .run { [self] in
                if isSuspended(will) { withdraw(will) } else { publish(will, isLate: true, on: loop) }
            }
        )
    }

    private func isSuspended(_ will: PendingWill) -> Bool {
        will.identity.account.map(accounts.isSuspended) == true
    }

    /// Whether the present rules allow a will. The rules may have changed while the will waited. A will can wait as
    /// long as a session lasts.
    private func isAllowed(_ will: PendingWill) -> Bool {
        let isAllowed = access.current.allows(.publish, will.publication.topic.rawValue, for: will.identity)
        if !isAllowed { metrics.refusedPublishes.increment() }
        return isAllowed
    }

    /// Publishes the will of a client that is gone. Connected subscribers get it after the commit, like a PUBLISH. If
    /// the commit fails, they still get it, because nobody sends it again. The exception is a will that is left to
    /// another node. Such a will is not delivered here.
    ///
    /// - Parameter isLate: whether the will has waited.
    private func publish(_ will: PendingWill, isLate: Bool = false, on loop: LoopContext) {
        guard isAllowed(will) else { return withdraw(will) }
        if will.publication.isComingOrGoing, !loop.tellsArrival(in: will.publication.topic, by: will.source) {
            metrics.droppedCrowded.increment()
            return withdraw(will)
        }
        state.withLock { $0.begin(will) }
        guard let ledger, will.id != nil else { return store(will, on: loop, attempts: 0) }
        ledger.take(will, isLate: isLate) { [self] verdict in
            switch verdict {
            case .publish: loop.post(.run { self.store(will, on: loop, attempts: 0) })
            case .publishLeavingNothing: loop.post(.run { self.store(will.leavingNothing(), on: loop, attempts: 0) })
            case .drop: state.withLock { $0.end(will) }
            }
        }
    }

    /// Ends the handling of a will that was published or abandoned.
    private func finished(_ will: PendingWill) {
        state.withLock { $0.end(will) }
        withdraw(will)
    }

    /// Stores a will if it is retained or goes to kept sessions, and publishes it.
    ///
    /// - Parameter attempts: the number of times that the store had no room for the will.
    private func store(_ will: PendingWill, on loop: LoopContext, attempts: Int) {
        let will = state.withLock { $0.current(will) }
        let now = time.now()
        let publication = will.publication.living(from: now, insteadOf: will.givenAt).by(will.key.publisher)
        let targets = publication.qos == .atMostOnce ? [] : durable.targets(of: publication.topic)
        let decided = publication.deciding(DecidedShares(targets))
        guard publication.retain || !targets.isEmpty else {
            finished(will)
            return toConnected(decided, on: loop)
        }
        durable.publish(
            StoredPublication(publication, publishedAt: now),
            targets: targets,
            from: durable.session(of: will.key),
            retains: publication.retain,
            source: will.source
        ) { [self] result in
            if case .failure(let error) = result {
                if error.code == .overloaded, isTriedAgain(will, on: loop, attempts: attempts) { return }
                metrics.droppedUnstored.increment()
                if error.code == .shuttingDown, let ledger, let id = will.id {
                    state.withLock { $0.end(will) }
                    return ledger.leaveToOthers(id)
                }
            }
            finished(will)
            loop.post(.run { self.toConnected(decided, on: loop) })
        }
    }

    private func toConnected(_ publication: Publication, on loop: LoopContext) {
        // The client is gone, so no publisher can be slowed down. A loop that is too far behind drops the will and
        // counts it (``TopicPlane/backlog``).
        _ = loop.topics.publish(publication, isPaced: false)
    }

    /// Makes a will wait, within its owner's share, because too much data waits for the store at the moment. After the
    /// wait, the server tries again to store the will.
    ///
    /// - Returns: false if the will cannot wait.
    private func isTriedAgain(_ will: PendingWill, on loop: LoopContext, attempts: Int) -> Bool {
        guard attempts < Self.maxAttempts,
            state.withLock({ $0.shares.take(will.holding, of: will.source) })
        else { return false }
        loop.eventLoop.scheduleTask(in: .milliseconds(250 << Int64(min(attempts, 5)))) { [self] in
            state.withLock { $0.shares.add(-will.holding, of: will.source) }
            guard !isSuspended(will), isAllowed(will) else { return finished(will) }
            store(will, on: loop, attempts: attempts + 1)
        }
        return true
    }

    /// The largest number of times that a will waits for the store. Together, these waits last a minute and a half.
    private static let maxAttempts = 16
}

extension PendingWill {
    fileprivate var holding: Holding { Holding(entries: 1, bytes: weight) }

    /// The name of the will's owner if the topic is `user/NAME` or below it; otherwise nil.
    fileprivate var name: MQTTWills.OwnerName? {
        guard belongsToName, let user = identity.account, let name = identity.userName else { return nil }
        return MQTTWills.OwnerName(user: user, name: name)
    }
}

extension Publication {
    /// Whether the publication is a join or leave of a room.
    fileprivate var isComingOrGoing: Bool { kind == .room(.joined) || kind == .room(.left) }

    /// Returns the same publication with an expiry that counts from `now` instead of `then`.
    fileprivate func living(from now: Timestamp, insteadOf then: Timestamp) -> Publication {
        guard let details, let end = details.expiresAt else { return self }
        return with(
            retain: retain,
            PublicationDetails(
                expiresAt: end.advanced(by: .milliseconds(now.rawValue - then.rawValue)),
                payloadIsUTF8: details.payloadIsUTF8,
                contentType: details.contentType,
                responseTopic: details.responseTopic,
                correlationData: details.correlationData,
                userProperties: details.userProperties
            )
        )
    }
}
