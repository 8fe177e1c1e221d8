// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The accounts that were disabled since the start of the process and are still disabled. If calls that change the same
/// account overlap, the store may make the changes in an order that differs from the order in which the calls end. In
/// that case, the state is read from the store. A deleted account is forgotten after ``memory``. Does no I/O. The owner
/// is ``AccountService``.
struct SuspendedAccounts: Sendable {
    private struct Changes: Sendable {
        var running = 0
        /// Whether the store must be read, because changes have overlapped or a change has failed since the last read.
        var haveOverlapped = false
        /// The number of the last change.
        var last: UInt64 = 0
    }

    /// The time for which a deleted account is remembered. The account's kept sessions have ended with the deletion.
    /// After that, for a few minutes at most, a will of the account's last connections may still be published, and also
    /// a will for which the store had no room.
    static let memory = Duration.seconds(3600)

    private(set) var users: Set<UserID> = []
    /// The deleted accounts, with the uptime at which they are forgotten.
    private var forgottenAt: [UserID: Duration] = [:]
    /// The changes of accounts that are being changed, or whose state must be read from the store.
    private var changes: [UserID: Changes] = [:]
    private var lastChange: UInt64 = 0

    mutating func changeStarted(_ user: UserID) {
        lastChange += 1
        var own = changes[user] ?? Changes()
        if own.running > 0 { own.haveOverlapped = true }
        own.running += 1
        own.last = lastChange
        changes[user] = own
    }

    /// - Parameter isDisabled: the stored state; nil if the change failed. A failed change may have been stored or not.
    /// - Returns: if the store must be read now, the number of the last change, for ``read(_:isDisabled:after:)``;
    ///   otherwise nil.
    mutating func changeEnded(_ user: UserID, isDisabled: Bool?) -> UInt64? {
        guard var own = changes[user] else { return nil }
        own.running -= 1
        if isDisabled == nil { own.haveOverlapped = true }
        changes[user] = own.running > 0 || own.haveOverlapped ? own : nil
        // If the store must be read, this state applies only until that read.
        if let isDisabled { set(user, isDisabled) }
        return own.running == 0 && own.haveOverlapped ? own.last : nil
    }

    /// Records the state that was read from the store after a change. If another change has begun since, the state is
    /// ignored, because it will be read again.
    ///
    /// - Parameter isDisabled: the stored state; nil if there is no such account.
    mutating func read(_ user: UserID, isDisabled: Bool?, after change: UInt64) {
        guard let own = changes[user], own.running == 0, own.last == change else { return }
        changes[user] = nil
        if let isDisabled { set(user, isDisabled) }
    }

    /// Records that an account is deleted.
    mutating func deleted(_ user: UserID, now: Duration) {
        if users.contains(user) { forgottenAt[user] = now + Self.memory }
    }

    /// Forgets the accounts that were deleted a while ago.
    mutating func forget(now: Duration) {
        for (user, due) in forgottenAt where due <= now {
            forgottenAt[user] = nil
            users.remove(user)
        }
    }

    private mutating func set(_ user: UserID, _ isDisabled: Bool) {
        if isDisabled { users.insert(user) } else { users.remove(user) }
    }
}
