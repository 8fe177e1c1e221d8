// Hermes
// SPDX-License-Identifier: Apache-2.0

extension PushHandOff {
    /// A device that may be due for a push.
    struct Candidate: Sendable {
        let key: HandOffKey
        let target: PushTarget
        let plan: HandOffPlan
        /// The host of the service that the client named; nil: the service is one of the configuration.
        let host: String?
        /// Whether more entries wait after those read.
        let hasMore: Bool
    }

    /// Reads the waiting entries of a device; nil: none, or it has no token any more.
    func candidate(_ user: UserID, _ device: DeviceID) async throws(HermesError) -> Candidate? {
        let targets = try await tokens.store.pushTargets(of: user)
        guard let target = targets.first(where: { $0.device == device }) else { return nil }
        let taken = max(target.cursor, acknowledged(user, device, .claim))
        // Before pages are read, because the store corrects expiries before the clock jumps (``ClockJump``).
        let expiryTime = time.expiryTime()
        var page = try await store.entries(of: user, after: taken, limit: StoreSettings.maxPageEntries)
        var entries = page.withoutExpired(at: expiryTime).entries
        var last = page.entries.last?.lastSeq ?? taken
        var unread: Int?
        // Earlier pushed entries fill a page: the badge counts only that far.
        if last <= target.pushedUpTo, last < page.position.head {
            unread = HandOffPlan.pushWorthy(entries, for: user, device).count
            page = try await store.entries(of: user, after: target.pushedUpTo, limit: StoreSettings.maxPageEntries)
            entries += page.withoutExpired(at: expiryTime).entries
            last = page.entries.last?.lastSeq ?? target.pushedUpTo
        }
        guard last > target.pushedUpTo else { return nil }
        let plan = HandOffPlan(
            for: user,
            device,
            entries: entries,
            pushedUpTo: target.pushedUpTo,
            unread: unread,
            text: text
        )
        return Candidate(
            key: HandOffKey(user, device),
            target: target,
            plan: plan,
            host: target.token.namedHost,
            hasMore: last < page.position.head && !page.entries.isEmpty
        )
    }

    /// Reports messages that no device of the user has acknowledged to the webhook.
    ///
    /// - Returns: whether there are more.
    func reportUndelivered(of user: UserID) async throws(HermesError) -> Bool {
        guard let webhooks else { return false }
        var cursors = InboxCursors()
        for device in try await accounts.devices(of: user) {
            let seq = max(device.cursor, acknowledged(user, device.description.id, device.proof))
            cursors[device.description.id] = InboxCursors.Cursor(seq: seq, proof: device.proof)
        }
        let start = max(cursors.delivered, try await webhooks.store.undeliveredMark(of: user))
        let expiryTime = time.expiryTime()
        let page = try await store.entries(of: user, after: start, limit: StoreSettings.maxPageEntries)
        guard let last = page.entries.last?.lastSeq else { return false }
        let oldest = expiryTime.now.advanced(by: .zero - settings.reportedAge)
        let worthy = HandOffPlan.pushWorthy(page.withoutExpired(at: expiryTime).entries, for: user, nil)
        let notices = worthy.filter { $0.committedAt >= oldest }.map { WebhookNotice.messageUndelivered(user, $0) }
        try await webhooks.append(notices, marks: [user: last])
        for notice in notices { events.note(.notice(notice), .messageUndelivered) }
        return last < page.position.head
    }
}
