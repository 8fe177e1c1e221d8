// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Accepts pushes from back ends, and delivers them to the inboxes of users. Thread-safe.
///
/// A push to a few recipients is committed before the call returns. A push to many recipients is committed as a job and
/// delivered in batches afterwards. The transaction that appends entries also moves the job's cursor. So no entry is
/// lost or repeated if the server is killed.
///
/// State: a `Mutex`. No other code is called while it is locked.
package final class PushService: Sendable {
    /// A push to at most this number of recipients is appended to their inboxes by the commit that accepts the push. A
    /// push to more recipients becomes a job.
    package static let directRecipients = 64
    /// The largest number of recipients that one call may name.
    package static let maxRecipients = 10_000
    /// The largest number of recipients of one fan-out step. Other operations get their turn between two steps.
    static let batch = 500
    /// The largest number of claims that are remembered because the store could not settle them.
    private static let maxUnsettled = 10_000
    /// The largest number of such claims that one call to ``resume()`` tries to settle.
    private static let unsettledPerRound = 64

    private struct State {
        var ids = MessageIDGenerator()
        /// Jobs that are being fanned out.
        var running: Set<MessageID> = []
        /// Claims between ``begin(_:)`` and ``end(_:isDone:)``, with the answers to their pushes.
        var underWay: [PushClaimKey: [UInt8]] = [:]
        /// Claims whose pushes are done, although the store could not record this.
        var unsettled: [PushClaimKey: PushClaim] = [:]
        /// Jobs whose last step failed or was held back.
        var stalled: Set<MessageID> = []
    }

    private let store: any MessageStore
    private let social: any SocialStore
    private let reads: ReadGate
    private let committer: InboxCommitter
    private let time: any TimeSource
    private let retention: Duration
    private let state = Mutex(State())

    init(
        store: any MessageStore,
        social: any SocialStore,
        reads: ReadGate,
        committer: InboxCommitter,
        time: any TimeSource,
        retention: Duration
    ) {
        self.store = store
        self.social = social
        self.reads = reads
        self.committer = committer
        self.time = time
        self.retention = retention
    }

    /// Creates a push.
    ///
    /// - Parameters:
    ///   - content: the content of the push.
    ///   - expiresAfter: the time after which the push expires; nil for the time for which messages wait.
    ///   - device: the only device that shows the push; nil if all devices show it.
    /// - Throws: `.invalidArgument`, `.tooLarge`.
    package func make(
        _ content: PushContent,
        priority: Push.Priority = .normal,
        expiresAfter: Duration? = nil,
        device: DeviceID? = nil
    ) throws(HermesError) -> Push {
        try content.check()
        if let expiresAfter, expiresAfter <= .zero {
            throw HermesError(.invalidArgument, "the push expires before it is sent")
        }
        let now = time.now()
        return Push(
            id: state.withLock { $0.ids.next(now: now) },
            content: content,
            priority: priority,
            expiresAt: now.advanced(by: min(expiresAfter ?? retention, retention)),
            device: device
        )
    }

    /// Returns the users among `users` that exist. Reads the store once.
    package func existing(_ users: [UserID]) async throws(HermesError) -> Set<UserID> {
        try await reads.turn(of: .server) { () async throws(HermesError) in
            Set(try await social.names(of: users).keys)
        }
    }

    /// Commits a push, and begins to deliver it.
    ///
    /// - Returns: the first answer if the claim was already taken with the same content; otherwise nil. If there is a
    ///   first answer, the push is not committed.
    /// - Throws: `.clientIDConflict` if the claim was taken with other content; `.invalidArgument`, `.tooLarge`,
    ///   `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func send(
        _ push: Push,
        to target: PushJob.Target,
        claim: PushClaim? = nil
    ) async throws(HermesError) -> [UInt8]? {
        guard case .users(let users) = target, users.count <= Self.directRecipients else {
            if case .users(let users) = target, users.count > Self.maxRecipients {
                throw HermesError(.tooLarge, "a push names at most \(Self.maxRecipients) users")
            }
            let outcome = try await submit(.accept(PushJob(push: push, target: target), claim: claim.map { timed($0) }))
            if outcome.firstAnswer == nil { start(push.id) }
            return outcome.firstAnswer
        }
        guard !users.isEmpty else { throw HermesError(.invalidArgument, "the push has no recipients") }
        return try await submit(.append(push, recipients: users, claim: claim.map { timed($0) })).firstAnswer
    }

    /// Returns the claim for the store. As long as the clock may be wrong, claims of an earlier process do not expire.
    private func timed(_ claim: PushClaim) -> PushClaim {
        var claim = claim
        claim.storedSince = time.expiryTime().storedSince
        return claim
    }

    /// The result of taking a claim.
    package enum Claimed: Sendable, Hashable {
        /// The push was done before, with this answer.
        case before([UInt8])
        /// Publish the push now, with this answer. It is the claim's own answer, or the answer to an earlier attempt
        /// whose completion is unknown.
        case now([UInt8])
    }

    /// Takes a claim for a push that is not stored. If this returns ``Claimed/now(_:)``, call ``end(_:isDone:)``
    /// afterwards.
    ///
    /// - Throws: `.clientIDConflict` if the claim was taken with other content, or if it is under way; `.overloaded`,
    ///   `.storageUnavailable`, `.shuttingDown`.
    package func begin(_ claim: PushClaim) async throws(HermesError) -> Claimed {
        let key = PushClaimKey(owner: claim.owner, key: claim.key)
        let (done, isFree) = state.withLock { state -> (PushClaim?, Bool) in
            if let done = state.unsettled[key] { return (done, false) }
            guard state.underWay[key] == nil else { return (nil, false) }
            state.underWay[key] = claim.answer
            return (nil, true)
        }
        if let done { return .before(try Self.answer(of: done, to: claim)) }
        guard isFree else { throw Self.isUnderWay }
        do throws(HermesError) {
            let outcome = try await submit(.claim(timed(claim)))
            if let first = outcome.firstAnswer {
                state.withLock { $0.underWay[key] = nil }
                return .before(first)
            }
            let answer = outcome.openAnswer ?? claim.answer
            state.withLock { $0.underWay[key] = answer }
            return .now(answer)
        } catch {
            state.withLock { $0.underWay[key] = nil }
            throw error
        }
    }

    /// Returns the answer to a push that is done.
    private static func answer(of done: PushClaim, to claim: PushClaim) throws(HermesError) -> [UInt8] {
        guard done.contentHash == claim.contentHash else { throw PushClaim.conflict }
        return done.answer
    }

    /// Returns the answer to the first push with this claim; nil if there was no such push, or if it is unknown whether
    /// that push was completed.
    ///
    /// - Throws: the errors of ``begin(_:)``.
    package func answer(to claim: PushClaim) async throws(HermesError) -> [UInt8]? {
        let key = PushClaimKey(owner: claim.owner, key: claim.key)
        if let done = state.withLock({ $0.unsettled[key] }) { return try Self.answer(of: done, to: claim) }
        return try await submit(.find(timed(claim))).firstAnswer
    }

    /// Ends a claim. If its push was not done, the claim can be taken again.
    package func end(_ claim: PushClaim, isDone: Bool) async {
        let key = PushClaimKey(owner: claim.owner, key: claim.key)
        guard isDone else { return state.withLock { $0.underWay[key] = nil } }
        let isSettled = (try? await submit(.settle(claim))) != nil
        state.withLock { state in
            let answer = state.underWay.removeValue(forKey: key) ?? claim.answer
            // The push is done, so a repeated request must not repeat the push, even if the store could not record
            // this.
            guard !isSettled, state.unsettled.count < Self.maxUnsettled else { return }
            state.unsettled[key] = PushClaim(
                owner: claim.owner,
                key: claim.key,
                contentHash: claim.contentHash,
                answer: answer
            )
        }
    }

    /// Tries again to record that the push of a claim is done.
    private func settle(_ claim: PushClaim) {
        committer.submit(
            .push(.settle(claim)) { [weak self] result in
                if case .success = result { self?.settled(claim) }
            }
        )
    }

    private func settled(_ claim: PushClaim) {
        state.withLock { $0.unsettled[PushClaimKey(owner: claim.owner, key: claim.key)] = nil }
    }

    private static let isUnderWay = HermesError(
        .clientIDConflict,
        "A push with this idempotency key is under way. Ask again when it has its answer.",
        retryAfter: .seconds(1)
    )

    /// Continues the jobs of an earlier process. This is called once, when the server starts.
    func load() async throws(HermesError) {
        for job in try await store.pushJobs() { start(job) }
    }

    /// Continues the jobs whose last step failed or was held back. Also settles claims that could not be settled. This
    /// is called periodically.
    func resume() {
        let (stalled, unsettled) = state.withLock { state -> (Set<MessageID>, [PushClaim]) in
            defer { state.stalled = [] }
            return (state.stalled, Array(state.unsettled.values.prefix(Self.unsettledPerRound)))
        }
        for job in stalled { start(job) }
        for claim in unsettled { settle(claim) }
    }

    private func start(_ job: MessageID) {
        guard state.withLock({ $0.running.insert(job).inserted }) else { return }
        step(job)
    }

    private func step(_ job: MessageID) {
        // As long as the clock may be wrong, jobs of an earlier process do not expire.
        let limit = FanOutLimit(Self.batch, storedSince: time.expiryTime().storedSince)
        committer.submit(
            .push(.fanOut(job, limit: limit)) { [weak self] result in
                switch result {
                case .success(let outcome) where outcome.isHeldBack: self?.end(job, isStalled: true)
                case .success(let outcome) where !outcome.isDone: self?.step(job)
                case .success: self?.end(job, isStalled: false)
                case .failure: self?.end(job, isStalled: true)
                }
            }
        )
    }

    private func end(_ job: MessageID, isStalled: Bool) {
        state.withLock { state in
            state.running.remove(job)
            if isStalled { state.stalled.insert(job) }
        }
    }

    private func submit(_ operation: PushOperation) async throws(HermesError) -> PushOutcome {
        let result = await withCheckedContinuation { continuation in
            committer.submit(.push(operation) { continuation.resume(returning: $0) })
        }
        return try result.get()
    }
}
