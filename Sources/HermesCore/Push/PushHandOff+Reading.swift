// Hermes
// SPDX-License-Identifier: Apache-2.0

extension PushHandOff {
    /// A device that may be due for a push.
    struct Candidate: Sendable {
        let key: HandOffKey
        let target: PushTarget
        let plan: HandOffPlan
        /// The host of the service that the client named; nil: the operator has configured the service.
        let host: String?
        /// The time until the next check, because more entries wait; nil: no more entries wait.
        let nextIn: Duration?
        /// The time at which its entries were read.
        let readAt: Duration
        /// The place at the named host, once it is taken.
        var place: HostShares.Place?
    }

    /// What a check of a device finds.
    enum Finding: Sendable {
        /// Nothing waits, or the device no longer has a token.
        case nothing
        /// The device still has this time to acknowledge the waiting entries.
        case nothingYet(Duration)
        case due(Candidate)
    }

    /// Returns the time that a device or user still has to acknowledge an entry. Zero: the time is over, or the clock
    /// was set back since the commit.
    private func rest(of entry: InboxEntry) -> Duration {
        let now = time.now()
        guard entry.committedAt <= now else { return .zero }
        return max(.zero, settings.deadline - .milliseconds(now.rawValue - entry.committedAt.rawValue))
    }

    /// The least time between two checks of a key whose entries become due one after the other.
    private var leastRest: Duration { settings.deadline / 10 }

    /// Reads the waiting entries of a device.
    func find(_ user: UserID, _ device: DeviceID) async throws(HermesError) -> Finding {
        let readAt = time.uptime()
        let targets = try await tokens.store.pushTargets(of: user)
        guard let target = targets.first(where: { $0.device == device }) else { return .nothing }
        let taken = max(target.cursor, acknowledged(user, device, .claim))
        // The time is taken before pages are read: when the clock jumps, the store corrects the expiries first
        // (``ClockJump``). With a later time, entries that were read before the correction could seem to be expired.
        let expiryTime = time.expiryTime()
        var page = try await store.entries(of: user, after: taken, limit: StoreSettings.maxPageEntries)
        var entries = page.withoutExpired(at: expiryTime).entries
        var last = page.entries.last?.lastSeq ?? taken
        var unread: Int?
        // The page holds only entries that were pushed before. The badge counts the entries of this page only; the
        // entries to push are read from another page.
        if last <= target.pushedUpTo, last < page.position.head {
            unread = HandOffPlan.pushWorthy(entries, for: user, device).count
            page = try await store.entries(of: user, after: target.pushedUpTo, limit: StoreSettings.maxPageEntries)
            entries += page.withoutExpired(at: expiryTime).entries
            last = page.entries.last?.lastSeq ?? target.pushedUpTo
        }
        guard last > target.pushedUpTo else { return .nothing }
        var nextIn: Duration? = last < page.position.head && !page.entries.isEmpty ? .zero : nil
        var end = UInt64.max
        // If the device is awake on this node, each entry has its own deadline. Otherwise, all entries are due
        // together.
        if devices.awakeDevices(of: user).contains(device),
            let fresh = entries.firstIndex(where: { rest(of: $0) > .zero })
        {
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
    /// - Returns: the time until the next check; nil: there is nothing more to check.
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
        let oldest = expiryTime.now.advanced(by: .zero - settings.reportedAge)
        let entries = page.withoutExpired(at: expiryTime).entries.filter { $0.lastSeq <= last }
        let worthy = HandOffPlan.pushWorthy(entries, for: user, nil)
        let notices = worthy.filter { $0.committedAt >= oldest }.map { WebhookNotice.messageUndelivered(user, $0) }
        try await webhooks.append(notices, marks: [user: last])
        for notice in notices { events.note(.notice(notice), .messageUndelivered) }
        return nextIn ?? (last < page.position.head ? .zero : nil)
    }
}
