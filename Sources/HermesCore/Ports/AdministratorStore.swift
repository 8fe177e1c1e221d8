// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores the administrators of the console and their audit log. Each change is durable when the call returns.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `AdministratorStoreConformance` of HermesTestKit.
package protocol AdministratorStore: Sendable {
    /// - Throws: `.nameTaken`, `.storageUnavailable`.
    func create(_ administrator: Administrator) async throws(HermesError)

    /// Returns all administrators, ordered by name.
    func administrators() async throws(HermesError) -> [Administrator]

    func administrator(_ name: AdministratorName) async throws(HermesError) -> Administrator?

    /// - Throws: `.notFound`, `.storageUnavailable`.
    func change(_ name: AdministratorName, _ change: AdministratorChange) async throws(HermesError)

    /// Marks a code as used.
    ///
    /// - Returns: false if the code was already used. So if two logins use the same code at once, only one of them
    ///   succeeds.
    func use(_ code: OneTimeCode, of name: AdministratorName) async throws(HermesError) -> Bool

    /// - Throws: `.notFound`, `.storageUnavailable`.
    func remove(administrator name: AdministratorName) async throws(HermesError)

    /// Adds an entry to the audit log, and deletes old entries beyond the limits.
    func record(_ event: AuditEvent, at now: Timestamp, keeping limits: AuditLimits) async throws(HermesError)

    /// Returns entries of the audit log, the newest first.
    ///
    /// - Parameter id: the entry before which the returned entries lie; nil to begin with the newest entry.
    func auditLog(before id: Int64?, limit: Int) async throws(HermesError) -> [AuditEntry]
}
