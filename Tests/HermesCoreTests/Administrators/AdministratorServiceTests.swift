// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import HermesCore

@Suite struct AdministratorServiceTests {
    private let time = ManualTime()
    private let store = MemoryStore()
    private let service: AdministratorService
    private let password = "correct horse"

    init() {
        service = AdministratorService(
            store: store,
            time: time,
            throttle: LoginThrottle.Limits(failuresPerSource: 3, failuresPerAddress: 5),
            passwordCost: PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
        )
    }

    private func logIn(
        _ name: String = "ann",
        _ password: String? = nil,
        code: String? = nil,
        from address: String = "192.0.2.1",
        replacing old: TokenHash? = nil
    ) async throws -> AdministratorService.LoginResult {
        try await service.logIn(
            name: name,
            password: password ?? self.password,
            code: code,
            address: address,
            replacing: old
        )
    }

    private func token(_ result: AdministratorService.LoginResult) throws -> TokenHash {
        guard case .session(let token, _) = result else { throw HermesError(.internalError, "a code is needed") }
        return token.hash
    }

    private func error<Value>(_ body: () async throws -> Value) async -> HermesError.Code? {
        do {
            _ = try await body()
            return nil
        } catch { return (error as? HermesError)?.code }
    }

    @Test func `a login begins a session, and ends the one that the client had`() async throws {
        _ = try await service.create(name: "Ann", role: .operator, password: password)
        let first = try token(try await logIn())
        #expect(service.session(first, isUse: true)?.role == .operator)
        let second = try token(try await logIn("ANN", replacing: first))
        #expect(service.session(first, isUse: true) == nil)
        service.logOut(second)
        #expect(service.session(second, isUse: true) == nil)
    }

