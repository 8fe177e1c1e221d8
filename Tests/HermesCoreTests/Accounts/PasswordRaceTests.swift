// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

/// Whoever knows an old password, while a new one is set. Each race is run often, because either side may win it.
@Suite(.timeLimit(.minutes(1))) struct PasswordRaceTests {
    private static let rounds = 40

    private let accounts: AccountService
    private let phone = DeviceDescription(id: PasswordRaceTests.device("phone"))
    private let stranger = DeviceDescription(id: PasswordRaceTests.device("stranger"))

    private static func device(_ id: String) -> DeviceID {
        guard let device = DeviceID(id) else { preconditionFailure("\(id) is no device") }
        return device
    }

    init() {
        let store = MemoryStore()
        let time = ManualTime()
        accounts = AccountService(
            store: store,
            messages: store,
            devices: DeviceRegistry(time: time),
            time: time,
            settings: AccountSettings(passwordParameters: PasswordTests.cheap)
        )
    }

    private func logIn(_ name: String, _ password: String) async throws -> Login {
        try await accounts.logIn(.password(nickName: name, password: password), device: stranger, address: nil)
    }

    @Test func `a login with the old password that was under way gets no token that outlives it`() async throws {
        for round in 0..<Self.rounds {
            let name = "anna\(round)"
            let owner = try await accounts.register(nickName: name, password: "old secret", device: phone, address: nil)
            async let early = try? logIn(name, "old secret")
            async let late = try? logIn(name, "old secret")
            try await accounts.setPassword(of: owner.principal.user, to: "new secret")
            for login in [await early, await late] {
                guard let token = login?.token else { continue }
                await #expect(throws: HermesError.self) {
                    try await accounts.logIn(.token(token), device: stranger, address: nil)
                }
            }
        }
    }

    @Test func `a change with the old password that was under way does not bring it back`() async throws {
        for round in 0..<Self.rounds {
            let name = "bert\(round)"
            let owner = try await accounts.register(nickName: name, password: "old secret", device: phone, address: nil)
            let thief = try await logIn(name, "old secret").principal
            async let back: Void? = try? accounts.changePassword(of: thief, old: "old secret", new: "old secret")
            try await accounts.setPassword(of: owner.principal.user, to: "new secret")
            _ = await back
            _ = try await logIn(name, "new secret")
            await #expect(throws: HermesError.self) { try await logIn(name, "old secret") }
        }
    }
}
