// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Keeps the wills of clients in the record. Each will is held by one process.
extension ClusterMember {
    /// The largest number of transactions in one call to ``recordWills()``. After them, the caller does its other work.
    private static let batchesPerCall = 16
    /// A process that leaves the cluster checks whether the wills of its last connections are done. This is the number
    /// of the checks; ``lookInterval`` is the time between two checks.
    private static let lastLooks = 100
    private static let lookInterval = Duration.milliseconds(20)

    /// Writes the waiting changes to the record. Changes that cannot be written are written by a later call.
    func recordWills() async {
        for _ in 0..<Self.batchesPerCall {
            let changes = wills.takeChanges(Self.batch)
            guard !changes.isEmpty else { return }
            do throws(HermesError) {
                guard let outcomes = try await stores.places.change(changes, on: roster.node) else { return expelled() }
                wills.recorded(changes)
                var undecided: [WillChange] = []
                for (change, isToBePublished) in zip(changes, outcomes) {
                    guard case .take(let id) = change else { continue }
                    if !(await decide(id, isToBePublished)) { undecided.append(change) }
                }
                // If these wills are taken again, the outcome is the same.
                if !undecided.isEmpty { return wills.putBack(undecided) }
            } catch {
                return wills.putBack(changes)
            }
        }
        roster.wakeUp.signal()
    }

    /// Writes waiting changes until the wills of this process's last connections are published, for a few seconds at
    /// most.
    func recordLastWills() async {
        await recordWills()
        for _ in 0..<Self.lastLooks where wills.isBusy {
            // The event loops publish the wills. This takes a moment, because it needs the store and ticks of the
            // loops.
            guard (try? await Task.sleep(for: Self.lookInterval)) != nil else { return }
            await recordWills()
        }
    }

    /// - Returns: false if the account of the will's client cannot be read.
    private func decide(_ id: WillID, _ isToBePublished: Bool) async -> Bool {
        guard isToBePublished, let taking = wills.taking(id) else {
            wills.taken(id, .drop)
            return true
        }
        guard let verdict = try? await verdict(on: taking) else { return false }
        wills.taken(id, verdict)
        return true
    }

    /// Decides what is to be done with a will. The account of the will's client may have changed on another node while
    /// the will waited.
    private func verdict(on taking: WillLedger.Taking) async throws(HermesError) -> WillLedger.Verdict {
        let identity = taking.will.identity
        guard taking.isLate, let user = identity.account else { return .publish }
        let account = try await stores.accounts.find(.id(user))?.account
        if account?.isDisabled == true { return .drop }
        return account?.nickName.key == identity.userName ? .publish : .publishLeavingNothing
    }

    /// Takes over the wills of a node that has gone. Stops at `end`. The remaining wills are taken over after the next
    /// renewal of the lease.
    ///
    /// - Parameter end: the uptime at which the lease must be renewed.
    func inheritWills(of node: NodeID, until end: Duration) async {
        // A process that is starting takes over no wills, because it cannot publish them yet.
        while isMember, !state.withLock({ $0.isStarting }), time.uptime() < end,
            let wills = try? await stores.places.inheritWills(of: node, by: roster.node, limit: Self.batch),
            !wills.isEmpty
        {
            self.wills.inherited(wills)
        }
    }
}
