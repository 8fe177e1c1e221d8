// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Synchronization

/// Notifies devices of entries that they do not acknowledge in time. The notifications go through the devices' push
/// services. A device that is connected with its app in the foreground has ``Settings/deadline`` for the
/// acknowledgement. Any other device is notified at once. If a device acknowledges all waiting entries, its check is
/// cancelled. Thread-safe. Works while ``run()`` runs.
///
/// If a push service fails, two waits begin: the device is tried again after ``Settings/backoff``, and the service is
/// paused for all devices (``ServiceHealth``). If the results for a device cannot be recorded, the device gets no
/// notifications until they are recorded (``UnrecordedPushes``).
///
/// The entries to push are always derived from the store. They are the entries after both a device's cursor and the
/// last pushed entry (``PushTarget``). So a restarted server continues where it stopped. Memory holds only the times of
/// the next checks (``HandOffSchedule``) and the paused services (``ServiceHealth``).
///
/// State: one `Mutex` around ``State``. No other code is called while it is locked.
package final class PushHandOff: Sendable {
    package struct Settings: Sendable, Hashable {
        /// The time that a connected device has to acknowledge an entry.
        package var deadline: Duration
        /// The largest number of devices in one batch. The notifications of a batch are sent together.
        package var batch: Int
        /// The largest number of batches that are read at once. The same limit applies to the batches that are sent at
        /// once through one service of the operator's configuration.
        package var lanes: Int
        /// The largest number of devices of one batch to which something is sent at once. The notifications of one
        /// device are sent one after the other.
        package var devices: Int
        /// The wait before a retry.
        package var backoff: Backoff
        /// The age up to which messages are reported as undelivered.
        package var reportedAge: Duration

        package init(
            deadline: Duration = .seconds(10),
            batch: Int = 256,
            lanes: Int = 4,
            devices: Int = 100,
            backoff: Backoff = Backoff(base: .seconds(2), limit: .seconds(1800)),
            reportedAge: Duration = .seconds(24 * 3600)
        ) {
            self.deadline = deadline
            self.batch = max(1, batch)
            self.lanes = max(1, lanes)
            self.devices = max(1, devices)
            self.backoff = backoff
            self.reportedAge = reportedAge
        }
    }

    struct State {
        var schedule = HandOffSchedule()
        var health = ServiceHealth()
        var hosts = HostShares()
        var unrecorded = UnrecordedPushes()
        /// The number of the last claim of this process (``PlaceStore/claim(_:number:on:)``).
        var lastClaim: UInt64 = 0
        /// The claims of keys whose results are not recorded yet.
        var keptClaims: [HandOffKey: UInt64] = [:]
        /// The claims that are not needed any more, but that the record has not released yet.
        var unneededClaims: [HandOffKey: UInt64] = [:]
        /// The number of batches that are being read.
        var reading = 0
        /// The number of batches that are being sent, by service.
        var sending: [PushToken.Service: Int] = [:]
        /// The keys that wait until their service has room for another batch. Then they are read again.
        var blocked: [PushToken.Service: Deque<HandOffKey>] = [:]
        /// The times at which the due keys must be derived from the store.
        var recoveriesDue: [Duration] = []
        /// The users that the present recovery has not read yet, because there was no room or because the store failed;
        /// empty if all users were read.
        var unread: [UnreadUsers] = []
        /// The earliest time at which a recovery continues, or at which a recovery begins after an overflow.
        var recoveryAt = Duration.zero
        /// The earliest time for the recovery of held keys that were dropped (``HandOffSchedule/hasDropped``).
        var droppedRecoveryAt = Duration.zero
        /// The number of recoveries in a row that began because held keys were dropped.
        var drops = 0

        /// Removes and returns keys of a service that has room for another batch.
        mutating func takeBlocked(_ settings: Settings) -> [HandOffKey] {
            for service in blocked.keys where sending[service, default: 0] < settings.lanes {
                guard var keys = blocked.removeValue(forKey: service) else { continue }
                let taken = Array(keys.prefix(settings.batch))
                keys.removeFirst(taken.count)
                schedule.unblocked(taken.count)
                if !keys.isEmpty { blocked[service] = keys }
                return taken
            }
            return []
        }
    }

    /// The pause before a failed recovery is tried again.
    static let recoveryPause = Duration.seconds(5)

    let settings: Settings
    let tokens: PushTokenService
    let store: any MessageStore
    let accounts: any AccountStore
    let acknowledged: @Sendable (UserID, DeviceID, DeviceProof) -> UInt64
    let devices: DeviceRegistry
    private let enabled: Hook<UserID>
    let cluster: ClusterMember?
    /// The sender for all push services; nil if there are only webhooks. The device's token determines the service.
    let sender: (any PushSender)?
    let webhooks: WebhookOutbox?
    let events: EventWatch
    let traces: MessageTraces
    let time: any TimeSource
    let text: @Sendable (Message) -> PushText
    let report: @Sendable (Report) -> Void
    let state = Mutex(State())
    let wakeUp = WakeUp()

    /// An event for metrics and logs.
    package enum Report: Sendable {
        case sent(PushToken.Service, PushSendOutcome)
        /// The store failed; the operation is tried again.
        case failed(HermesError)
    }

    /// Creates the hand-off. After ``observe(_:)`` was called with ``Messenger/watch``, the hand-off works while
    /// ``run()`` runs.
    ///
    /// - Parameters:
    ///   - messenger: the inboxes and sessions.
    ///   - store: the messenger's message store.
    ///   - accounts: the messenger's account store.
    ///   - sender: the sender for all push services; nil if no service is configured.
    ///   - webhooks: gets notices of undelivered messages and of the results of pushes.
    ///   - text: returns the text of the notification for a message. The texts of events are not affected.
    ///   - report: gets events. It is called on any thread.
    package init(
        _ messenger: Messenger,
        store: any MessageStore,
        accounts: any AccountStore,
        sender: (any PushSender)?,
        webhooks: WebhookOutbox? = nil,
        settings: Settings = Settings(),
        text: @escaping @Sendable (Message) -> PushText,
        report: @escaping @Sendable (Report) -> Void = { _ in }
    ) {
        self.settings = settings
        tokens = messenger.pushTokens
        self.store = store
        self.accounts = accounts
        acknowledged = { [messages = messenger.messages] in messages.acknowledged($0, $1, by: $2) }
        devices = messenger.devices
        enabled = messenger.accounts.enabled
        cluster = messenger.cluster
        self.sender = sender
        self.webhooks = webhooks
        events = messenger.events
        traces = messenger.traces
        time = messenger.time
        self.text = text
        self.report = report
    }

    var reportsUndelivered: Bool { webhooks?.wants(.messageUndelivered) == true }

    /// The number of devices and users that wait for a check.
    package var waiting: Int { state.withLock { $0.schedule.count } }

    // MARK: Input

    /// Observes all commits and acknowledgements from now on.
    package func observe(_ watch: DeliveryWatch) {
        watch.entriesCommitted.observe { [self] in committed($0) }
        watch.entriesAcknowledged.observe { [self] acknowledgement in
            state.withLock { state in
                state.schedule.acknowledged(
                    acknowledgement.user,
                    acknowledgement.device,
                    upTo: acknowledgement.seq,
                    isProven: acknowledgement.isProven
                )
            }
        }
        if sender != nil {
            tokens.overlooked.observe { [self] in check($0) }
            // Nothing is pushed while an account is disabled, so entries may wait when the account is enabled again.
            enabled.observe { [self] user in
                check(tokens.devices(of: [user])[user, default: []].map { DeviceKey(user, $0) })
            }
        }
        guard let cluster else { return }
        cluster.handOffArrived.observe { [self] in schedule($0) }
        cluster.repaired.observe { [self] in
            let now = time.uptime()
            // Until all nodes have repaired their state, another node may still leave a user's entries to the node that
            // was responsible for the user before the change.
            state.withLock { $0.recoveriesDue = [now, now + ClusterMember.agreement] }
            wakeUp.signal()
        }
    }

    /// Schedules checks of devices that have set a token, because entries may already wait for them.
    private func check(_ devices: [DeviceKey]) {
        scheduleAtOwners(
            devices.map { HandOffDue(key: HandOffKey($0.user, $0.device), seq: .max, wait: settings.deadline) }
        )
    }

    private func committed(_ entries: [UserID: [InboxEntry]]) {
        let devices = sender == nil ? [:] : tokens.devices(of: entries.keys)
        let reportsUndelivered = reportsUndelivered
        guard reportsUndelivered || !devices.isEmpty else { return }
        var dues: [HandOffDue] = []
        for (user, entries) in entries {
            guard let last = HandOffPlan.pushWorthy(entries, for: user, nil).last else { continue }
            if reportsUndelivered {
                dues.append(HandOffDue(key: HandOffKey(user, nil), seq: last.seq, wait: settings.deadline))
            }
            guard let devices = devices[user] else { continue }
            let mayTake = mayTake(user)
            for device in devices {
                let wait = mayTake(device) ? settings.deadline : .zero
                dues.append(HandOffDue(key: HandOffKey(user, device), seq: last.seq, wait: wait))
            }
        }
        if !dues.isEmpty { scheduleAtOwners(dues) }
    }

    /// Returns a function that decides whether a device of the user may acknowledge entries without a push. This is so
    /// if the device is connected and its app is in the foreground, or if the device may be connected to another node.
    private func mayTake(_ user: UserID) -> (DeviceID) -> Bool {
        let awake = devices.awakeDevices(of: user)
        let elsewhere = devices.mayBeElsewhere(user) ? devices.attachedDevices(of: user) : nil
        return { device in awake.contains(device) || elsewhere?.contains(device) == false }
    }

    /// Schedules each key on the node that is responsible for the key's user, so that no two nodes send the same
    /// notification.
    private func scheduleAtOwners(_ dues: [HandOffDue]) {
        guard let cluster else { return schedule(dues) }
        let parts = Dictionary(grouping: dues) { cluster.owner(of: $0.key.user) }
        for (node, dues) in parts {
            if cluster.isThis(node) { schedule(dues) } else { cluster.tell(dues, to: node) }
        }
    }

    private func schedule(_ dues: [HandOffDue]) {
        let now = time.uptime()
        state.withLock { state in
            for due in dues {
                if due.seq == .max {
                    state.schedule.renewed(due.key, due: now + due.wait)
                } else {
                    state.schedule.committed(due.key, upTo: due.seq, due: now + due.wait)
                }
            }
        }
        wakeUp.signal()
    }

    // MARK: Working

    /// Runs until the task is cancelled.
    package func run() async {
        await recoverReporting()
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                if mustRecover {
                    await recoverReporting()
                }
                let batch = takeBatch()
                guard batch.isEmpty else {
                    group.addTask { [self] in await look(at: batch) }
                    continue
                }
                let now = time.uptime()
                let (isBusy, nextDue) = state.withLock { state in
                    let nextDue = [state.nextRecovery, state.schedule.nextDue].compactMap(\.self).min()
                    return (state.reading >= settings.lanes, nextDue)
                }
                await wakeUp.wait(atMost: isBusy ? nil : nextDue.map { max($0 - now, .milliseconds(1)) })
            }
            group.cancelAll()
        }
        // Otherwise, the results would be unknown after a restart, and the notifications would be sent again.
        await recordKept()
    }

    /// Takes the next batch of keys that are due. The batch is empty if no key is due or if all lanes are busy. For any
    /// other batch, ``look(at:)`` must be called.
    func takeBatch() -> [HandOffKey] {
        let now = time.uptime()
        return state.withLock { state in
            guard state.reading < settings.lanes else { return [] }
            var keys = state.takeBlocked(settings)
            if keys.isEmpty { keys = state.schedule.takeDue(now: now, limit: settings.batch) }
            if !keys.isEmpty { state.reading += 1 }
            return keys
        }
    }

    /// Checks a batch that ``takeBatch()`` has returned.
    func look(at keys: [HandOffKey]) async {
        await recordKept()
        let claims = await claim(keys.filter(mayBeginCheck))
        var candidates: [Candidate] = []
        for key in claims.keys {
            do throws(HermesError) {
                if let device = key.device {
                    switch try await find(key.user, device) {
                    case .nothing: settle(key)
                    case .nothingYet(let rest): settle(key, moreAt: time.uptime() + rest)
                    case .due(let candidate): candidates.append(candidate)
                    }
                } else {
                    let nextIn = try await reportUndelivered(of: key.user)
                    settle(key, moreAt: nextIn.map { time.uptime() + $0 })
                }
            } catch {
                retry(key, error)
            }
        }
        let (own, parts) = places(for: candidates)
        let batches = batches(of: own)
        // The lane for reading is released here, so that reading does not wait for any service.
        state.withLock { $0.reading -= 1 }
        wakeUp.signal()
        await withDiscardingTaskGroup { group in
            for candidates in parts { group.addTask { [self] in await send(candidates) } }
            for (service, candidates) in batches {
                group.addTask { [self] in
                    await send(candidates)
                    guard let service else { return }
                    state.withLock { $0.sending[service, default: 1] -= 1 }
                    wakeUp.signal()
                }
            }
        }
        await release(claims)
    }

    /// Whether the check of a key may begin. If not, the key waits, or is settled.
    private func mayBeginCheck(_ key: HandOffKey) -> Bool {
        guard mayCheck(key) else {
            waitForStore(key)
            return false
        }
        // The user may belong to another node by now. That node has derived the key from the store.
        guard owns(key.user) else {
            settle(key)
            return false
        }
        return true
    }

    /// Whether a key may be checked. A device gets nothing more until its earlier results are recorded. While very many
    /// results are not recorded, no device gets anything.
    private func mayCheck(_ key: HandOffKey) -> Bool {
        state.withLock { !$0.unrecorded.contains(key) && (key.device == nil || !$0.unrecorded.isFull) }
    }

    /// Checks a key after about 10 seconds, because the store cannot record anything now.
    func waitForStore(_ key: HandOffKey) { wait(key, about: 10) }

    /// Checks a key after about this number of seconds. If many keys wait, the time is longer, because most checks need
    /// a read from the store.
    func wait(_ key: HandOffKey, about seconds: Int) {
        let crowd = 1 + state.withLock { $0.schedule.count } / (2_000 * seconds)
        wait(key, until: time.uptime() + .milliseconds(Int64.random(in: 500...1_500)) * seconds * crowd)
    }

    /// Checks a key later. This does not count as a failure of the key's token.
    func wait(_ key: HandOffKey, until due: Duration) {
        let now = time.uptime()
        state.withLock { $0.schedule.postponed(key, until: due, now: now) }
        wakeUp.signal()
    }

    func settle(_ key: HandOffKey, retryAt: Duration? = nil, moreAt: Duration? = nil) {
        let now = time.uptime()
        state.withLock { $0.schedule.settled(key, now: now, retryAt: retryAt, moreAt: moreAt) }
        // The key may be due earlier than everything that ``run()`` waits for.
        wakeUp.signal()
    }

    func retry(_ key: HandOffKey, _ error: HermesError) {
        report(.failed(error))
        let attempts = state.withLock { $0.schedule.attempts(of: key) }
        settle(key, retryAt: time.uptime() + settings.backoff.delay(failures: attempts + 1, asked: error.retryAfter))
    }
}

