// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Administration on several nodes. Each node keeps the sessions of its own console, and counts the failed logins on
/// all nodes.
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

    /// Starts to compare the sessions with the store, because messages of other nodes may have been lost.
    private func compareSoon() {
        let mustBegin = state.withLock { state in
            defer { (state.mustCompare, state.isComparing) = (true, true) }
            return !state.isComparing
        }
        // The comparison needs a task of its own, because the hook must not wait. The task ends with the last
        // comparison.
        if mustBegin { Task { await compare() } }
    }

    /// Ends the sessions of administrators who were removed after the login. Also ends the sessions of administrators
    /// whose role, password or second factor changed after the login. A new hash of the same password counts as a new
    /// password.
    private func compare() async {
        while let standings = state.withLock({ $0.beginComparing() }) {
            for (name, standings) in Dictionary(grouping: standings, by: \.value.name) {
                // An administrator whose data cannot be read now must log in again.
                let current = try? await store.administrator(name)
                for standing in standings where !standing.value.isSame(as: current) { logOut(standing.key) }
            }
        }
    }
}

extension Administrator {
    /// Whether a login with this state of an administrator is still valid with the other state: the password, the role
    /// and the second factor are the same.
    func isSame(as other: Administrator?) -> Bool {
        password == other?.password && role == other?.role && secondFactor?.secret == other?.secondFactor?.secret
    }
}
