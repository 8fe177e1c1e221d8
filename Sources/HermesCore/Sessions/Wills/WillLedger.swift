// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Synchronization

/// Keeps the wills of this process in the record (the content of the store that all nodes share), so that another node
/// publishes them if this node vanishes. When the delay of a will is over, the process that takes the will from the
/// record publishes it. A process that is alone has no ledger.
///
/// State: a `Mutex` around a struct; no other code is called while it is locked. One task at a time takes the changes.
package final class WillLedger: Sendable {
    /// The decision on a will whose delay is over.
    package enum Verdict: Sendable, Hashable {
        case publish
        /// The account of the will's client has lost its name, so ``PendingWill/leavingNothing()`` is published.
        case publishLeavingNothing
        /// The will is not published: the client withdrew it, the client's account is disabled, or another node
        /// publishes it.
        case drop
    }

    package typealias Completion = @Sendable (Verdict) -> Void

    /// A will whose delay is over. It is being taken from the record.
    struct Taking: Sendable {
        let will: PendingWill
        /// Whether the client's account must be read, because it may have changed since the connection ended.
        let isLate: Bool
        let completion: Completion
    }

    /// If this many wills, or wills of this many bytes, wait for the record, further wills are not recorded.
    static let maxWaiting = 65_536
    static let maxWaitingBytes = 16 << 20

    /// The changes of one will that the record does not have yet.
    private struct Waiting: Sendable {
        var gift: StoredWill?
        /// The delay of the change ``WillChange/wait(_:delay:)``; nil if there is no such change.
        var delay: Duration?
        var isTaken = false
        var isRemoved = false

        init() {}

        init(_ change: WillChange) {
            switch change {
            case .give(let will): gift = will
            case .wait(_, let delay): self.delay = delay
            case .take: isTaken = true
            case .remove: isRemoved = true
            }
        }

        var bytes: Int { gift?.will.weight ?? 0 }

        mutating func add(_ later: Waiting) {
            gift = later.gift ?? gift
            delay = later.delay ?? delay
            isTaken = isTaken || later.isTaken
            isRemoved = isRemoved || later.isRemoved
        }

        func changes(of id: WillID) -> [WillChange] {
            let changes: [WillChange?] = [
                gift.map { .give($0) }, delay.map { .wait(id, delay: $0) }, isTaken ? .take(id) : nil,
                isRemoved ? .remove(id) : nil,
            ]
            return changes.compactMap(\.self)
        }
    }

    private struct State: Sendable {
        var lastNumber: UInt64 = 0
        var waiting: [WillID: Waiting] = [:]
        /// The wills with waiting changes, in the order of their first changes. The list can also contain wills that
        /// have no waiting changes any more.
        var order = Deque<WillID>()
        var bytes = 0
        /// The wills that the record does not have yet.
        var unrecorded: Set<WillID> = []
        var taking: [WillID: Taking] = [:]
        /// The wills that were taken and are being published.
        var publishing: Set<WillID> = []
        /// Whether this process has left the record, so that its wills belong to another process.
        var isOut = false

        var hasRoom: Bool { unrecorded.count < maxWaiting && bytes < maxWaitingBytes }

        /// - Parameter isFirst: whether the change is put before the waiting changes of the same will.
        mutating func add(_ change: WillChange, isFirst: Bool = false) {
            let known = waiting[change.id]
            bytes -= known?.bytes ?? 0
            var sum = isFirst ? Waiting(change) : known ?? Waiting()
            sum.add(isFirst ? known ?? Waiting() : Waiting(change))
            waiting[change.id] = sum
            bytes += sum.bytes
            guard known == nil else { return }
            if isFirst { order.prepend(change.id) } else { order.append(change.id) }
        }

        mutating func remove(_ id: WillID) -> Waiting? {
            let removed = waiting.removeValue(forKey: id)
            bytes -= removed?.bytes ?? 0
            return removed
        }
    }

    /// Called when this process has taken over wills of a process that has gone.
    package let inherited = Hook<[StoredWill]>()
    private let node: NodeIdentity
    private let wakeUp: WakeUp
    private let state = Mutex(State())

    init(_ roster: ClusterRoster) {
        node = roster.node
        wakeUp = roster.wakeUp
    }

    /// Records the will of a client that has connected or whose permissions have changed.
    ///
    /// - Parameters:
    ///   - key: the client's session.
    ///   - delay: how long the will waits after the end of the connection.
    /// - Returns: the will to use from now on. If that will has no id, it is not recorded, and only this process has
    ///   it. The reason is that too many wills wait for the record, or that this process has left the record.
    package func give(_ will: PendingWill, of key: SessionKey, delay: Duration) -> PendingWill {
        let recorded = state.withLock { state -> PendingWill? in
            guard !state.isOut, state.hasRoom else { return nil }
            if will.id == nil { state.lastNumber += 1 }
            let id = will.id ?? WillID(node: node, number: state.lastNumber)
            if will.id == nil { state.unrecorded.insert(id) }
            let recorded = will.recorded(as: id)
            state.add(.give(StoredWill(id: id, key: key, will: recorded, delay: delay)))
            return recorded
        }
        if recorded != nil { wakeUp.signal() }
        return recorded ?? will
    }

    /// Records that the client has gone without DISCONNECT, so that the delay of the will begins.
    package func wait(_ id: WillID, delay: Duration) { add(.wait(id, delay: delay)) }

    /// Removes a will from the record, because it was published or must not be published.
    package func remove(_ id: WillID) {
        let isTold = state.withLock { state in
            state.publishing.remove(id)
            guard !state.isOut else { return false }
            // The will was given and removed since the record was last written, so the record need not know about it.
            if state.waiting[id]?.gift != nil, state.unrecorded.contains(id) {
                _ = state.remove(id)
                state.unrecorded.remove(id)
                return false
            }
            state.add(.remove(id))
            return true
        }
        if isTold { wakeUp.signal() }
    }

    /// Leaves a will to another process, because this process could not publish it before its own end.
    package func leaveToOthers(_ id: WillID) { state.withLock { _ = $0.publishing.remove(id) } }

    /// Takes a will from the record, because its delay is over.
    ///
    /// - Parameters:
    ///   - isLate: whether the account of the will's client may have changed since the connection ended.
    ///   - completion: called once, on any thread.
    package func take(_ will: PendingWill, isLate: Bool, completion: @escaping Completion) {
        guard let id = will.id else { return completion(.publish) }
        let verdict = state.withLock { state -> Verdict? in
            // After this process has left the record, it publishes only wills that were never in the record, because no
            // other process can publish those.
            if state.isOut { return state.unrecorded.remove(id) == nil ? .drop : .publish }
            guard state.taking[id] == nil else { return .drop }
            state.taking[id] = Taking(will: will, isLate: isLate, completion: completion)
            state.add(.take(id))
            return nil
        }
        if let verdict { completion(verdict) } else { wakeUp.signal() }
    }

    private func add(_ change: WillChange) {
        let isAdded = state.withLock { state in
            if !state.isOut { state.add(change) }
            return !state.isOut
        }
        if isAdded { wakeUp.signal() }
    }

    // MARK: For the member of the cluster

    /// Removes and returns the changes of the wills that have waited longest, for at most `limit` wills.
    func takeChanges(_ limit: Int) -> [WillChange] {
        state.withLock { state in
            var changes: [WillChange] = []
            var count = 0
            while count < limit, let id = state.order.popFirst() {
                guard let waiting = state.remove(id) else { continue }
                changes += waiting.changes(of: id)
                count += 1
            }
            return changes
        }
    }

    /// Puts back changes that could not be written to the record.
    func putBack(_ changes: [WillChange]) {
        state.withLock { state in
            guard !state.isOut else { return }
            for change in changes.reversed() { state.add(change, isFirst: true) }
        }
    }

    /// Takes note that the record has these changes.
    func recorded(_ changes: [WillChange]) {
        state.withLock { state in
            for case .give(let will) in changes { state.unrecorded.remove(will.id) }
        }
    }

    /// Returns a will that is being taken from the record.
    func taking(_ id: WillID) -> Taking? { state.withLock { $0.taking[id] } }

    /// Ends the taking of a will with a verdict.
    func taken(_ id: WillID, _ verdict: Verdict) {
        let taking = state.withLock { state in
            if verdict != .drop { state.publishing.insert(id) }
            return state.taking.removeValue(forKey: id)
        }
        taking?.completion(verdict)
    }

    /// Whether wills are being taken or published.
    var isBusy: Bool { state.withLock { !$0.taking.isEmpty || !$0.publishing.isEmpty } }

    /// Takes note that this process has left the record. From now on, another process publishes the wills that are in
    /// the record and that this process has not published.
    func leave() {
        let taking = state.withLock { state in
            defer {
                (state.waiting, state.order, state.bytes) = ([:], [], 0)
                (state.taking, state.publishing) = ([:], [])
            }
            state.isOut = true
            return state.taking.map { ($0.value.completion, state.unrecorded.contains($0.key)) }
        }
        for (completion, isUnrecorded) in taking { completion(isUnrecorded ? .publish : .drop) }
    }
}
