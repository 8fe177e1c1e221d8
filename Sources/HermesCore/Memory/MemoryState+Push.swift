// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The owner and the key of a claim.
struct PushClaimKey: Hashable {
    let owner: String
    let key: String
}

/// A recorded claim.
struct StoredPushClaim {
    let claim: PushClaim
    let expiresAt: Timestamp
    var isOpen = false
}

/// A push to many accounts, and its progress.
struct StoredPushJob {
    let job: PushJob
    /// For a push to everyone, the last account that gets the push. Accounts that are created later do not get it.
    let lastUser: Int32
    /// For a push to named users, the number of users that are done. For a push to everyone, the last account that is
    /// done.
    var cursor = 0
}

extension MemoryState {
    mutating func apply(_ operation: PushOperation, now: Timestamp) throws(HermesError) -> PushOutcome {
        switch operation {
        case .append(let push, let recipients, let claim):
            if let first = try take(claim, now: now) { return PushOutcome(firstAnswer: first) }
            return PushOutcome(deliveries: append(push, to: recipients, now: now))
        case .accept(let job, let claim):
            if let first = try take(claim, now: now) { return PushOutcome(firstAnswer: first) }
            pushJobs.append(StoredPushJob(job: job, lastUser: lastUser))
            return PushOutcome()
        case .fanOut(let id, let limit):
            return fanOut(id, limit, now: now)
        case .claim(let claim):
            let key = PushClaimKey(owner: claim.owner, key: claim.key)
            let first = try take(claim, now: now)
            if first == nil { pushClaims[key]?.isOpen = true }
            var outcome = PushOutcome()
            if pushClaims[key]?.isOpen == true { outcome.openAnswer = first } else { outcome.firstAnswer = first }
            return outcome
        case .settle(let claim):
            let key = PushClaimKey(owner: claim.owner, key: claim.key)
            if pushClaims[key]?.claim.contentHash == claim.contentHash { pushClaims[key]?.isOpen = false }
            return PushOutcome()
        case .find(let claim):
            let first = try taken(claim, now: now)
            return PushOutcome(firstAnswer: first?.isOpen == false ? first?.claim.answer : nil)
        }
    }

    /// - Returns: the earlier answer for the same claim; nil if the claim is new.
    private mutating func take(_ claim: PushClaim?, now: Timestamp) throws(HermesError) -> [UInt8]? {
        guard let claim else { return nil }
        if let first = try taken(claim, now: now) { return first.claim.answer }
        pushClaims[PushClaimKey(owner: claim.owner, key: claim.key)] = StoredPushClaim(
            claim: claim,
            expiresAt: now.advanced(by: PushClaim.period)
        )
        return nil
    }

    /// Returns the record of an earlier push that made the same claim; nil if there is none.
    private func taken(_ claim: PushClaim, now: Timestamp) throws(HermesError) -> StoredPushClaim? {
        guard let first = pushClaims[PushClaimKey(owner: claim.owner, key: claim.key)],
            !claim.comesAfter(first.expiresAt, now: now)
        else { return nil }
        guard first.claim.contentHash == claim.contentHash else { throw PushClaim.conflict }
        return first
    }

    private mutating func fanOut(_ id: MessageID, _ limit: FanOutLimit, now: Timestamp) -> PushOutcome {
        guard let index = pushJobs.firstIndex(where: { $0.job.push.id == id }) else { return PushOutcome() }
        let stored = pushJobs[index]
        guard stored.job.push.expiresAt > now else {
            guard limit.ends(stored.job.push, now: now) else { return .heldBack }
            pushJobs.remove(at: index)
            return PushOutcome()
        }
        let most = max(1, limit.recipients)
        let recipients: [UserID]
        let isDone: Bool
        switch stored.job.target {
        case .users(let users):
            recipients = Array(users.dropFirst(stored.cursor).prefix(most))
            pushJobs[index].cursor += recipients.count
            isDone = pushJobs[index].cursor >= users.count
        case .everyone:
            let rest = records.keys.filter { $0.rawValue > stored.cursor && $0.rawValue <= stored.lastUser }.sorted()
            let looked = rest.prefix(most)
            recipients = looked.filter { records[$0]?.stored.account.isDisabled == false }
            pushJobs[index].cursor = Int(looked.last?.rawValue ?? stored.lastUser)
            isDone = looked.count == rest.count
        }
        if isDone { pushJobs.remove(at: index) }
        return PushOutcome(deliveries: append(stored.job.push, to: recipients, now: now), isDone: isDone)
    }

    private mutating func append(_ push: Push, to recipients: [UserID], now: Timestamp) -> [InboxDelivery] {
        recipients.compactMap { user in
            guard records[user] != nil else { return nil }
            let weight = InboxBudget.weight(ofContent: push.weight)
            guard hasReserve(user, by: nil, weight) else {
                _ = skip(of: user)
                return nil
            }
            collapse(push, of: user)
            let seq = add(.event(.push(push), expiresAt: push.expiresAt), to: user, .server, weight, now: now)
            if !push.content.collapseKey.isEmpty { records[user]?.collapsible[push.collapseName] = seq }
            let entry = InboxEntry(seq: seq, committedAt: now, event: .push(push))
            return InboxDelivery(user: user, entry: entry, nodes: places.nodes(of: user))
        }
    }

    /// Removes the entry that the push replaces.
    private mutating func collapse(_ push: Push, of user: UserID) {
        guard !push.content.collapseKey.isEmpty, let old = records[user]?.collapsible[push.collapseName],
            let inbox = records[user]?.inbox
        else { return }
        let index = inbox.firstIndex(after: old &- 1)
        guard index < inbox.entries.count, inbox.entries[index].seq == old else { return }
        if let entry = records[user]?.inbox.entries.remove(at: index) { uncount(entry, of: user) }
    }

    mutating func purgePushClaims(now: Timestamp, limit: Int) -> Int {
        let over = pushClaims.filter { $0.value.expiresAt <= now }.prefix(max(0, limit))
        for (key, _) in over { pushClaims[key] = nil }
        return over.count
    }
}

extension Push {
    /// The name under which a push replaces an earlier push: the collapse key together with the device.
    package var collapseName: String { (device?.rawValue ?? "") + " " + content.collapseKey }
}
