// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The accounts that are online on any node, as far as this node knows. Each change has a version, so it does not
/// matter in which order different links deliver changes. Does no I/O.
struct PresenceDirectory: Sendable {
    private struct Entry: Sendable {
        var version: UInt64
        /// The value of ``changes`` when this version was noted.
        var notedAt: UInt64
        var since: Duration
    }

    /// The time for which the directory remembers that an account went offline. No message is under way for longer.
    static let memory = Duration.seconds(60)

    private var entries: [UserID: Entry] = [:]
    /// The number of changes.
    private(set) var changes: UInt64 = 0

    /// Returns the version of an account's presence; 0 if the account is not known here.
    func version(of user: UserID) -> UInt64 { entries[user]?.version ?? 0 }

    func isOnline(_ user: UserID) -> Bool { version(of: user) & 1 == 1 }

    /// - Returns: whether the change takes the account online or offline.
    mutating func note(_ change: PresenceChange, now: Duration) -> Bool {
        let known = version(of: change.user)
        guard change.version > known else { return false }
        let hasTurned = change.isOnline != (known & 1 == 1)
        changes += 1
        entries[change.user] = Entry(version: change.version, notedAt: changes, since: now)
        return hasTurned
    }

    /// Updates the directory to the accounts that are online according to the record.
    ///
    /// - Parameter changesBefore: the value of ``changes`` before the reading of the record began. Changes that were
    ///   noted after that are newer than the record.
    /// - Returns: the accounts that go online or offline by this update.
    mutating func reload(_ online: [PresenceChange], changesBefore: UInt64, now: Duration) -> [UserID] {
        let listed = Set(online.map(\.user))
        var turned = online.filter { note($0, now: now) }.map(\.user)
        let gone = entries.filter { user, entry in
            entry.version & 1 == 1 && entry.notedAt <= changesBefore && !listed.contains(user)
        }
        for (user, entry) in gone {
            // The record has this version or a later version.
            _ = note(PresenceChange(user: user, version: entry.version + 1), now: now)
            turned.append(user)
        }
        return turned
    }

    /// Forgets the accounts that went offline a while ago.
    mutating func forget(now: Duration) {
        entries = entries.filter { $1.version & 1 == 1 || now - $1.since < Self.memory }
    }
}
