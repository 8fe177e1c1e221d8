// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct PasswordChangeBudgetTests {
    private let store = MemoryStore()
    private let time = ManualTime()

    @Test func `who guesses over the machine's own socket does not keep the owner from changing the password`()
        async throws
    {
        let accounts = AccountService(
            store: store,
            messages: store,
            devices: DeviceRegistry(time: time),
            time: time,
            settings: AccountSettings(passwordParameters: PasswordTests.cheap)
        )
        func phone(_ id: String) throws -> DeviceDescription { DeviceDescription(id: try device(id)) }
        func guess() async -> HermesError.Code? {
            await code {
                let credential = Credential.password(nickName: "anna", password: "wrong!")
                _ = try await accounts.logIn(credential, device: phone("other"), address: nil)
            }
        }
        let login = try await accounts.register(
            nickName: "anna",
            password: "secret",
            device: phone("phone"),
            address: nil
        )
        // The account has logged in over this socket before.
        _ = try await accounts.logIn(
            .password(nickName: "anna", password: "secret"),
            device: phone("pad"),
            address: nil
        )
        for _ in 0..<20 { #expect(await guess() == .wrongCredentials) }
        #expect(await guess() == .loginDelayed)
        try await accounts.changePassword(of: login.principal, old: "secret", new: "secret-2")
    }
}