// MARK: - Reading
extension PushHandOff {
    /// A device that may need a push.
    struct Candidate: Sendable {
        let key: HandOffKey
        let target: PushTarget
        let plan: HandOffPlan
        /// The host of the service that the client named; nil if the operator has configured the service.
        let host: String?
        /// The time until the next check if more entries wait; nil if no more entries wait.
        let nextIn: Duration?
        /// The time at which the device's entries were read.
        let readAt: Duration
        /// The place at the named host; nil until it is taken.
        var place: HostShares.Place?
    }

    /// The result of a check of a device.
    enum Finding: Sendable {
        /// Nothing waits, or the device no longer has a token.
        case nothing
        /// The device still has this time to acknowledge the waiting entries.
        case nothingYet(Duration)
        case due(Candidate)
    }

    /// Returns the time that a device or user still has to acknowledge an entry. It is zero if the time is over, or if
    /// the clock was set back since the commit.
    private func rest(of entry: InboxEntry) -> Duration {
        let now = time.now()
        guard entry.committedAt <= now else { return .zero }
        return max(.zero, settings.deadline - .milliseconds(now.rawValue - entry.committedAt.rawValue))
    }

    /// The shortest time between two checks of a key whose entries become due at different times.
    private var leastRest: Duration { settings.deadline / 10 }

