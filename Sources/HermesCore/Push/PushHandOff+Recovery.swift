// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Derives the due keys from the store. A recovery reads all users for whom entries wait. If the schedule has no more
/// room, the recovery stops. When there is room again, the recovery continues after the last user that it has read.
extension PushHandOff {
    /// A list of users in the store.
    enum UserList: Sendable {
        /// The users with devices for which entries may wait.
        case toPush
        /// The users with entries that no device has acknowledged.
        case undelivered
    }

    /// The users of a list that a recovery has not read yet.
    struct UnreadUsers: Sendable {
        let list: UserList
        /// The last user that was read; nil if none was read.
        var last: UserID?
    }

    /// A user and the keys for which entries may wait.
    private struct FoundUser: Sendable {
        let id: UserID
        let keys: [HandOffKey]
    }

    /// Derives the due keys from the store, after a start, an overflow, or a change of the nodes. Each device first
    /// gets one deadline in which it can reconnect. Each node derives the keys of its own users.
    package func recover() async throws(HermesError) {
        let now = time.uptime()
        var lists: [UserList] = []
        if sender != nil { lists.append(.toPush) }
        if reportsUndelivered { lists.append(.undelivered) }
        var unread = state.withLock { [lists] in
            $0.beginRecovery(of: lists, now: now, longestPause: settings.backoff.limit)
        }
        do throws(HermesError) {
            while let first = unread.first {
                guard let rest = try await read(first) else {
                    unread.removeFirst()
                    continue
                }
                unread[0] = rest
                if state.withLock({ $0.schedule.isCrowded }) { break }
            }
        } catch {
            state.withLock { [unread] in $0.unread = unread }
            throw error
        }
        state.withLock { [unread] in $0.unread = unread }
    }

    /// Reads a page of users, and schedules their keys as far as there is room.
    ///
    /// - Returns: the users that were not read; nil if all users were read.
    private func read(_ unread: UnreadUsers) async throws(HermesError) -> UnreadUsers? {
        let users = try await users(of: unread)
        guard !users.isEmpty else { return nil }
        let due = time.uptime() + settings.deadline
        let last = state.withLock { state in
            var last: UserID?
            for user in users {
                if state.schedule.isCrowded { break }
                for key in user.keys { state.schedule.committed(key, upTo: .max, due: due) }
                last = user.id
            }
            return last
        }
        return UnreadUsers(list: unread.list, last: last ?? unread.last)
    }

    /// Returns the next users of a list, in ascending order. Users of other nodes have no keys.
    private func users(of unread: UnreadUsers) async throws(HermesError) -> [FoundUser] {
        let limit = StoreSettings.maxPageEntries
        switch unread.list {
        case .toPush:
            let users = try await tokens.store.usersToPush(after: unread.last, limit: limit)
            let devices = tokens.devices(of: users.filter(owns))
            return users.map { user in
                FoundUser(id: user, keys: devices[user, default: []].map { HandOffKey(user, $0) })
            }
        case .undelivered:
            guard let webhooks else { return [] }
            let users = try await webhooks.store.usersWithUndelivered(after: unread.last, limit: limit)
            return users.map { FoundUser(id: $0, keys: owns($0) ? [HandOffKey($0, nil)] : []) }
        }
    }

    func owns(_ user: UserID) -> Bool { cluster?.owns(user) ?? true }

    /// Whether ``recover()`` is due.
    var mustRecover: Bool {
        let now = time.uptime()
        return state.withLock { $0.nextRecovery.map { $0 <= now } ?? false }
    }

    func recoverReporting() async {
        await releaseUnneededClaims()
        do throws(HermesError) {
            try await recover()
        } catch {
            report(.failed(error))
            let due = time.uptime() + Self.recoveryPause
            state.withLock { $0.recoveryAt = due }
        }
    }
}

extension PushHandOff.State {
    /// The shortest time between two recoveries after overflows, and between two parts of a recovery.
    private static let pause = Duration.seconds(10)

    /// The time of the next recovery; nil if none is planned. After an overflow, no recovery is planned before there is
    /// room.
    var nextRecovery: Duration? {
        guard unread.isEmpty else { return schedule.isCrowded ? nil : recoveryAt }
        let afterOverflow = schedule.hasRoomAfterOverflow ? recoveryAt : nil
        let afterDrop = schedule.hasDropped ? droppedRecoveryAt : nil
        return [recoveriesDue.min(), afterOverflow, afterDrop].compactMap(\.self).min()
    }

    /// Begins a recovery, or continues the present one.
    ///
    /// If held keys were dropped again since the last recovery began, the time until the next recovery of such keys
    /// doubles, because their services seem to fail for a long time.
    ///
    /// - Parameter longestPause: the longest time before dropped keys are recovered.
    /// - Returns: the users to be read.
    mutating func beginRecovery(
        of lists: [PushHandOff.UserList],
        now: Duration,
        longestPause: Duration
    ) -> [PushHandOff.UnreadUsers] {
        recoveryAt = now + Self.pause
        guard unread.isEmpty else { return unread }
        drops = schedule.hasDropped ? drops + 1 : 0
        let backoff = Backoff(base: Self.pause, limit: longestPause)
        droppedRecoveryAt = now + backoff.delay(failures: drops + 1, random: 1)
        schedule.clearOverflow()
        recoveriesDue.removeAll { $0 <= now }
        return lists.map { PushHandOff.UnreadUsers(list: $0) }
    }
}
