// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A device or user for which entries may have to be pushed or reported.
package struct HandOffKey: Sendable, Hashable {
    package let user: UserID
    /// A device with a push token; nil for the user as a whole, for the report of undelivered messages.
    package let device: DeviceID?

    package init(_ user: UserID, _ device: DeviceID?) {
        self.user = user
        self.device = device
    }
}

/// A check to be scheduled on the node that is responsible for the user.
package struct HandOffDue: Sendable, Hashable {
    package let key: HandOffKey
    /// The seq of the newest waiting entry; `UInt64.max` if the device has set a token.
    let seq: UInt64
    /// The time from now until the check is due.
    let wait: Duration
}

/// Decides which inbox to check next, and when. Does no I/O. The owner is ``PushHandOff``.
///
/// The schedule contains only the keys for which something was committed, and the times of their checks. The entries to
/// push are read from the store when a key is checked. The whole schedule can also be derived from the store again.
///
/// Keys whose notifications cannot be sent now are *held*: they wait for a retry, or for a service that is paused or
/// busy. Held keys get at most half of the room, so that a failing service does not delay the other services. If there
/// are more held keys, the keys that would wait longest are dropped.
package struct HandOffSchedule: Sendable {
    private struct Item: Sendable {
        /// The time at which the oldest waiting entry is due.
        var due: Duration
        /// The seq of the newest waiting entry.
        var lastSeq: UInt64
        /// The number of failures so far.
        var attempts = 0
        /// Whether the key is being checked now.
        var isTaken = false
        /// Whether an entry was committed for the key during the check.
        var isAgain = false
        /// Whether the device set a token during the check. Then a failure of the check says nothing about this token.
        var isRenewed = false
    }

    private let capacity: Int
    private var items: [HandOffKey: Item] = [:]
    /// The keys of the items that are not being checked.
    private var waiting = DueKeys<HandOffKey, Duration>()
    /// The held keys that are not being checked, by their negative due times. So the first key is the key that is due
    /// last.
    private var held = DueKeys<HandOffKey, Duration>()
    /// The number of keys that are being checked and wait until their service has room for another batch.
    private var blockedCount = 0
    /// Whether a key was left out because there was no room, so that everything must be derived from the store again.
    package private(set) var hasOverflowed = false
    /// Whether a held key was dropped, so that everything must be derived from the store again.
    package private(set) var hasDropped = false
    /// Whether a key was dropped because very many keys wait for their services to have room for another batch.
    private var hasDroppedBlocked = false

    /// Whether less than a quarter of the room is free. The last quarter is only for new entries, not for keys that are
    /// derived from the store.
    package var isCrowded: Bool { items.count > capacity - capacity / 4 }

    /// Whether a key was left out or dropped, and a quarter of the room is free again. If the key was dropped because
    /// services were too busy, there is another condition: keys that wait for busy services use at most a quarter of
    /// the room.
    package var hasRoomAfterOverflow: Bool {
        !isCrowded && (hasOverflowed || hasDroppedBlocked && blockedCount <= capacity / 4)
    }

    /// - Parameter capacity: the largest number of keys.
    package init(capacity: Int = 200_000) { self.capacity = max(1, capacity) }

    /// The number of keys that wait or are being checked.
    package var count: Int { items.count }

    /// The time at which the next key is due; nil if no key waits. The time is never too late, but can be too early.
    package var nextDue: Duration? { waiting.nextDue }

    /// Records that entries up to `seq` were committed for a key. The key is checked at `due` if these entries are not
    /// acknowledged by then.
    package mutating func committed(_ key: HandOffKey, upTo seq: UInt64, due: Duration) {
        guard var item = items[key] else {
            guard items.count < capacity else {
                hasOverflowed = true
                return
            }
            items[key] = Item(due: due, lastSeq: seq)
            waiting.set(key, dueAt: due)
            return
        }
        item.lastSeq = max(item.lastSeq, seq)
        if item.isTaken { item.isAgain = true }
        let isEarlier = due < item.due && item.attempts == 0 && !item.isTaken
        if isEarlier { item.due = due }
        items[key] = item
        if isEarlier { set(key, dueAt: due) }
    }

    /// Records that a device has set a token. Any entry of the inbox may have to be pushed to this token. Failures of
    /// an earlier token do not delay the check.
    package mutating func renewed(_ key: HandOffKey, due: Duration) {
        if var item = items[key], item.isTaken || item.attempts > 0 {
            item.attempts = 0
            item.isRenewed = item.isTaken
            if !item.isTaken {
                item.due = min(item.due, due)
                set(key, dueAt: item.due)
            }
            items[key] = item
        }
        committed(key, upTo: .max, due: due)
    }

    /// Records that a device has acknowledged everything up to `seq`. The device and its user then need no check for
    /// these entries. If the client only claimed to be this device (`isProven` is false), the user still needs a check
    /// (``InboxCursors/delivered``).
    package mutating func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64, isProven: Bool = true) {
        for key in [HandOffKey(user, device), HandOffKey(user, nil)] where isProven || key.device != nil {
            guard let item = items[key], item.lastSeq <= seq, !item.isTaken else { continue }
            remove(key)
        }
    }

    /// Returns at most `limit` due keys. For each key, ``settled(_:now:retryAt:moreAt:)`` or
    /// ``postponed(_:until:now:)`` must be called afterwards.
    package mutating func takeDue(now: Duration, limit: Int) -> [HandOffKey] {
        var taken: [HandOffKey] = []
        while taken.count < limit, let key = waiting.popDue(now: now) {
            items[key]?.isTaken = true
            held.remove(key)
            taken.append(key)
        }
        return taken
    }

    /// Records that a key was checked.
    ///
    /// - Parameters:
    ///   - now: the present time. It is the time of the next check if entries were committed during this check.
    ///   - retryAt: the time of the next check if something failed; nil if nothing failed.
    ///   - moreAt: the time of the next check if entries remain; nil if no entry remains.
    package mutating func settled(
        _ key: HandOffKey,
        now: Duration,
        retryAt: Duration? = nil,
        moreAt: Duration? = nil
    ) {
        guard var item = items[key], item.isTaken else { return }
        item.isTaken = false
        var isHeld = false
        if let retryAt, !item.isRenewed {
            item.attempts += 1
            item.due = retryAt
            isHeld = true
        } else if let due = item.isAgain || item.isRenewed ? now : moreAt {
            item.attempts = 0
            item.due = due
        } else {
            items[key] = nil
            return
        }
        item.isAgain = false
        item.isRenewed = false
        items[key] = item
        set(key, dueAt: item.due, isHeld: isHeld)
    }

    /// Records that a key was not checked, and lets the key wait until `due`. If the device set a token during the
    /// check, the key is due at once, because the reason for the wait may concern the earlier token.
    package mutating func postponed(_ key: HandOffKey, until due: Duration, now: Duration) {
        guard var item = items[key], item.isTaken else { return }
        item.due = item.isRenewed ? min(due, now) : due
        item.isTaken = false
        item.isAgain = false
        item.isRenewed = false
        items[key] = item
        set(key, dueAt: item.due, isHeld: item.due > now)
    }

    /// Records that a key that is being checked waits until its service has room for another batch. ``unblocked(_:)``
    /// must be called when the key no longer waits.
    ///
    /// - Returns: false if the key was dropped instead, because very many keys wait in this way.
    package mutating func blocked(_ key: HandOffKey) -> Bool {
        guard blockedCount < capacity / 2 else {
            items[key] = nil
            hasDroppedBlocked = true
            return false
        }
        blockedCount += 1
        dropSurplus()
        return true
    }

    /// Records that this number of keys no longer wait for their service (``blocked(_:)``).
    package mutating func unblocked(_ count: Int) { blockedCount -= count }

    /// Returns the number of a key's failures so far.
    package func attempts(of key: HandOffKey) -> Int { items[key]?.attempts ?? 0 }

    /// Forgets that keys were left out or dropped. The caller then derives everything from the store again.
    package mutating func clearOverflow() {
        hasOverflowed = false
        hasDropped = false
        hasDroppedBlocked = false
    }

    /// Sets the due time of a key that is not being checked.
    private mutating func set(_ key: HandOffKey, dueAt due: Duration, isHeld: Bool = false) {
        waiting.set(key, dueAt: due)
        guard isHeld else { return held.remove(key) }
        held.set(key, dueAt: .zero - due)
        dropSurplus()
    }

    /// Drops held keys until the held keys and the blocked keys use at most half of the room. The keys that are due
    /// last are dropped first.
    private mutating func dropSurplus() {
        while held.count + blockedCount > capacity / 2, let key = held.popDue(now: .zero) {
            remove(key)
            hasDropped = true
        }
    }

    private mutating func remove(_ key: HandOffKey) {
        items[key] = nil
        waiting.remove(key)
        held.remove(key)
    }
}
