// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Metrics
import NIOCore
import Synchronization

/// Wills of clients that are gone: they wait for their delay (3.1.3.2.2), or for room in the store.
///
/// A waiting will counts for its owner (``OwnerShares``), so that nobody's wills use up the room of others.
///
/// State: a `Mutex` around a dictionary; nothing is called under it.
final class MQTTWills: Sendable {
    private struct Waiting: Sendable {
        let will: MQTTPendingWill
        let loop: LoopContext
    }

    private struct State: Sendable {
        var waiting = DelayedValues<SessionKey, Waiting>()
        /// Whether a loop looks for wills that are due, now and then.
        var isTicking = false
        /// The owners' shares of the waiting wills, of those that wait for the store too. A will without room is
        /// published at once: that is better than never.
        var shares: OwnerShares
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

        /// A will is on its way to the store.
        mutating func begin(_ will: MQTTPendingWill) {
            if let name = will.name { underWay[name, default: UnderWay()].count += 1 }
        }

        mutating func end(_ will: MQTTPendingWill) {
            guard let name = will.name, var found = underWay[name] else { return }
            found.count -= 1
            underWay[name] = found.count > 0 ? found : nil
        }

        /// A will as it is to be published now.
        func current(_ will: MQTTPendingWill) -> MQTTPendingWill {
            will.name.flatMap { underWay[$0] }?.isNameFree == true ? will.leavingNothing() : will
        }
    }

    /// An account, and a name that it had.
    struct OwnerName: Hashable, Sendable {
        let user: UserID
        let name: String
    }

    /// The wills of an account that are on their way to the store.
    fileprivate struct UnderWay: Sendable {
        var count = 0
        /// Whether the account has lost the name meanwhile.
        var isNameFree = false
    }

    /// The accuracy of delays; clients give them in seconds.
    private static let tick = TimeAmount.milliseconds(200)
    /// The number of wills published in one turn of a loop.
    private static let maxPerTurn = 256

    private let state: Mutex<State>
    private let metrics = MQTTMetrics()
    private let durable: DurableSessions
    private let access: TopicAccess
    private let accounts: AccountService
    private let time: any TimeSource

    /// - Parameter memoryBytes: `limits.memory`; a quarter of it may wait, and a quarter of that of one owner.
    init(
        durable: DurableSessions,
        access: TopicAccess,
        accounts: AccountService,
        time: any TimeSource,
        memoryBytes: Int
    ) {
        let total = memoryBytes / 4
        let bytes = SharedLimit(total, perAccount: total / 4, perAddress: total / 4)
        state = Mutex(State(shares: OwnerShares(entries: SharedLimit(.max), bytes: bytes)))
        self.durable = durable
        self.access = access
        self.accounts = accounts
        self.time = time
    }

    /// The wills that wait for their delay or for the store, and their bytes.
    var waiting: Holding { state.withLock { $0.shares.tally.total } }

    /// A connection ended without DISCONNECT: its will is published after its delay, or when the session ends,
    /// whichever comes first [MQTT-3.1.3-9]. Called on the connection's loop.
    ///
    /// - Parameter isNameFree: whether the session's owner has lost its name; then the will is published at once.
    func ended(
        _ will: MQTTPendingWill,
        of key: SessionKey,
        sessionExpiry: Duration,
        isNameFree: Bool,
        on loop: LoopContext
    ) {
        guard !isNameFree else { return publish(will.leavingNothing(), on: loop) }
        let delay = min(will.delay, sessionExpiry)
        guard delay > .zero else { return publish(will, on: loop) }
        let dueAt = time.uptime() + delay
        let (isWaiting, isFirst) = state.withLock { state in
            _ = state.remove(key)
            guard state.shares.take(will.holding, of: will.source) else { return (false, false) }
            state.waiting.insert(Waiting(will: will, loop: loop), for: key, dueAt: dueAt)
            defer { state.isTicking = true }
            return (true, !state.isTicking)
        }
        guard isWaiting else { return publish(will, on: loop) }
        // One timer for all: a timer for each would stay after a client that returns, for as long as the client said.
        if isFirst { loop.eventLoop.scheduleTask(in: Self.tick) { self.publishDue(on: loop) } }
    }

    private func publishDue(on loop: LoopContext) {
        let now = time.uptime()
        let (due, isAnyLeft) = state.withLock { state in
            var due: [Waiting] = []
            while due.count < Self.maxPerTurn, let next = state.popDue(now: now) { due.append(next) }
            state.isTicking = !state.waiting.isEmpty
            return (due, state.isTicking)
        }
        for waiting in due { waiting.loop.post(.run { self.publishWaiting(waiting.will, on: waiting.loop) }) }
        guard isAnyLeft else { return }
        let pause = due.count < Self.maxPerTurn ? Self.tick : .milliseconds(1)
        loop.eventLoop.scheduleTask(in: pause) { self.publishDue(on: loop) }
    }

    /// The client returned before its will was due: the will is discarded, unless the session starts clean.
    func connected(_ key: SessionKey, isClean: Bool) {
        guard let waiting = state.withLock({ $0.remove(key) }), isClean else { return }
        let wills = self
        waiting.loop.post(.run { wills.publishWaiting(waiting.will, on: waiting.loop) })
    }

    /// A session without a connection has ended: its will is due now.
    func sessionEnded(_ key: SessionKey) {
        guard let waiting = state.withLock({ $0.remove(key) }) else { return }
        let wills = self
        waiting.loop.post(.run { wills.publishWaiting(waiting.will, on: waiting.loop) })
    }

