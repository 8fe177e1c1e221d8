// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

/// Races between somebody who knows an old password and the change to a new password. Each race is run often, because
/// either side may win it.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct PasswordRaceTests {
    private static let rounds = 40

    private let accounts: AccountService
    private let pushTokens: PushTokenService
    private let store = MemoryStore()
    private let phone = DeviceDescription(id: PasswordRaceTests.device("phone"))
    private let stranger = DeviceDescription(id: PasswordRaceTests.device("stranger"))

    private static func device(_ id: String) -> DeviceID {
        guard let device = DeviceID(id) else { preconditionFailure("\(id) is no device") }
        return device
    }

    init() {
        let time = ManualTime()
        pushTokens = PushTokenService(store: store, time: time)
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

    @Test func `a push token that was under way with a revoked login is not stored`() async throws {
        let owner = try await accounts.register(nickName: "cleo", password: "old secret", device: phone, address: nil)
        let user = owner.principal.user
        let byPassword = try await logIn("cleo", "old secret").principal
        let secret = try #require(owner.token)
        let byToken = try await accounts.logIn(.tokenOfAnyDevice(secret), device: stranger, address: nil).principal
        let byMQTT = try await accounts.logIn(
            .passwordOrToken(nickName: "cleo", secret: "old secret"),
            device: stranger,
            address: nil
        ).principal
        let token = PushToken(stored: .apns, text: "thief", appID: "org.example")
        // Push tokens that are on their way reach the store only after the change of the password.
        try await accounts.setPassword(of: user, to: "new secret")
        for thief in [byPassword, byToken, byMQTT] {
            await #expect(throws: HermesError.self) { try await pushTokens.set(token, of: thief) }
        }
        #expect(try await store.pushTargets(of: user).isEmpty)
        let back = try await accounts.logIn(
            .password(nickName: "cleo", password: "new secret"),
            device: phone,
            address: nil
        )
        try await pushTokens.set(token, of: back.principal)
        #expect(try await store.pushTargets(of: user).map(\.device) == [phone.id])
    }

    @Test(arguments: [false, true])
    func `a session that changed its own password may go on to set its push token`(keepsToken: Bool) async throws {
        let owner = try await accounts.register(nickName: "dora", password: "old secret", device: phone, address: nil)
        let principal = owner.principal
        try await accounts.changePassword(
            of: principal,
            old: "old secret",
            new: "new secret",
            keeping: keepsToken ? owner.tokenHash : nil
        )
        try await pushTokens.set(PushToken(stored: .apns, text: "own", appID: "org.example"), of: principal)
        #expect(try await store.pushTargets(of: principal.user).map(\.token.text) == ["own"])
    }

    @Test func `a device that a login with the old password was about to open stays closed`() async throws {
        let owner = try await accounts.register(nickName: "emil", password: "old secret", device: phone, address: nil)
        let admissions = [
            try await accounts.admit(
                .passwordOrToken(nickName: "emil", secret: "old secret"),
                device: stranger.id,
                address: nil
            ),
            try await accounts.admit(
                .passwordOrToken(nickName: "emil", secret: try #require(owner.token)),
                device: stranger.id,
                address: nil
            ),
        ]
        try await accounts.setPassword(of: owner.principal.user, to: "new secret")
        for admission in admissions {
            await #expect(throws: HermesError.self) { try await accounts.open(stranger, by: admission) }
        }
        #expect(try await accounts.devices(of: owner.principal.user).map(\.description.id) == [phone.id])
    }
}
