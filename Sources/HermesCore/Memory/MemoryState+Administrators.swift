// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The administrators of the console, as a part of ``MemoryState``.
struct MemoryAdministrators: Sendable {
    private(set) var byName: [AdministratorName: Administrator] = [:]
    /// The audit log, with the oldest entries first.
    private(set) var log: [AuditEntry] = []
    private var lastID: Int64 = 0

    mutating func create(_ administrator: Administrator) throws(HermesError) {
        guard byName[administrator.name] == nil else { throw StoreRefusals.administratorNameTaken }
        byName[administrator.name] = administrator
    }

    mutating func change(_ name: AdministratorName, _ change: AdministratorChange) throws(HermesError) {
        guard var administrator = byName[name] else { throw StoreRefusals.noSuchAdministrator }
        switch change {
        case .password(let hash): administrator.password = hash
        case .renewedPassword(let hash, let old): if administrator.password == old { administrator.password = hash }
        case .role(let role): administrator.role = role
        case .secondFactor(let factor):
            administrator.secondFactor = factor
            administrator.usedStep = 0
        case .loggedIn(let time): administrator.lastLoginAt = time
        }
        byName[name] = administrator
    }

    mutating func use(_ code: OneTimeCode, of name: AdministratorName) -> Bool {
        guard var administrator = byName[name] else { return false }
        switch code {
        case .step(let step):
            guard step > administrator.usedStep else { return false }
            administrator.usedStep = step
        case .recovery(let hash):
            guard let index = administrator.secondFactor?.recovery.firstIndex(of: hash) else { return false }
            administrator.secondFactor?.recovery.remove(at: index)
        }
        byName[name] = administrator
        return true
    }

    mutating func remove(_ name: AdministratorName) throws(HermesError) {
        guard byName.removeValue(forKey: name) != nil else { throw StoreRefusals.noSuchAdministrator }
    }

    mutating func record(_ event: AuditEvent, at now: Timestamp, keeping limits: AuditLimits) {
        lastID += 1
        log.append(AuditEntry(id: lastID, time: now, event: event))
        if let age = limits.age {
            let oldest = now.advanced(by: .zero - age)
            log.removeAll { $0.time < oldest }
        }
        let most = event.isRefused ? limits.maxRefused : limits.maxDone
        var excess = log.count { $0.event.isRefused == event.isRefused } - most
        log.removeAll { entry in
            guard entry.event.isRefused == event.isRefused, excess > 0 else { return false }
            excess -= 1
            return true
        }
    }
}

extension MemoryStore: AdministratorStore {
    package func create(_ administrator: Administrator) async throws(HermesError) {
        try write { (state) throws(HermesError) in
            try state.checkRoom(for: 0)
            try state.administrators.create(administrator)
        }
    }

    package func administrators() async throws(HermesError) -> [Administrator] {
        try read { (state) throws(HermesError) in state.administrators.byName.values.sorted { $0.name < $1.name } }
    }

    package func administrator(_ name: AdministratorName) async throws(HermesError) -> Administrator? {
        try read { (state) throws(HermesError) in state.administrators.byName[name] }
    }

    package func change(_ name: AdministratorName, _ change: AdministratorChange) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.administrators.change(name, change) }
    }

    package func use(_ code: OneTimeCode, of name: AdministratorName) async throws(HermesError) -> Bool {
        try write { (state) throws(HermesError) in state.administrators.use(code, of: name) }
    }

    package func remove(administrator name: AdministratorName) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.administrators.remove(name) }
    }

    package func record(
        _ event: AuditEvent,
        at now: Timestamp,
        keeping limits: AuditLimits
    ) async throws(HermesError) {
        try write { (state) throws(HermesError) in
            try state.checkRoom(for: 0)
            state.administrators.record(event, at: now, keeping: limits)
        }
    }

    package func auditLog(before id: Int64?, limit: Int) async throws(HermesError) -> [AuditEntry] {
        try read { (state) throws(HermesError) in
            Array(state.administrators.log.reversed().filter { $0.id < id ?? .max }.prefix(limit))
        }
    }
}
