// Hermes
// SPDX-License-Identifier: Apache-2.0

extension MemoryStore: PushTokenStore {
    package func setPushToken(
        _ token: PushToken?,
        of device: DeviceID,
        _ user: UserID,
        shown: ShownProof,
        now: Timestamp
    ) async throws(HermesError) {
        try write { (state) throws(HermesError) in
            try state.setPushToken(token, of: device, user, shown: shown, now: now)
        }
    }

    package func pushTargets(of user: UserID) async throws(HermesError) -> [PushTarget] {
        try read { (state) throws(HermesError) in state.pushTargets(of: user) }
    }

    package func settlePushes(_ settlements: [PushSettlement]) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.settlePushes(settlements) }
    }

    package func devicesWithPushTokens(after owner: TokenOwner?, limit: Int) async throws(HermesError) -> [TokenOwner] {
        try read { (state) throws(HermesError) in state.devicesWithPushTokens(after: owner, limit: limit) }
    }

    package func devicesWithPushTokens(of user: UserID) async throws(HermesError) -> Set<DeviceID> {
        try read { (state) throws(HermesError) in state.devicesWithPushTokens(of: user) }
    }

    package func usersToPush(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID] {
        try read { (state) throws(HermesError) in state.usersToPush(after: user, limit: limit) }
    }
}

extension MemoryStore: WebhookStore {
    package func appendWebhooks(
        _ events: [WebhookEvent],
        marks: [UserID: UInt64],
        limit: Int
    ) async throws(HermesError) -> Int {
        try write { (state) throws(HermesError) in try state.appendWebhooks(events, marks: marks, limit: limit) }
    }

    package func dueWebhooks(now: Timestamp, limit: Int) async throws(HermesError) -> [StoredWebhook] {
        try read { (state) throws(HermesError) in state.dueWebhooks(now: now, limit: limit) }
    }

    package func settleWebhooks(_ settlements: [WebhookSettlement]) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.settleWebhooks(settlements) }
    }

    package func webhookQueue() async throws(HermesError) -> (count: Int, nextDue: Timestamp?) {
        try read { (state) throws(HermesError) in
            (state.webhooks.items.count, state.webhooks.items.map(\.due).min())
        }
    }

    package func undeliveredMark(of user: UserID) async throws(HermesError) -> UInt64 {
        try read { (state) throws(HermesError) in state.webhooks.marks[user] ?? 0 }
    }

    package func usersWithUndelivered(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID] {
        try read { (state) throws(HermesError) in state.usersWithUndelivered(after: user, limit: limit) }
    }
}