    @Test func `passwords are long enough, and a wrong one looks like a wrong name`() async throws {
        #expect(
            await error { try await service.create(name: "ann", role: .viewer, password: "short") } == .invalidArgument
        )
        #expect(
            await error { try await service.create(name: "a b", role: .viewer, password: password) } == .invalidArgument
        )
        _ = try await service.create(name: "ann", role: .viewer, password: password)
        #expect(await error { try await logIn("ann", "wrong") } == .wrongCredentials)
        #expect(await error { try await logIn("bob") } == .wrongCredentials)
        #expect(await error { try await logIn("\u{1B}[2J<b>", "x") } == .wrongCredentials)
        let log = try await service.auditLog(before: nil, limit: 10)
        #expect(log.map(\.event.who) == ["?[2J<b>", "bob", "ann"])
        #expect(log.allSatisfy { $0.event.isRefused && $0.event.address == "192.0.2.1" })
    }

    @Test func `guesses are delayed by name and address, but not for those who were there before`() async throws {
        _ = try await service.create(name: "ann", role: .viewer, password: password)
        _ = try await logIn(from: "198.51.100.7")
        for _ in 0..<3 { #expect(await error { try await logIn("ann", "wrong") } == .wrongCredentials) }
        #expect(await error { try await logIn() } == .loginDelayed)
        for _ in 0..<2 { #expect(await error { try await logIn("bob", "wrong") } == .wrongCredentials) }
        #expect(await error { try await logIn("eve", "wrong") } == .loginDelayed)
        #expect(await error { try await logIn(from: "198.51.100.7") } == nil)
        // Delayed attempts leave no trace, so a flood of attempts does not fill the log.
        #expect(try await service.auditLog(before: nil, limit: 100).count { $0.event.isRefused } == 5)
        time.advance(by: .seconds(3600))
        #expect(await error { try await logIn() } == nil)
    }

    @Test func `who has the password alone cannot go on without end`() async throws {
        _ = try await service.create(name: "ann", role: .viewer, password: password)
        _ = try await service.newSecondFactor(of: AdministratorName("ann"))
        for _ in 0..<3 {
            guard case .codeNeeded = try await logIn() else {
                throw HermesError(.internalError, "no code was asked for")
            }
        }
        #expect(await error { try await logIn() } == .loginDelayed)
        #expect(try await service.auditLog(before: nil, limit: 100).count { $0.event.isRefused } == 3)
    }

    @Test func `a second factor is asked for, and each code works once`() async throws {
        _ = try await service.create(name: "ann", role: .viewer, password: password)
        let factor = try await service.newSecondFactor(of: AdministratorName("ann"))
        guard case .codeNeeded = try await logIn() else { throw HermesError(.internalError, "no code was asked for") }
        // The owner of a stolen password can see this attempt.
        let last = try #require(try await service.auditLog(before: nil, limit: 1).first?.event)
        #expect(last.action == "logIn" && last.isRefused && last.result == "right password, no code yet")
        let secret = try #require(try await store.administrator(AdministratorName("ann"))?.secondFactor?.secret)
        #expect(factor.secret == TimeCode.base32(secret) && factor.address.contains(factor.secret))
        let code = TimeCode.code(of: TimeCode.step(at: time.now()), secret: secret)
        #expect(await error { try await logIn(code: "000000") } == (code == "000000" ? nil : .wrongCredentials))
        _ = try token(try await logIn(code: String(code.prefix(3)) + " " + code.suffix(3)))
        #expect(await error { try await logIn(code: code) } == .wrongCredentials)
        let recovery = try #require(factor.recovery.first)
        _ = try token(try await logIn(code: recovery.uppercased()))
        #expect(await error { try await logIn(code: recovery) } == .wrongCredentials)
        try await service.removeSecondFactor(of: AdministratorName("ann"))
        time.advance(by: .seconds(3600))
        _ = try token(try await logIn())
    }

    @Test func `a right code that the store could not use up is no failed guess`() async throws {
        let service = AdministratorService(
            store: FailingCodeStore(store, failures: 3),
            time: time,
            throttle: LoginThrottle.Limits(failuresPerSource: 3, failuresPerAddress: 5),
            passwordCost: PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
        )
        let ann = try await service.create(name: "ann", role: .viewer, password: password).name
        _ = try await service.newSecondFactor(of: ann)
        let secret = try #require(try await store.administrator(ann)?.secondFactor?.secret)
        let code = TimeCode.code(of: TimeCode.step(at: time.now()), secret: secret)
        func logIn() async throws -> AdministratorService.LoginResult {
            try await service.logIn(
                name: "ann",
                password: password,
                code: code,
                address: "192.0.2.1",
                replacing: nil
            )
        }
        for _ in 0..<3 { #expect(await error { try await logIn() } == .storageUnavailable) }
        _ = try token(try await logIn())
    }

    @Test func `a login whose second read fails ends with the error, and leaves no session`() async throws {
        _ = try await self.service.create(name: "ann", role: .viewer, password: password)
        let service = AdministratorService(
            store: FailingCodeStore(store, failures: 0, failedRead: 2),
            time: time,
            throttle: LoginThrottle.Limits(failuresPerSource: 3, failuresPerAddress: 5),
            passwordCost: PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
        )
        func logIn() async throws -> AdministratorService.LoginResult {
            try await service.logIn(
                name: "ann",
                password: password,
                code: nil,
                address: "192.0.2.1",
                replacing: nil
            )
        }
        #expect(await error { try await logIn() } == .storageUnavailable)
        #expect(try await service.auditLog(before: nil, limit: 10).allSatisfy { !$0.event.isRefused })
        _ = try token(try await logIn())
    }

    @Test func `a second factor goes by the clock as it is set`() async throws {
        let service = AdministratorService(
            store: store,
            time: SteadyTime(time),
            passwordCost: PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
        )
        let ann = try await service.create(name: "ann", role: .viewer, password: password).name
        _ = try await service.newSecondFactor(of: ann)
        let secret = try #require(try await store.administrator(ann)?.secondFactor?.secret)
        time.jump(by: .seconds(86_400))
        let result = try await service.logIn(
            name: "ann",
            password: password,
            code: TimeCode.code(of: TimeCode.step(at: time.now()), secret: secret),
            address: "192.0.2.1",
            replacing: nil
        )
        _ = try token(result)
    }

    @Test func `the audit log loses old entries only to a clock that is confirmed`() async throws {
        let event = AuditEvent(who: "ann", address: "local", action: "x", result: "done")
        let first = AdministratorService(store: store, time: SteadyTime(time))
        await first.record(event)
        let start = time.now()
        let ahead = Duration.seconds(400 * 86_400)
        time.jump(by: ahead)
        await first.record(event)
        let second = AdministratorService(store: store, time: SteadyTime(time))
        await second.record(event)
        func times() async throws -> [Timestamp] {
            try await second.auditLog(before: nil, limit: 10).map(\.time)
        }
        #expect(try await times() == [start.advanced(by: ahead), start, start])
        time.advance(by: SteadyClock.confirmation)
        await second.record(event)
        #expect(try await times() == [time.now(), start.advanced(by: ahead)])
    }

    @Test func `a change of an administrator ends all sessions`() async throws {
        let ann = try await service.create(name: "ann", role: .administrator, password: password).name
        let changes: [@Sendable () async throws -> Void] = [
            { try await service.setRole(of: ann, to: .viewer) },
            { try await service.setPassword(of: ann, to: "correct horse") },
            { _ = try await service.newSecondFactor(of: ann) },
        ]
        for change in changes {
            let session = try token(try await logIn())
            try await change()
            #expect(service.session(session, isUse: true) == nil)
        }
        try await service.removeSecondFactor(of: ann)
        let session = try token(try await logIn())
        try await service.remove(ann)
        #expect(service.session(session, isUse: true) == nil)
        #expect(await error { try await logIn() } == .wrongCredentials)
    }
}

/// A store that at first fails to record that codes of second factors are used. One read of an administrator may fail,
/// too.
private final class FailingCodeStore: AdministratorStore {
    private let base: MemoryStore
    private let failures: Mutex<Int>
    private let failedRead: Int
    private let reads = Mutex(0)

    /// - Parameter failedRead: the number of the read that fails, from 1; 0 if all reads succeed.
    init(_ base: MemoryStore, failures: Int, failedRead: Int = 0) {
        self.base = base
        self.failedRead = failedRead
        self.failures = Mutex(failures)
    }

    func use(_ code: OneTimeCode, of name: AdministratorName) async throws(HermesError) -> Bool {
        let fails = failures.withLock { left in
            defer { left -= 1 }
            return left > 0
        }
        if fails { throw HermesError(.storageUnavailable, "full") }
        return try await base.use(code, of: name)
    }

    func create(_ administrator: Administrator) async throws(HermesError) { try await base.create(administrator) }

    func administrators() async throws(HermesError) -> [Administrator] { try await base.administrators() }

    func administrator(_ name: AdministratorName) async throws(HermesError) -> Administrator? {
        let number = reads.withLock { reads in
            reads += 1
            return reads
        }
        if number == failedRead { throw HermesError(.storageUnavailable, "broken") }
        return try await base.administrator(name)
    }

    func change(_ name: AdministratorName, _ change: AdministratorChange) async throws(HermesError) {
        try await base.change(name, change)
    }

    func remove(administrator name: AdministratorName) async throws(HermesError) {
        try await base.remove(administrator: name)
    }

    func record(_ event: AuditEvent, at now: Timestamp, keeping limits: AuditLimits) async throws(HermesError) {
        try await base.record(event, at: now, keeping: limits)
    }

    func auditLog(before id: Int64?, limit: Int) async throws(HermesError) -> [AuditEntry] {
        try await base.auditLog(before: id, limit: limit)
    }
}
