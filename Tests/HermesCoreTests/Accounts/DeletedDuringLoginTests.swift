// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

/// Logins with the right credential while the account is being deleted.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DeletedDuringLoginTests {
    private let store = FakeStore()
    private let messenger: Messenger

    init() {
        messenger = Messenger(
            accountStore: store.base,
            messageStore: store,
            socialStore: store.base,
            sessionStore: store.base,
            pushTokenStore: store.base,
            accountSettings: AccountSettings(passwordParameters: PasswordTests.cheap),
            time: ManualTime()
        )
    }

    private func delete(_ account: Account) throws {
        _ = try store.base.commit([.deleteAccount(account.id)], now: Timestamp(rawValue: 0))
    }

    @Test(arguments: [true, false])
    func `a login whose account is deleted before its device is stored is told so`(showsPassword: Bool) async throws {
        let accounts = messenger.accounts
        let account = try await accounts.createAccount(nickName: "anna", password: "secret")
        let phone = DeviceDescription(id: try device("phone"))
        let token = try await accounts.issueToken(for: phone, of: account.id)
        let credential: Credential =
            showsPassword ? .password(nickName: "anna", password: "secret") : .tokenOfAnyDevice(token)
        let pad = DeviceDescription(id: try device("pad"))
        store.close()
        async let refusal = code { _ = try await accounts.logIn(credential, device: pad, address: nil) }
        await store.waitForCommit()
        try delete(account)
        store.letThrough(10)
        let answer = await refusal
        #expect(answer == .accountDisabled)
        await messenger.shutdown()
    }

    @Test
    func `a client whose account is deleted before it opens its device is told so`() async throws {
        let accounts = messenger.accounts
        let account = try await accounts.createAccount(nickName: "anna", password: "secret")
        let pad = DeviceDescription(id: try device("pad"))
        let credential = Credential.password(nickName: "anna", password: "secret")
        let admission = try await accounts.admit(credential, device: nil, address: nil)
        try delete(account)
        for isLate in [true, false] {
            let refusal = await code { _ = try await accounts.open(pad, by: admission, isLate: isLate) }
            #expect(refusal == .accountDisabled)
        }
        await messenger.shutdown()
    }
}
