// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Administrators of several nodes: each node has the sessions of its own console, and counts the failed logins of all.
extension AdministratorService {
    func observe(_ cluster: ClusterMember?) {
        cluster?.administratorChanged.observe { [weak self] in self?.endSessionsHere(of: $0) }
        cluster?.administratorFailed.observe { [weak self] in self?.add($0) }
        cluster?.repaired.observe { [weak self] in self?.compareSoon() }
    }

    /// Ends the sessions of an administrator on all nodes.
    func endSessions(of name: AdministratorName) {
        endSessionsHere(of: name)
        cluster?.tell(changed: name)
    }

    private func endSessionsHere(of name: AdministratorName) { state.withLock { $0.sessions.end(of: name) } }

    /// Counts a failed login on another node.
    private func add(_ charge: LoginThrottle.Charge) {
        let now = time.uptime()
        state.withLock { $0.throttle.add(charge, now: now) }
    }

    /// Messages of other nodes may be lost.
    private func compareSoon() {
        let mustBegin = state.withLock { state in
            defer { (state.mustCompare, state.isComparing) = (true, true) }
            return !state.isComparing
        }
        // A task of its own, because the hook must not wait; it ends with the last comparison.
        if mustBegin { Task { await compare() } }
    }

    /// Ends the sessions of administrators who were removed, or have other rights, another password or another second
    /// factor since the login. Another hash of the same password counts as another password.
    private func compare() async {
        while let standings = state.withLock({ $0.beginComparing() }) {
            for (name, standings) in Dictionary(grouping: standings, by: \.value.name) {
                // Who cannot be read now logs in again.
                let current = try? await store.administrator(name)
                for standing in standings where !standing.value.isSame(as: current) { logOut(standing.key) }
            }
        }
    }
}

extension Administrator {
    /// Whether a login with the one is as good as with the other.
    func isSame(as other: Administrator?) -> Bool {
        password == other?.password && role == other?.role && secondFactor?.secret == other?.secondFactor?.secret
    }
}