    /// Reads the waiting entries of a device.
    func find(_ user: UserID, _ device: DeviceID) async throws(HermesError) -> Finding {
        let readAt = time.uptime()
        let targets = try await tokens.store.pushTargets(of: user)
        guard let target = targets.first(where: { $0.device == device }) else {
            // Otherwise, the hand-off would look for the device again after each message to the user.
            try await tokens.forgetGone(of: user)
            return .nothing
        }
        let taken = max(target.cursor, acknowledged(user, device, .claim))
        // The time is read before the pages. When the clock jumps, the store corrects the expiries before the time
        // follows the jump (``ClockJump``). If the time were read after the pages, entries that were read before the
        // correction could seem to be expired.
        let expiryTime = time.expiryTime()
        var page = try await store.entries(of: user, after: taken, limit: StoreSettings.maxPageEntries)
        var entries = page.withoutExpired(at: expiryTime).entries
        var last = page.entries.last?.lastSeq ?? taken
        var unread: Int?
        // If the page holds only entries that were already pushed, the entries to push are read from another page. The
        // badge then counts only the entries of the first page.
        if last <= target.pushedUpTo, last < page.position.head {
            unread = HandOffPlan.pushWorthy(entries, for: user, device).count
            page = try await store.entries(of: user, after: target.pushedUpTo, limit: StoreSettings.maxPageEntries)
            entries += page.withoutExpired(at: expiryTime).entries
            last = page.entries.last?.lastSeq ?? target.pushedUpTo
        }
        guard last > target.pushedUpTo else { return .nothing }
        var nextIn: Duration? = last < page.position.head && !page.entries.isEmpty ? .zero : nil
        var end = UInt64.max
        // If the device may acknowledge the entries without a push, each entry has its own deadline. Otherwise, all
        // entries are due together.
        if mayTake(user)(device), let fresh = entries.firstIndex(where: { rest(of: $0) > .zero }) {
            let rest = max(rest(of: entries[fresh]), leastRest)
            end = entries[..<fresh].last?.lastSeq ?? taken
            guard end > target.pushedUpTo else { return .nothingYet(rest) }
            nextIn = rest
        }
        let plan = HandOffPlan(
            for: user,
            device,
            entries: entries,
            pushedUpTo: target.pushedUpTo,
            through: end,
            unread: unread,
            text: text
        )
        return .due(
            Candidate(
                key: HandOffKey(user, device),
                target: target,
                plan: plan,
                host: target.token.namedHost,
                nextIn: nextIn,
                readAt: readAt
            )
        )
    }

