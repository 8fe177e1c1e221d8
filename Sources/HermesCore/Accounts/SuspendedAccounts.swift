// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The accounts that were disabled since the start and still are. Several changes of one account may overlap, and end
/// in another order than the order in which the store made them; in that case the store is asked. Pure; owner:
/// ``AccountService``.
struct SuspendedAccounts: Sendable {
    private struct Changes: Sendable {
        var running = 0
        /// Whether several have overlapped, and the store was not read since.
        var haveOverlapped = false
        /// The number of the last one.
        var last: UInt64 = 0
    }

    private(set) var users: Set<UserID> = []
    /// Of accounts that are being changed.
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

    /// - Parameter isDisabled: what was stored; nil: the change failed, and may have been made or not.
    /// - Returns: set if the store has to be read; for ``read(_:isDisabled:after:)``.
    mutating func changeEnded(_ user: UserID, isDisabled: Bool?) -> UInt64? {
        guard var own = changes[user] else { return nil }
        own.running -= 1
        if isDisabled == nil { own.haveOverlapped = true }
        changes[user] = own.running > 0 || own.haveOverlapped ? own : nil
        // Until the store is read.
        if let isDisabled { set(user, isDisabled) }
        return own.running == 0 && own.haveOverlapped ? own.last : nil
    }

    /// The store was read after a change; what changed since will be read again.
    mutating func read(_ user: UserID, isDisabled: Bool, after change: UInt64) {
        guard let own = changes[user], own.running == 0, own.last == change else { return }
        changes[user] = nil
        set(user, isDisabled)
    }

    private mutating func set(_ user: UserID, _ isDisabled: Bool) {
        if isDisabled { users.insert(user) } else { users.remove(user) }
    }
}
