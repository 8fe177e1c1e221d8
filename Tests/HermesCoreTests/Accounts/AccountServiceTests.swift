// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct AccountServiceTests {
    private let store = MemoryStore()
    private let time = ManualTime()
    private let sessions: SessionRegistry

    init() { sessions = SessionRegistry(time: time) }

    private func service(_ change: (inout AccountSettings) -> Void = { _ in }) -> AccountService {
        var settings = AccountSettings(passwordParameters: PasswordTests.cheap)
        change(&settings)
        return AccountService(store: store, messages: store, sessions: sessions, time: time, settings: settings)
    }

    private func phone(_ id: String = "phone") throws -> DeviceDescription { DeviceDescription(id: try device(id)) }

    private func attach(_ login: Login) -> RecordingAttachment {
        let attachment = RecordingAttachment(login.principal)
        sessions.attach(attachment)
        return attachment
    }

    @Test func registersAndLogsIn() async throws {
        let accounts = service()
        let first = try await accounts.register(nickName: "Anna", password: "secret", device: phone(), address: nil)
        #expect(first.principal.user.rawValue == 1)
        let token = try #require(first.token)
        let second = try await accounts.logIn(
            .password(nickName: "ANNA", password: "secret"),
            device: phone("pad"),
            address: "1.2.3.4"
        )
        #expect(second.principal.user == first.principal.user)
        #expect(second.principal.nickName.rawValue == "Anna")
        #expect(second.token != nil && second.token != token)
        let third = try await accounts.logIn(.token(token), device: phone("another"), address: nil)
        #expect(third.principal == first.principal)
        #expect(third.token == nil)
        #expect(third.tokenHash == first.tokenHash)
        #expect(
            try await accounts.devices(of: first.principal.user).map(\.description.id.rawValue) == ["phone", "pad"]
        )
    }

    @Test func refusesWhatIsWrong() async throws {
        let accounts = service()
        let device = try phone()
        _ = try await accounts.register(nickName: "anna", password: "secret", device: device, address: nil)
        func logIn(_ name: String, _ password: String) async -> HermesError.Code? {
            await code {
                _ = try await accounts.logIn(
                    .password(nickName: name, password: password),
                    device: device,
                    address: nil
                )
            }
        }
        #expect(await logIn("anna", "Secret") == .wrongCredentials)
        #expect(await logIn("anna", "") == .wrongCredentials)
        #expect(await logIn("anna", String(repeating: "x", count: 1_000_000)) == .wrongCredentials)
        #expect(await logIn("nobody", "secret") == .wrongCredentials)
        #expect(await logIn(" \u{202E}", "secret") == .wrongCredentials)
        for token in ["", "abc", String(repeating: "x", count: 100_000)] {
            let refusal = await code { _ = try await accounts.logIn(.token(token), device: device, address: nil) }
            #expect(refusal == .invalidToken)
        }
        for (name, password, expected) in [
            ("Anna", "secret", HermesError.Code.nameTaken), ("b", "12345", .invalidArgument),
            ("b", String(repeating: "x", count: 257), .invalidArgument), ("", "secret", .invalidArgument),
        ] {
            let refusal = await code {
                _ = try await accounts.register(nickName: name, password: password, device: device, address: nil)
            }
            #expect(refusal == expected)
        }
        let closed = service { $0.registrationOpen = false }
        let refusal = await code {
            _ = try await closed.register(nickName: "b", password: "secret", device: device, address: nil)
        }
        #expect(refusal == .registrationClosed)
        #expect(try await closed.createAccount(nickName: "b", password: "secret").nickName.rawValue == "b")
    }

    @Test func delaysFailedLoginsPerAccount() async throws {
        let accounts = service { $0.loginLimits.failuresPerAccount = 2 }
        let device = try phone()
        _ = try await accounts.register(nickName: "anna", password: "secret", device: device, address: nil)
        func logIn(_ password: String) async throws {
            let credential = Credential.password(nickName: "Anna", password: password)
            _ = try await accounts.logIn(credential, device: device, address: nil)
        }
        for _ in 0..<3 { #expect(await code { try await logIn("wrong!") } == .wrongCredentials) }
        #expect(await code { try await logIn("secret") } == .loginDelayed)
        time.advance(by: .seconds(1))
        #expect(await code { try await logIn("secret") } == nil)
        #expect(await code { try await logIn("wrong!") } == .wrongCredentials)
    }

    @Test func delaysFailedLoginsPerAddress() async throws {
        let accounts = service { $0.loginLimits.failuresPerAddress = 5 }
        let device = try phone()
        let login = try await accounts.register(
            nickName: "anna",
            password: "secret",
            device: device,
            address: "1.1.1.1"
        )
        func logIn(_ name: String, _ address: String) async -> HermesError.Code? {
            await code {
                let credential = Credential.password(nickName: name, password: "secret")
                _ = try await accounts.logIn(credential, device: device, address: address)
            }
        }
        for number in 0..<6 { #expect(await logIn("nobody\(number)", "1.1.1.1") == .wrongCredentials) }
        #expect(await logIn("anna", "1.1.1.1") == .loginDelayed)
        #expect(await logIn("anna", "2.2.2.2") == nil)
        // A right token is not delayed, a wrong one is.
        let token = try #require(login.token)
        _ = try await accounts.logIn(.token(token), device: device, address: "1.1.1.1")
        let refusal = await code { _ = try await accounts.logIn(.token("x"), device: device, address: "1.1.1.1") }
        #expect(refusal == .loginDelayed)
    }

    @Test func disablingEndsSessions() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let attachment = attach(login)
        try await accounts.setDisabled(login.principal.user, true)
        #expect(attachment.ends == [.accountDisabled])
        #expect(!sessions.isOnline(login.principal.user))
        let token = try #require(login.token)
        let device = try phone()
        #expect(
            await code { _ = try await accounts.logIn(.token(token), device: device, address: nil) } == .accountDisabled
        )
        // A login that was under way when the account was disabled does not stay either.
        let late = attach(login)
        #expect(late.ends == [.accountDisabled])
        try await accounts.setDisabled(login.principal.user, false)
        let again = try await accounts.logIn(.token(token), device: device, address: nil)
        #expect(attach(again).ends.isEmpty)
        #expect(sessions.isOnline(login.principal.user))
    }

    @Test func removingADeviceEndsItsSessionOnly() async throws {
        let accounts = service()
        let first = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let credential = Credential.password(nickName: "anna", password: "secret")
        let second = try await accounts.logIn(credential, device: phone("pad"), address: nil)
        let attachments = [attach(first), attach(second)]
        try await accounts.removeDevice(first.principal.device, of: first.principal.user)
        #expect(attachments.map(\.ends) == [[.revoked], []])
        let tokens = try [#require(first.token), #require(second.token)]
        let device = try phone()
        #expect(
            await code { _ = try await accounts.logIn(.token(tokens[0]), device: device, address: nil) }
                == .invalidToken
        )
        #expect(await code { _ = try await accounts.logIn(.token(tokens[1]), device: device, address: nil) } == nil)
    }

    @Test func changingThePasswordEndsTheOthers() async throws {
        let accounts = service()
        let first = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let credential = Credential.password(nickName: "anna", password: "secret")
        let second = try await accounts.logIn(credential, device: phone("pad"), address: nil)
        let attachments = [attach(first), attach(second)]
        let principal = first.principal
        let wrong = await code { try await accounts.changePassword(of: principal, old: "wrong!", new: "newsecret") }
        #expect(wrong == .wrongCredentials)
        try await accounts.changePassword(of: principal, old: "secret", new: "newsecret", keeping: first.tokenHash)
        #expect(attachments.map(\.ends) == [[], [.revoked]])
        let tokens = try [#require(first.token), #require(second.token)]
        let device = try phone()
        #expect(await code { _ = try await accounts.logIn(.token(tokens[0]), device: device, address: nil) } == nil)
        #expect(
            await code { _ = try await accounts.logIn(.token(tokens[1]), device: device, address: nil) }
                == .invalidToken
        )
        #expect(
            await code { _ = try await accounts.logIn(credential, device: device, address: nil) } == .wrongCredentials
        )
        try await accounts.setPassword(of: principal.user, to: "third-secret")
        #expect(attachments[0].ends == [.revoked])
        #expect(
            await code { _ = try await accounts.logIn(.token(tokens[0]), device: device, address: nil) }
                == .invalidToken
        )
    }

    @Test func logsOut() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        try await accounts.logOut(login.principal, token: login.tokenHash, removeDevice: true)
        #expect(try await accounts.devices(of: login.principal.user).isEmpty)
        let token = try #require(login.token)
        let device = try phone()
        #expect(
            await code { _ = try await accounts.logIn(.token(token), device: device, address: nil) } == .invalidToken
        )
    }

    @Test func aNewDeviceTakesThePlaceOfTheOldest() async throws {
        let accounts = service { $0.maxDevices = 3 }
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone("d0"), address: nil)
        let attachment = attach(login)
        for number in 1...5 {
            time.advance(by: .seconds(1))
            let credential = Credential.password(nickName: "anna", password: "secret")
            _ = try await accounts.logIn(credential, device: phone("d\(number)"), address: nil)
        }
        let devices = try await accounts.devices(of: login.principal.user).map(\.description.id.rawValue)
        // The first one is connected and stays.
        #expect(devices == ["d0", "d4", "d5"])
        #expect(attachment.ends.isEmpty)
    }

    @Test func aClaimDrivesOutNobody() async throws {
        let accounts = service { $0.maxDevices = 2 }
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let attachment = attach(login)
        func claim(_ id: String) async -> HermesError.Code? {
            await code {
                let description = DeviceDescription(id: try device(id), platform: "QSIOP")
                let claimed = try await accounts.logIn(.claim(login.principal.user), device: description, address: nil)
                sessions.attach(RecordingAttachment(claimed.principal))
            }
        }
        #expect(await claim("phone") == .forbidden)
        #expect(await claim("meter") == nil)
        #expect(await claim("meter") == nil)
        #expect(await claim("meter2") == .forbidden)
        #expect(attachment.ends.isEmpty)
        #expect(
            try await accounts.devices(of: login.principal.user).map(\.description.id.rawValue) == ["phone", "meter"]
        )
    }

    @Test func changesProfiles() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let user = login.principal.user
        let changed = try await accounts.changeProfile(of: user, nickName: "Anne", avatarURL: "https://a.example/1.png")
        #expect(changed.nickName.rawValue == "Anne")
        for url in [String(repeating: "x", count: 1025), "a\nb"] {
            let refusal = await code { _ = try await accounts.changeProfile(of: user, nickName: nil, avatarURL: url) }
            #expect(refusal == .invalidArgument)
        }
        #expect(try await accounts.account(.nickName(NickName("ANNE")))?.avatarURL == "https://a.example/1.png")
        #expect(try await accounts.accounts(after: nil, limit: 10).map(\.id) == [user])
    }

    @Test func deviceDescriptionsAreCut() async throws {
        let accounts = service()
        var description = try phone()
        description.name = "a\u{1B}[2Jb" + String(repeating: "é", count: 100)
        let login = try await accounts.register(nickName: "anna", password: "secret", device: description, address: nil)
        #expect(login.device.description.name.utf8.count <= 64)
        #expect(login.device.description.name.hasPrefix("a[2Jbé"))
    }
}