    /// Reports to the webhook the messages that no device of the user has acknowledged in time.
    ///
    /// - Returns: the time until the next check; nil if there is nothing more to check.
    func reportUndelivered(of user: UserID) async throws(HermesError) -> Duration? {
        guard let webhooks else { return nil }
        var cursors = InboxCursors()
        for device in try await accounts.devices(of: user) {
            let seq = max(device.cursor, acknowledged(user, device.description.id, device.proof))
            cursors[device.description.id] = InboxCursors.Cursor(seq: seq, proof: device.proof)
        }
        let start = max(cursors.delivered, try await webhooks.store.undeliveredMark(of: user))
        let expiryTime = time.expiryTime()
        let page = try await store.entries(of: user, after: start, limit: StoreSettings.maxPageEntries)
        // Each entry has its own deadline.
        let fresh = page.entries.firstIndex { rest(of: $0) > .zero }
        let nextIn = fresh.map { max(rest(of: page.entries[$0]), leastRest) }
        guard let last = page.entries[..<(fresh ?? page.entries.endIndex)].last?.lastSeq else { return nextIn }
        let entries = page.withoutExpired(at: expiryTime).entries.filter { $0.lastSeq <= last }
        let worthy = HandOffPlan.pushWorthy(entries, for: user, nil)
        let recent = worthy.filter { entry in
            let end = entry.committedAt.advanced(by: settings.reportedAge)
            return !expiryTime.isOver(end, storedAt: entry.committedAt)
        }
        let notices = recent.map { WebhookNotice.messageUndelivered(user, $0) }
        try await webhooks.append(notices, marks: [user: last])
        for notice in notices { events.note(.notice(notice), .messageUndelivered) }
        return nextIn ?? (last < page.position.head ? .zero : nil)
    }
}