    /// An account no longer has the name under which its wills were given: they are due now.
    func nameFreed(_ freed: FreedName) {
        let due = state.withLock { state in
            state.underWay[OwnerName(user: freed.user, name: freed.name)]?.isNameFree = true
            return freed.sessions.compactMap { key in
                let isOfName = state.waiting[key]?.will.identity.userName == freed.name
                return isOfName ? state.remove(key) : nil
            }
        }
        let wills = self
        for waiting in due {
            waiting.loop.post(.run { wills.publishWaiting(waiting.will.leavingNothing(), on: waiting.loop) })
        }
    }

    /// The number of queues that a will would be written to now.
    func reach(of will: MQTTPendingWill) -> Int {
        guard will.publication.qos > .atMostOnce, durable.hasSubscriptions else { return 0 }
        let publication = StoredPublication(will.publication, publishedAt: time.now())
        return durable.reach(of: publication, to: durable.targets(of: publication.topic))
    }

    /// Publishes a will that has waited, unless its account was disabled meanwhile.
    private func publishWaiting(_ will: MQTTPendingWill, on loop: LoopContext) {
        if !isSuspended(will) { publish(will, on: loop) }
    }

    private func isSuspended(_ will: MQTTPendingWill) -> Bool {
        will.identity.account.map(accounts.isSuspended) == true
    }

    /// Whether the rules allow a will; they may have changed while it waited, up to as long as a session lasts.
    private func isAllowed(_ will: MQTTPendingWill) -> Bool {
        let isAllowed = access.current.allows(.publish, will.publication.topic.rawValue, for: will.identity)
        if !isAllowed { metrics.refusedPublishes.increment() }
        return isAllowed
    }

    /// Publishes the will of a client that is gone. Connected subscribers get it after the commit, like a PUBLISH. If
    /// the commit fails, they still get it, because nobody sends it again.
    private func publish(_ will: MQTTPendingWill, on loop: LoopContext) {
        guard isAllowed(will) else { return }
        if will.publication.isComingOrGoing, !loop.tellsArrival(in: will.publication.topic, by: will.source) {
            return metrics.droppedCrowded.increment()
        }
        state.withLock { $0.begin(will) }
        store(will, on: loop, attempts: 0)
    }

    /// Stores a will if it must be, and publishes it.
    ///
    /// - Parameter attempts: the number of times that the store had no room for it.
    private func store(_ will: MQTTPendingWill, on loop: LoopContext, attempts: Int) {
        let will = state.withLock { $0.current(will) }
        let now = time.now()
        let publication = will.publication.living(from: now, insteadOf: will.givenAt)
        let targets = publication.qos == .atMostOnce ? [] : durable.targets(of: publication.topic)
        let decided = publication.deciding(DecidedShares(targets))
        guard publication.retain || !targets.isEmpty else {
            state.withLock { $0.end(will) }
            return toConnected(decided, on: loop)
        }
        durable.publish(
            StoredPublication(publication, publishedAt: now),
            targets: targets,
            retains: publication.retain,
            source: will.source
        ) { [self] result in
            if case .failure(let error) = result {
                if error.code == .overloaded, isTriedAgain(will, on: loop, attempts: attempts) { return }
                metrics.droppedUnstored.increment()
            }
            state.withLock { $0.end(will) }
            loop.post(.run { self.toConnected(decided, on: loop) })
        }
    }

    private func toConnected(_ publication: Publication, on loop: LoopContext) {
        // Its client is gone, so nobody can be slowed down. What a loop is too far behind for is counted there
        // (``TopicPlane/backlog``).
        _ = loop.topics.publish(publication, isPaced: false)
    }

    /// Too much waits for the store at the moment: the will waits too, within its owner's share. False: it does not.
    private func isTriedAgain(_ will: MQTTPendingWill, on loop: LoopContext, attempts: Int) -> Bool {
        guard attempts < Self.maxAttempts,
            state.withLock({ $0.shares.take(will.holding, of: will.source) })
        else { return false }
        loop.eventLoop.scheduleTask(in: .milliseconds(250 << Int64(min(attempts, 5)))) { [self] in
            state.withLock { $0.shares.add(-will.holding, of: will.source) }
            guard !isSuspended(will), isAllowed(will) else { return state.withLock { $0.end(will) } }
            store(will, on: loop, attempts: attempts + 1)
        }
        return true
    }

    /// The most tries; together they take a minute and a half.
    private static let maxAttempts = 16
}

extension MQTTPendingWill {
    fileprivate var holding: Holding { Holding(entries: 1, bytes: weight) }

    /// Its owner's name, if the will is for `user/NAME` or below it.
    fileprivate var name: MQTTWills.OwnerName? {
        guard let user = identity.account, let name = identity.userName, publication.topic.belongs(to: name) else {
            return nil
        }
        return MQTTWills.OwnerName(user: user, name: name)
    }

    /// The same, but not retained for `user/NAME` or below it: the next owner of the name finds nothing there.
    fileprivate func leavingNothing() -> MQTTPendingWill {
        guard publication.retain, let userName = identity.userName,
            publication.topic.belongs(to: userName)
        else {
            return self
        }
        return MQTTPendingWill(
            publication: publication.with(retain: false, publication.details),
            givenAt: givenAt,
            delay: delay,
            source: source,
            identity: identity
        )
    }
}

extension Publication {
    /// Whether it tells a room who comes or goes.
    fileprivate var isComingOrGoing: Bool { kind == .room(.joined) || kind == .room(.left) }

    /// The same with an expiry that counts from later.
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

    fileprivate func with(retain: Bool, _ details: PublicationDetails?) -> Publication {
        Publication(
            topic: topic,
            payload: payload,
            kind: kind,
            dropClass: dropClass,
            sender: sender,
            qos: qos,
            retain: retain,
            details: details
        )
    }
}
