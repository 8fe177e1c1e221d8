// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension DeviceRegistry {
    /// The connections of a part of the users. State: a `Mutex` around a struct.
    final class Shard: Sendable {
        struct Presence {
            let isOnline: Bool
            let watchers: Dictionary<ObjectIdentifier, any Attachment>.Values
            let version: UInt64
            /// The time of the last change; nil if it is not known.
            let changedAt: Timestamp?
            /// The number of times that an attachment has stopped watching a user of the shard.
            let removals: UInt64
        }

        private struct Record: Sendable {
            var attachments: [any Attachment] = []
            /// The watchers by identity, so that the removal of a watcher takes no longer if there are thousands of
            /// watchers.
            var watchers: [ObjectIdentifier: any Attachment] = [:]
            /// Devices whose apps are not in the foreground, as reported over their present connection.
            var resting: Set<DeviceID> = []
            /// The version of the last change between online and offline, and the time of this change.
            var version: UInt64 = 0
            var changedAt: Timestamp?

            var isEmpty: Bool { attachments.isEmpty && watchers.isEmpty }
        }

        private struct State: Sendable {
            var records: [UserID: Record] = [:]
            /// The number of attachments of all users.
            var attached = 0
            /// For each attachment of this shard's users, the users that it watches.
            var watched: [ObjectIdentifier: Set<UserID>] = [:]
            var lastVersion: UInt64 = 0
            /// The number of the last attachment.
            var lastConnection: UInt64 = 0
            var removals: UInt64 = 0
            /// For each user whose presence changed in the last second: the time of the first change, and the number of
            /// changes.
            var changes: [UserID: (since: Duration, count: Int)] = [:]

            mutating func changePresence(of user: UserID, now: Timestamp) {
                lastVersion += 1
                records[user]?.version = lastVersion
                records[user]?.changedAt = now
            }

            mutating func dropIfEmpty(_ user: UserID) {
                if records[user]?.isEmpty == true { records[user] = nil }
            }
        }

        private let state = Mutex(State())

        /// - Returns: the attachment that was replaced, whether the user comes online, and the number of the
        ///   connection; the number is 0 if the attachment was already attached. If the device has an attachment whose
        ///   client asked later, the new attachment counts as replaced, and is not attached.
        func attach(
            _ attachment: any Attachment,
            _ principal: Principal,
            now: Timestamp
        ) -> (replaced: (any Attachment)?, isFirst: Bool, connection: UInt64) {
            state.withLock { state in
                var attachments = state.records[principal.user]?.attachments ?? []
                if attachments.contains(where: { $0 === attachment }) { return (nil, false, 0) }
                let isFirst = attachments.isEmpty
                var replaced: (any Attachment)?
                // An attachment that takes no events is not a device of the account, whatever device id it has. So it
                // does not replace a device, and no device replaces it.
                let index = attachments.firstIndex {
                    $0.principal.device == principal.device && $0.takesEvents == attachment.takesEvents
                }
                if let index {
                    guard attachments[index].order <= attachment.order else { return (attachment, false, 0) }
                    replaced = attachments[index]
                    attachments[index] = attachment
                } else {
                    attachments.append(attachment)
                    state.attached += 1
                }
                if attachment.takesEvents { state.records[principal.user]?.resting.remove(principal.device) }
                state.records[principal.user, default: Record()].attachments = attachments
                if isFirst { state.changePresence(of: principal.user, now: now) }
                state.lastConnection += 1
                return (replaced, isFirst, state.lastConnection)
            }
        }

        /// - Returns: whether this takes the user offline.
        func detach(_ attachment: any Attachment, _ user: UserID, now: Timestamp) -> Bool {
            state.withLock { state in
                guard let index = state.records[user]?.attachments.firstIndex(where: { $0 === attachment }) else {
                    return false
                }
                state.records[user]?.attachments.remove(at: index)
                state.attached -= 1
                if attachment.takesEvents { state.records[user]?.resting.remove(attachment.principal.device) }
                return Self.settle(user, &state, now: now)
            }
        }

        func remove(
            _ user: UserID,
            now: Timestamp,
            where matching: (Principal) -> Bool
        ) -> (removed: [any Attachment], isOffline: Bool) {
            // The caller's closure runs outside the lock. Attachments that are added meanwhile are not removed.
            let candidates = attachments(of: user).filter { matching($0.principal) }
            guard !candidates.isEmpty else { return ([], false) }
            return state.withLock { state in
                var removed: [any Attachment] = []
                for candidate in candidates {
                    guard let index = state.records[user]?.attachments.firstIndex(where: { $0 === candidate }) else {
                        continue
                    }
                    state.records[user]?.attachments.remove(at: index)
                    removed.append(candidate)
                }
                state.attached -= removed.count
                return (removed, removed.isEmpty ? false : Self.settle(user, &state, now: now))
            }
        }

        func attachments(of user: UserID) -> [any Attachment] {
            state.withLock { $0.records[user]?.attachments ?? [] }
        }

        func setResting(_ isResting: Bool, _ attachment: any Attachment, _ principal: Principal) {
            state.withLock { state in
                guard state.records[principal.user]?.attachments.contains(where: { $0 === attachment }) == true else {
                    return
                }
                if isResting {
                    state.records[principal.user]?.resting.insert(principal.device)
                } else {
                    state.records[principal.user]?.resting.remove(principal.device)
                }
            }
        }

        func awakeDevices(of user: UserID) -> [DeviceID] {
            let (attachments, resting) = state.withLock { state in
                (state.records[user]?.attachments ?? [], state.records[user]?.resting ?? [])
            }
            return attachments.filter(\.takesEvents).map(\.principal.device).filter { !resting.contains($0) }
        }

        var count: Int { state.withLock { $0.attached } }

        /// Returns the attachments among `some` that watch the user.
        func watching(_ user: UserID, among some: ArraySlice<any Attachment>) -> [any Attachment] {
            state.withLock { state in
                some.filter { state.records[user]?.watchers[ObjectIdentifier($0)] != nil }
            }
        }

        func presence(of user: UserID) -> Presence {
            state.withLock { state in
                let record = state.records[user]
                return Presence(
                    isOnline: record?.attachments.isEmpty == false,
                    watchers: (record?.watchers ?? [:]).values,
                    version: record?.version ?? 0,
                    changedAt: record?.changedAt,
                    removals: state.removals
                )
            }
        }

        /// Counts a change of a user's presence.
        ///
        /// - Returns: whether the notices of the change may be sent at once, and the number of watchers.
        func countChange(of user: UserID, now: Duration) -> (mayTell: Bool, watchers: Int) {
            state.withLock { state in
                let watchers = state.records[user]?.watchers.count ?? 0
                guard let changes = state.changes[user], now - changes.since < PresenceLine.rest else {
                    state.changes[user] = (now, 1)
                    return (true, watchers)
                }
                guard changes.count < DeviceRegistry.maxToldPerSecond else { return (false, watchers) }
                state.changes[user] = (changes.since, changes.count + 1)
                return (true, watchers)
            }
        }

        /// Forgets changes that are older than a second.
        func forgetChanges(now: Duration) {
            state.withLock { state in
                if !state.changes.isEmpty {
                    state.changes = state.changes.filter { now - $1.since < PresenceLine.rest }
                }
            }
        }

        // MARK: Watching

        /// - Returns: the newly watched users.
        func addWatched(
            _ users: [UserID],
            by attachment: any Attachment,
            _ own: UserID,
            limit: Int
        ) -> [UserID] {
            state.withLock { state in
                // An attachment that is already detached must leave nothing behind.
                guard state.records[own]?.attachments.contains(where: { $0 === attachment }) == true else { return [] }
                var watched = state.watched[ObjectIdentifier(attachment)] ?? []
                var added: [UserID] = []
                for user in users where watched.count < limit && watched.insert(user).inserted { added.append(user) }
                if !added.isEmpty { state.watched[ObjectIdentifier(attachment)] = watched }
                return added
            }
        }

        func watches(_ user: UserID, _ attachment: any Attachment) -> Bool {
            state.withLock { $0.watched[ObjectIdentifier(attachment)]?.contains(user) ?? false }
        }

        func watchedCount(by attachment: any Attachment) -> Int {
            state.withLock { $0.watched[ObjectIdentifier(attachment)]?.count ?? 0 }
        }

        func removeWatched(_ users: [UserID], by attachment: any Attachment) {
            state.withLock { $0.watched[ObjectIdentifier(attachment)]?.subtract(users) }
        }

        func takeWatched(by attachment: any Attachment) -> Set<UserID> {
            state.withLock { $0.watched.removeValue(forKey: ObjectIdentifier(attachment)) ?? [] }
        }

        func addWatcher(_ attachment: any Attachment, of user: UserID) {
            state.withLock { $0.records[user, default: Record()].watchers[ObjectIdentifier(attachment)] = attachment }
        }

        func removeWatcher(_ attachment: any Attachment, of user: UserID) {
            state.withLock { state in
                state.removals += 1
                state.records[user]?.watchers[ObjectIdentifier(attachment)] = nil
                state.dropIfEmpty(user)
            }
        }

        private static func settle(_ user: UserID, _ state: inout State, now: Timestamp) -> Bool {
            let isOffline = state.records[user]?.attachments.isEmpty == true
            if isOffline { state.changePresence(of: user, now: now) }
            state.dropIfEmpty(user)
            return isOffline
        }
    }
}
