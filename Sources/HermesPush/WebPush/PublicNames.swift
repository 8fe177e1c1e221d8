// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import NIOPosix

/// Resolves host names that come from clients, and checks their addresses. The caller must connect to the address that
/// was checked, because another lookup could lead to another address.
///
/// A lookup blocks a thread for as long as the name's servers take, and anybody can use names that have slow servers or
/// that do not exist. So there are limits:
/// - Answers are remembered, including the answer that a name leads nowhere.
/// - Nobody waits longer than the deadline.
/// - Lookups run on separate threads.
/// - Accounts take turns, and each has only a few lookups at once.
/// - Names that have led somewhere go first, and some threads are reserved for them.
///
/// State: protected by the actor.
package actor PublicNames {
    /// The result of one lookup.
    package enum Lookup: Sendable, Hashable {
        /// All addresses, 4 or 16 bytes each.
        case found([[UInt8]])
        /// There is no such name, or it has no address.
        case none
        /// The resolver failed.
        case failed
    }

    package enum Answer: Sendable, Hashable {
        /// The address to connect to.
        case address(String)
        /// The name does not exist or has a private address. The duration is the time for which all answers have been
        /// the same.
        case nowhere(Duration)
        /// The address is not known at present. A new lookup makes sense after this time.
        case unknown(Duration)
    }

    package struct Settings: Sendable {
        /// The longest wait for an answer.
        package var deadline = Duration.seconds(5)
        /// The time for which an answer is used without a new lookup.
        package var fresh = Duration.seconds(60)
        /// The age up to which an older answer is used while a new lookup runs.
        package var usable = Duration.seconds(3600)
        /// The time for which it is remembered that a name leads nowhere: after the first such answer, and after each
        /// later answer.
        package var nowhere = (first: Duration.seconds(300), later: Duration.seconds(3600))
        /// The longest time between two answers that a name leads nowhere. After a longer time, it is not known where
        /// the name led meanwhile, so only the later answer counts.
        package var nowhereGap = Duration.seconds(6 * 3600)
        /// The shortest time between two changes of a host's address, because any client can cause such a change.
        package var rotation = Duration.seconds(30)
        /// The time for which a failed lookup is remembered.
        package var failed = Duration.seconds(30)
        /// The largest number of lookups at once, and the number of them that are reserved for names that have led
        /// somewhere.
        package var lookups = (total: 16, kept: 4)
        /// The largest number of one account's lookups at once, and of its lookups that wait for their turn.
        package var perAccount = (running: 2, waiting: 16)
        /// The largest number of remembered names of each kind: with an address, leading nowhere, failed.
        package var capacity = 4_096

        package init() {}
    }

    private struct Known {
        /// The addresses, the preferred one first.
        var addresses: [String]
        var freshUntil: Duration
        var usableUntil: Duration
        /// The time when the preferred address was last changed; nil if it was never changed.
        var rotatedAt: Duration?
    }

    private struct Nowhere {
        let since: Duration
        /// The time of the last answer.
        let at: Duration
        let until: Duration
    }

    struct Pending {
        var waiters: [CheckedContinuation<Answer, Never>] = []
        /// The owner in whose turn the lookup runs; nil while the lookup waits.
        var runner: Owner?
        var deadline: Task<Void, Never>?
        /// Whether the deadline has passed. If so, the callers no longer wait.
        var isExpired = false
    }

    /// The owner of a lookup, in whose turn the lookup runs.
    enum Owner: Hashable {
        case account(UserID)
        case nobody
    }

    /// The threads for lookups. Nothing else uses them, because a thread that waits in the resolver cannot be stopped.
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: Settings().lookups.total)
        threads.start()
        return threads
    }()

    private let settings: Settings
    private let time: any TimeSource
    private let isPublic: @Sendable ([UInt8]) -> Bool
    private let lookUp: @Sendable (String) async -> Lookup
    private var known: [String: Known] = [:]
    private var nowhere: [String: Nowhere] = [:]
    private var failed: [String: Duration] = [:]
    var pending: [String: Pending] = [:]
    private var renewals: [(host: String, owner: Owner)] = []
    private var queues: [Owner: [String]] = [:]
    private var turns: [Owner] = []
    private var runningOf: [Owner: Int] = [:]
    private var running = 0

    /// - Parameters:
    ///   - isPublic: whether the server may connect to an address.
    ///   - lookUp: resolves a name, which may take a long time.
    package init(
        settings: Settings = Settings(),
        time: any TimeSource,
        isPublic: @escaping @Sendable ([UInt8]) -> Bool = PublicAddress.isPublic,
        lookUp: (@Sendable (String) async -> Lookup)? = nil
    ) {
        self.settings = settings
        self.time = time
        self.isPublic = isPublic
        self.lookUp =
            lookUp ?? { host in (try? await Self.threads.runIfActive { PublicAddress.resolve(host) }) ?? .failed }
    }

    /// Returns the checked address of a host.
    ///
    /// - Parameters:
    ///   - host: the host's name, in lower case.
    ///   - account: the account in whose turn a lookup runs; nil means the turn that all clients without an account
    ///     share.
    package func address(of host: String, for account: UserID?) async -> Answer {
        let now = time.uptime()
        let owner = account.map { Owner.account($0) } ?? .nobody
        if let entry = known[host], let first = entry.addresses.first, now < entry.usableUntil {
            if now >= entry.freshUntil { renew(host, for: owner) }
            return .address(first)
        }
        if let entry = nowhere[host], now < entry.until { return .nowhere(entry.at - entry.since) }
        if let until = failed[host], now < until { return .unknown(until - now) }
        guard enqueue(host, for: owner) else { return .unknown(settings.deadline) }
        return await withCheckedContinuation { waiter in
            pending[host, default: Pending()].waiters.append(waiter)
            startLookups()
        }
    }

    /// Notes that no connection was established. The next attempts go to another address of the host, unless the host's
    /// address was changed a moment ago.
    package func unreachable(_ host: String, at address: String) {
        let now = time.uptime()
        guard let entry = known[host], let first = entry.addresses.first, first == address,
            entry.rotatedAt.map({ now - $0 >= settings.rotation }) ?? true
        else { return }
        known[host]?.rotatedAt = now
        known[host]?.addresses.removeFirst()
        known[host]?.addresses.append(first)
        known[host]?.freshUntil = .zero
    }

    // MARK: Turns

    private func renew(_ host: String, for owner: Owner) {
        let under = runningOf[owner, default: 0] + renewals.count { $0.owner == owner }
        // Without a new lookup, the old answer is still used.
        guard pending[host] == nil, under < settings.perAccount.running else { return }
        add(host)
        renewals.append((host, owner))
        startLookups()
    }

    /// - Returns: whether the host will be looked up.
    private func enqueue(_ host: String, for owner: Owner) -> Bool {
        if let entry = pending[host], entry.runner != nil { return !entry.isExpired }
        var queue = queues[owner, default: []]
        if !queue.contains(host) {
            guard queue.count < settings.perAccount.waiting else { return false }
            if queue.isEmpty { turns.append(owner) }
            // This happens even if the host waits in another owner's queue, because that owner's turn may begin much
            // later.
            queue.append(host)
            queues[owner] = queue
        }
        // The host may still be in the queue although its deadline has passed.
        if pending[host] == nil { add(host) }
        return true
    }

    private func add(_ host: String) {
        pending[host] = Pending()
        // The task is unstructured: it ends by itself after the deadline, or with the lookup.
        pending[host]?.deadline = Task { [weak self, settings] in
            do { try await Task.sleep(for: settings.deadline) } catch { return }
            await self?.expired(host)
        }
    }

    private func startLookups() {
        while running < settings.lookups.total, !renewals.isEmpty {
            let next = renewals.removeFirst()
            start(next.host, for: next.owner)
        }
        while running < settings.lookups.total - settings.lookups.kept, let (host, owner) = nextTurn() {
            start(host, for: owner)
        }
    }

    private func nextTurn() -> (String, Owner)? {
        for _ in 0..<turns.count {
            let owner = turns.removeFirst()
            guard runningOf[owner, default: 0] < settings.perAccount.running else {
                turns.append(owner)
                continue
            }
            // Hosts that were looked up in another owner's turn, or that waited too long, are skipped.
            while var queue = queues[owner], !queue.isEmpty {
                let host = queue.removeFirst()
                queues[owner] = queue.isEmpty ? nil : queue
                guard let waiting = pending[host], waiting.runner == nil else { continue }
                if queues[owner] != nil { turns.append(owner) }
                return (host, owner)
            }
        }
        return nil
    }

    private func start(_ host: String, for owner: Owner) {
        guard pending[host] != nil, pending[host]?.runner == nil else { return }
        pending[host]?.runner = owner
        running += 1
        runningOf[owner, default: 0] += 1
        // The task is unstructured: callers may stop waiting, but the lookup cannot be stopped.
        Task { [lookUp] in finished(host, await lookUp(host)) }
    }

    // MARK: Results

    private func finished(_ host: String, _ result: Lookup) {
        guard let entry = pending.removeValue(forKey: host) else { return }
        entry.deadline?.cancel()
        running -= 1
        if let owner = entry.runner {
            let left = runningOf[owner, default: 1] - 1
            runningOf[owner] = left > 0 ? left : nil
        }
        let answer = note(host, result)
        for waiter in entry.waiters { waiter.resume(returning: answer) }
        startLookups()
    }

    private func note(_ host: String, _ result: Lookup) -> Answer {
        let now = time.uptime()
        switch result {
        case .found(let addresses) where !addresses.isEmpty && addresses.allSatisfy(isPublic):
            nowhere[host] = nil
            failed[host] = nil
            var texts = addresses.map(PublicAddress.text(of:))
            // Services rotate their addresses. The address in use stays in front while it is in the list, so that its
            // connections are kept.
            if let used = known[host]?.addresses.first, let index = texts.firstIndex(of: used) {
                texts.swapAt(0, index)
            }
            let rotatedAt = known[host]?.rotatedAt
            Self.makeRoom(in: &known, for: host, capacity: settings.capacity)
            known[host] = Known(
                addresses: texts,
                freshUntil: now + settings.fresh,
                usableUntil: now + settings.usable,
                rotatedAt: rotatedAt
            )
            return .address(texts[0])
        case .found, .none:
            known[host] = nil
            failed[host] = nil
            // After a long time without an answer, it is not known where the name led meanwhile.
            let since = nowhere[host].flatMap { now - $0.at <= settings.nowhereGap ? $0.since : nil }
            let period = since == nil ? settings.nowhere.first : settings.nowhere.later
            Self.makeRoom(in: &nowhere, for: host, capacity: settings.capacity)
            nowhere[host] = Nowhere(since: since ?? now, at: now, until: now + period)
            return .nowhere(now - (since ?? now))
        case .failed:
            known[host]?.freshUntil = now + settings.failed
            Self.makeRoom(in: &failed, for: host, capacity: settings.capacity)
            failed[host] = now + settings.failed
            return .unknown(settings.failed)
        }
    }

    private func expired(_ host: String) {
        guard var entry = pending[host] else { return }
        let waiters = entry.waiters
        entry.waiters = []
        entry.isExpired = true
        // The thread stays busy until the resolver answers.
        pending[host] = entry.runner == nil ? nil : entry
        renewals.removeAll { $0.host == host }
        if entry.runner != nil { _ = note(host, .failed) }
        for waiter in waiters { waiter.resume(returning: .unknown(settings.failed)) }
    }

    /// Removes an arbitrary entry if there are too many. Dictionaries are in random order, so no client can choose the
    /// entry.
    private static func makeRoom<Value>(in entries: inout [String: Value], for host: String, capacity: Int) {
        guard entries[host] == nil, entries.count >= capacity, let any = entries.indices.first else { return }
        entries.remove(at: any)
    }
}
