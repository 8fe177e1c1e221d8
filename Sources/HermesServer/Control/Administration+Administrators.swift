// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Requests about the administrators of the console. Anybody who can reach the control socket may make all of them. The
/// audit log records the changes.
extension Administration {
    /// The largest number of audit log entries in one answer.
    static let maxAuditPage = 1_000

    func respond(toAdministratorsRequest request: ControlRequest) async throws(HermesError) -> ControlResponse {
        switch request {
        case .addAdministrator(let name, let role, let password):
            let administrator = try await administrators.create(
                name: name,
                role: try Self.role(role),
                password: password
            )
            await note("addAdministrator", "\(administrator.name) \(administrator.role.rawValue)")
            return .administrators([Self.document(administrator)])
        case .listAdministrators:
            return .administrators(try await administrators.administrators().map(Self.document))
        case .removeAdministrator(let name):
            try await administrators.remove(AdministratorName(name))
            return await noted("removeAdministrator", name)
        case .setAdministratorPassword(let name, let password):
            try await administrators.setPassword(of: AdministratorName(name), to: password)
            return await noted("setAdministratorPassword", name)
        case .setAdministratorRole(let name, let role):
            try await administrators.setRole(of: AdministratorName(name), to: Self.role(role))
            return await noted("setAdministratorRole", "\(name) \(role)")
        case .newSecondFactor(let name):
            let factor = try await administrators.newSecondFactor(of: AdministratorName(name))
            await note("newSecondFactor", name)
            return .secondFactor(address: factor.address, secret: factor.secret, recovery: factor.recovery)
        case .removeSecondFactor(let name):
            try await administrators.removeSecondFactor(of: AdministratorName(name))
            return await noted("removeSecondFactor", name)
        case .auditLog(let before, let limit):
            let entries = try await administrators.auditLog(
                before: before,
                limit: min(max(1, limit), Self.maxAuditPage)
            )
            return .auditEntries(entries.map(Self.document))
        default:
            throw HermesError(.internalError, "this request is not about administrators")
        }
    }

    private func noted(_ action: String, _ target: String) async -> ControlResponse {
        await note(action, target)
        return .done
    }

    func note(_ action: String, _ target: String) async {
        await administrators.record(
            AuditEvent(who: "command line", address: "local", action: action, target: target, result: "done")
        )
    }

    private static func role(_ text: String) throws(HermesError) -> AdministratorRole {
        if let role = AdministratorRole(rawValue: text) { return role }
        let all = AdministratorRole.allCases.map(\.rawValue).joined(separator: ", ")
        throw HermesError(.invalidArgument, "There is no role \"\(text.prefix(32))\"; the roles are \(all).")
    }

    private static func document(_ administrator: Administrator) -> ControlAdministrator {
        ControlAdministrator(
            name: administrator.name.rawValue,
            role: administrator.role.rawValue,
            hasSecondFactor: administrator.secondFactor != nil,
            createdAt: administrator.createdAt.rawValue,
            lastLoginAt: administrator.lastLoginAt?.rawValue
        )
    }

    private static func document(_ entry: AuditEntry) -> ControlAuditEntry {
        ControlAuditEntry(
            id: entry.id,
            time: entry.time.rawValue,
            who: entry.event.who,
            address: entry.event.address,
            action: entry.event.action,
            target: entry.event.target,
            result: entry.event.result
        )
    }
}
