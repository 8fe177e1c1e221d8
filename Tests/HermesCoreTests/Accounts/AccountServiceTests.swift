// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization
import Testing

@Suite struct AccountServiceTests {
    private let store = MemoryStore()
    private let time = ManualTime()
    private let devices: DeviceRegistry

    init() { devices = DeviceRegistry(time: time) }

    private func service(_ change: (inout AccountSettings) -> Void = { _ in }) -> AccountService {
        var settings = AccountSettings(passwordParameters: PasswordTests.cheap)
        change(&settings)
        return AccountService(store: store, messages: store, devices: devices, time: time, settings: settings)
    }

    private func phone(_ id: String = "phone") throws -> DeviceDescription { DeviceDescription(id: try device(id)) }

    private func attach(_ login: Login) -> RecordingAttachment {
        let attachment = RecordingAttachment(login.principal)
        devices.attach(attachment)
        return attachment
    }

    @Test func `registers and logs in`() async throws {
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

    /// With a variation selector in the middle, the name looks the same.
    @Test func `a name in other letters is not given up`() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "josé", password: "secret", device: phone(), address: nil)
        let same = "jose\u{FE0F}\u{301}"
        _ = try await accounts.changeProfile(of: login.principal.user, nickName: same, avatarURL: nil)
        for name in ["josé", "JOSÉ", same] {
            await #expect {
                try await accounts.register(nickName: name, password: "secret", device: phone("b"), address: nil)
            } throws: { ($0 as? HermesError)?.code == .nameTaken }
        }
    }

    @Test
    func `after a rename open connections have the new name, and a logout ends nothing of the old name's next owner`()
        async throws
    {
        let ended = Mutex<[UserID]>([])
        let accounts = AccountService(
            store: store,
            messages: store,
            devices: devices,
            time: time,
            settings: AccountSettings(passwordParameters: PasswordTests.cheap),
            endTopicClients: { user, _, _, _ in ended.withLock { $0.append(user) } }
        )
        let login = try await accounts.register(nickName: "Anna", password: "secret", device: phone(), address: nil)
        let user = login.principal.user
        let open = attach(login)
        let underWay = try await accounts.logIn(
            .password(nickName: "anna", password: "secret"),
            device: phone("pad"),
            address: nil
        )
        _ = try await accounts.changeProfile(of: user, nickName: "Berta", avatarURL: nil)
        #expect(open.principal.nickName.rawValue == "Berta")
        #expect(open.ends.isEmpty)
        // The login may have read the old name, so the client must log in again.
        #expect(attach(underWay).ends == [.accountRenamed])
        _ = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        ended.withLock { $0 = [] }
        try await accounts.logOut(open.principal, token: nil, removeDevice: true)
        #expect(ended.withLock(\.self) == [user])
        _ = try await accounts.changeProfile(of: user, nickName: "BERTA", avatarURL: nil)
        #expect(open.principal.nickName.rawValue == "BERTA")
    }

    @Test func `refuses what is wrong`() async throws {
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
            ("b", String(repeating: "x", count: 257), .tooLarge), ("", "secret", .invalidArgument),
        ] {
            let refusal = await code {
                _ = try await accounts.register(nickName: name, password: password, device: device, address: nil)
            }
            #expect(refusal == expected)
        }
        let closed = service { $0.registration = .closed }
        let refusal = await code {
            _ = try await closed.register(nickName: "b", password: "secret", device: device, address: nil)
        }
        #expect(refusal == .registrationClosed)
        #expect(try await closed.createAccount(nickName: "b", password: "secret").nickName.rawValue == "b")
    }

    @Test func `delays failed logins per account`() async throws {
        let accounts = service { $0.loginLimits.failuresPerSource = 3 }
        let device = try phone()
        _ = try await accounts.createAccount(nickName: "anna", password: "secret")
        func logIn(_ password: String, _ address: String) async throws {
            let credential = Credential.password(nickName: "Anna", password: password)
            _ = try await accounts.logIn(credential, device: device, address: address)
        }
        for _ in 0..<3 { #expect(await code { try await logIn("wrong!", "1.1.1.1") } == .wrongCredentials) }
        #expect(await code { try await logIn("secret", "1.1.1.1") } == .loginDelayed)
        #expect(await code { try await logIn("secret", "2.2.2.2") } == nil)
        time.advance(by: .seconds(1200))
        #expect(await code { try await logIn("secret", "1.1.1.1") } == nil)
    }

    /// One wrong password a minute from other addresses must not lock out the owner of an account permanently.
    @Test func `nobody elsewhere locks the owner out`() async throws {
        let owner = service()
        let registered = try await owner.register(
            nickName: "anna",
            password: "secret",
            device: phone("laptop"),
            address: "192.0.2.1"
        )
        _ = try await owner.issueToken(for: phone(), of: registered.principal.user)
        await owner.writeTraces(isLast: true)
        // A server that has just started knows the same devices and addresses.
        let accounts = service()
        func logIn(_ password: String, _ id: String, _ address: String) async -> HermesError.Code? {
            await code {
                let credential = Credential.password(nickName: "anna", password: password)
                _ = try await accounts.logIn(credential, device: phone(id), address: address)
            }
        }
        var guesses = 0
        for minute in 0..<(5 * 60) {
            for attacker in 0..<5 {
                let outcome = await logIn("wrong!", "x", "10.0.\(minute % 50).\(attacker)")
                if outcome == .wrongCredentials { guesses += 1 }
            }
            if minute % 10 == 0 {
                #expect(await logIn("secret", "other", "192.0.2.1") == nil, "at a known address")
                #expect(await logIn("secret", "phone", "198.51.100.7") == nil, "a known device elsewhere")
            }
            time.advance(by: .seconds(60))
        }
        // The budget is full at the beginning, and the same amount is added each hour.
        #expect(guesses <= 100 + 5 * 100)
        let token = try #require(registered.token)
        _ = try await accounts.logIn(.token(token), device: phone("z"), address: "10.0.0.1")
    }

    @Test func `who guesses at a device's account does not keep its owner from changing the password`() async throws {
        let accounts = service {
            $0.loginLimits.failuresPerSource = 2
            $0.loginLimits.failuresOfStrangers = 4
        }
        let login = try await accounts.register(
            nickName: "anna",
            password: "secret",
            device: phone(),
            address: "192.0.2.1"
        )
        var last: HermesError.Code?
        for guess in 0..<8 {
            last = await code {
                let credential = Credential.password(nickName: "anna", password: "wrong!")
                _ = try await accounts.logIn(credential, device: phone(), address: "10.0.0.\(guess)")
            }
        }
        #expect(last == .loginDelayed)
        func change(_ old: String, to new: String) async -> HermesError.Code? {
            await code { try await accounts.changePassword(of: login.principal, old: old, new: new) }
        }
        #expect(await change("secret", to: "secret-2") == nil)
        for _ in 0..<2 { #expect(await change("wrong!", to: "secret-3") == .wrongCredentials) }
        #expect(await change("secret-2", to: "secret-3") == .loginDelayed)
    }

    @Test func `a claim makes no address known`() async throws {
        let accounts = service { $0.loginLimits.failuresPerSource = 1 }
        let anna = try await accounts.createAccount(nickName: "anna", password: "secret")
        let meter = DeviceDescription(id: try device("meter"))
        _ = try await accounts.logIn(.claim(anna.id), device: meter, address: "10.0.0.1")
        await accounts.writeTraces(isLast: true)
        let credential = Credential.password(nickName: "anna", password: "wrong!")
        let codes = [
            await code { _ = try await accounts.logIn(credential, device: meter, address: "10.0.0.1") },
            await code { _ = try await accounts.logIn(credential, device: meter, address: "10.0.0.1") },
        ]
        #expect(codes == [.wrongCredentials, .loginDelayed])
    }

    @Test func `delays failed logins per address`() async throws {
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
        for number in 0..<5 { #expect(await logIn("nobody\(number)", "1.1.1.1") == .wrongCredentials) }
        #expect(await logIn("nobody", "1.1.1.1") == .loginDelayed)
        #expect(await logIn("anna", "1.1.1.1") == nil, "known there")
        #expect(await logIn("anna", "2.2.2.2") == nil)
        // A right token is not delayed, but a wrong token is.
        let token = try #require(login.token)
        _ = try await accounts.logIn(.token(token), device: device, address: "1.1.1.1")
        let refusal = await code { _ = try await accounts.logIn(.token("x"), device: device, address: "1.1.1.1") }
        #expect(refusal == .loginDelayed)
    }

    @Test func `disabling ends sessions`() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let attachment = attach(login)
        try await accounts.setDisabled(login.principal.user, true)
        #expect(attachment.ends == [.accountDisabled])
        #expect(!devices.isOnline(login.principal.user))
        let token = try #require(login.token)
        let device = try phone()
        #expect(
            await code { _ = try await accounts.logIn(.token(token), device: device, address: nil) } == .accountDisabled
        )
        // A login that was under way when the account was disabled is also ended.
        let late = attach(login)
        #expect(late.ends == [.accountDisabled])
        try await accounts.setDisabled(login.principal.user, false)
        let again = try await accounts.logIn(.token(token), device: device, address: nil)
        #expect(attach(again).ends.isEmpty)
        #expect(devices.isOnline(login.principal.user))
    }

    @Test func `removing a device ends its session only`() async throws {
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

    @Test func `changing the password ends the others`() async throws {
        let accounts = service()
        let first = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let credential = Credential.password(nickName: "anna", password: "secret")
        let second = try await accounts.logIn(credential, device: phone("pad"), address: nil)
        // Somebody who knows the old password logs in with the same device. The connection of this login comes later.
        let third = try await accounts.logIn(credential, device: phone(), address: nil)
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
        #expect(attach(third).ends == [.revoked])
        #expect(
            await code { _ = try await accounts.logIn(.token(tokens[0]), device: device, address: nil) }
                == .invalidToken
        )
    }

    @Test func `logs out`() async throws {
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

    @Test func `a log-out ends the pushes to its device, and what depends on the token that it showed`() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let user = login.principal.user
        func setToken(_ text: String, of id: String) async throws {
            let token = PushToken(stored: .apns, text: text, appID: "")
            try await store.setPushToken(token, of: device(id), user, shown: .other, now: time.now())
        }
        func pushed() async throws -> [String] { try await store.pushTargets(of: user).map(\.device.rawValue).sorted() }
        let pad = try await accounts.logIn(
            .password(nickName: "anna", password: "secret"),
            device: phone("pad"),
            address: nil
        )
        try await setToken("a", of: "phone")
        try await setToken("b", of: "pad")
        // This log-out is like that of an MQTT client that logged in with a password: the client has no token.
        try await accounts.logOut(pad.principal, token: nil, removeDevice: false)
        #expect(try await pushed() == ["phone"])
        // The pad presents the phone's token.
        let token = try #require(login.token)
        let guest = try await accounts.admit(.token(token), device: device("pad"), address: nil)
        try await setToken("b", of: "pad")
        let connection = RecordingAttachment(login.principal)
        devices.attach(connection)
        try await accounts.logOut(guest.principal(on: device("pad")), token: guest.tokenHash, removeDevice: false)
        #expect(try await pushed() == [])
        #expect(connection.ends == [.revoked])
    }

    @Test func `one device too many is refused and removes none`() async throws {
        let accounts = service { $0.maxDevices = 3 }
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone("d0"), address: nil)
        let user = login.principal.user
        func logIn(_ id: String) async -> HermesError.Code? {
            await code {
                let credential = Credential.password(nickName: "anna", password: "secret")
                _ = try await accounts.logIn(credential, device: phone(id), address: nil)
            }
        }
        for (id, expected) in [
            ("d1", nil), ("d2", nil), ("d3", HermesError.Code.deviceLimitReached), ("d4", .deviceLimitReached),
            ("d1", nil),
        ] {
            #expect(await logIn(id) == expected)
        }
        #expect(try await accounts.devices(of: user).map(\.description.id.rawValue) == ["d0", "d1", "d2"])
        let token = try #require(login.token)
        _ = try await accounts.logIn(.token(token), device: phone("x"), address: nil)
        #expect(await code { _ = try await accounts.issueToken(for: phone("d5"), of: user) } == .deviceLimitReached)
        try await accounts.removeDevice(device("d1"), of: user)
        #expect(await logIn("d3") == nil)
    }

    /// A client that is not a device, or not yet a device, does not register one. So 50 MQTT clients without an id do
    /// not displace the phone.
    @Test func `admission registers no device`() async throws {
        let accounts = service { $0.maxDevices = 2 }
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        for number in 0..<100 {
            let credential = Credential.passwordOrToken(nickName: "anna", secret: "secret")
            _ = try await accounts.admit(credential, device: device("auto-\(number)"), address: nil)
        }
        #expect(try await accounts.devices(of: login.principal.user).map(\.description.id.rawValue) == ["phone"])
        let token = try #require(login.token)
        let admission = try await accounts.admit(.tokenOfAnyDevice(token), device: device("pad"), address: nil)
        let opened = try await accounts.open(phone("pad"), by: admission)
        #expect(opened.principal == admission.principal(on: try device("pad")))
        #expect(
            try await accounts.devices(of: login.principal.user).map(\.description.id.rawValue) == ["phone", "pad"]
        )
    }

    /// A claim without a token must not take over a QSIOP device that has presented a token.
    @Test func `a device belongs to its strongest proof`() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let user = login.principal.user
        let token = try #require(login.token)
        func open(_ credential: Credential, _ id: String) async -> HermesError.Code? {
            await code {
                let description = DeviceDescription(id: try device(id), platform: "QSIOP")
                _ = try await accounts.logIn(credential, device: description, address: nil)
            }
        }
        #expect(await open(.claim(user), "meter") == nil)
        #expect(await open(.claim(user), "meter") == nil)
        #expect(await open(.vouched(user), "meter") == nil)
        #expect(await open(.claim(user), "meter") == .forbidden)
        #expect(await open(.tokenOfAnyDevice(token), "meter") == nil)
        #expect(await open(.claim(user), "meter") == .forbidden)
        #expect(await open(.vouched(user), "meter") == .forbidden)
        #expect(await open(.tokenOfAnyDevice(token), "meter") == nil)
        #expect(await open(.claim(user), "phone") == .forbidden)
        #expect(await open(.claim(user), "other") == nil)
    }

    /// Known devices can log in while the disk is full.
    @Test func `a known device logs in without a write`() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let token = try #require(login.token)
        time.advance(by: .seconds(3600))
        var newer = try phone()
        newer.appVersion = "2"
        try store.setCapacity(bytes: 0)
        let again = try await accounts.logIn(.token(token), device: newer, address: "1.2.3.4")
        #expect(again.device.lastSeenAt == time.now())
        #expect(try await accounts.devices(of: again.principal.user).first?.lastSeenAt == time.now())
        let user = again.principal.user
        _ = try await accounts.admit(.password(nickName: "anna", password: "secret"), device: nil, address: nil)
        let refusal = await code {
            _ = try await accounts.logIn(.tokenOfAnyDevice(token), device: phone("pad"), address: nil)
        }
        #expect(refusal == .storageUnavailable)
        await accounts.writeTraces(isLast: true)
        try store.setCapacity(bytes: nil)
        await accounts.writeTraces(isLast: true)
        let stored = try #require(await store.devices(of: user).first)
        #expect(stored.lastSeenAt == time.now())
        #expect(stored.description.appVersion == "2")
    }

    @Test func `zeros are no part of a password`() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        for password in ["secret\u{0}", "secret\u{0}\u{0}", "\u{0}secret"] {
            let credential = Credential.password(nickName: "anna", password: password)
            #expect(
                await code { _ = try await accounts.admit(credential, device: nil, address: nil) } == .wrongCredentials
            )
            let refusals = [
                await code { _ = try await accounts.createAccount(nickName: "bob", password: password) },
                await code { try await accounts.setPassword(of: login.principal.user, to: password) },
                await code {
                    try await accounts.changePassword(of: login.principal, old: "secret", new: password)
                },
            ]
            #expect(refusals == [.invalidArgument, .invalidArgument, .invalidArgument])
            #expect(
                await code {
                    try await accounts.changePassword(of: login.principal, old: password, new: "another")
                } == .wrongCredentials
            )
        }
    }

    @Test func `hashes of older servers are renewed at login`() async throws {
        let accounts = service()
        let anna = try await accounts.createAccount(nickName: "anna", password: "secret")
        // Servers before this format hashed the password itself.
        let old = PasswordHash(phc: PasswordTests.plainSecret)
        _ = try await store.update(anna.id, AccountChange(password: old))
        let wrong = Credential.password(nickName: "anna", password: "secreT")
        #expect(await code { _ = try await accounts.admit(wrong, device: nil, address: nil) } == .wrongCredentials)
        #expect(try await store.find(.id(anna.id))?.password == old)
        let right = Credential.password(nickName: "anna", password: "secret")
        _ = try await accounts.admit(right, device: nil, address: nil)
        let renewed = try #require(await store.find(.id(anna.id))?.password)
        #expect(renewed.phc.hasPrefix("$scrypt-sha256$ln=4,r=8,p=1$"))
        _ = try await accounts.admit(right, device: nil, address: nil)
        #expect(try await store.find(.id(anna.id))?.password == renewed)
        #expect(await code { _ = try await accounts.admit(wrong, device: nil, address: nil) } == .wrongCredentials)
    }

    @Test func `a claim drives out nobody`() async throws {
        let accounts = service { $0.maxDevices = 2 }
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let attachment = attach(login)
        func claim(_ id: String) async -> HermesError.Code? {
            await code {
                let description = DeviceDescription(id: try device(id), platform: "QSIOP")
                let claimed = try await accounts.logIn(.claim(login.principal.user), device: description, address: nil)
                devices.attach(RecordingAttachment(claimed.principal))
            }
        }
        #expect(await claim("phone") == .forbidden)
        #expect(await claim("meter") == nil)
        #expect(await claim("meter") == nil)
        #expect(await claim("meter2") == .deviceLimitReached)
        #expect(attachment.ends.isEmpty)
        #expect(
            try await accounts.devices(of: login.principal.user).map(\.description.id.rawValue) == ["phone", "meter"]
        )
    }

    @Test func `changes profiles`() async throws {
        let accounts = service()
        let login = try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
        let user = login.principal.user
        for url in ["", "12.png", "/a:b", "HTTPS://a.example/?a:b", "http://a.example"] {
            _ = try await accounts.changeProfile(of: user, nickName: nil, avatarURL: url)
        }
        let changed = try await accounts.changeProfile(of: user, nickName: "Anne", avatarURL: "https://a.example/1.png")
        #expect(changed.nickName.rawValue == "Anne")
        let refused = ["a\nb", "javascript:alert(1)", "JavaScript://a/%0Aalert(1)", "data:text/html,x", ":", "x:y"]
        let long = String(repeating: "x", count: 1025)
        for url in [long] + refused {
            let refusal = await code { _ = try await accounts.changeProfile(of: user, nickName: nil, avatarURL: url) }
            let expected: HermesError.Code = url == long ? .tooLarge : .invalidArgument
            #expect(refusal == expected)
        }
        #expect(try await accounts.account(.nickName(NickName("ANNE")))?.avatarURL == "https://a.example/1.png")
        #expect(try await accounts.accounts(after: nil, limit: 10).map(\.id) == [user])
    }

    @Test func `device descriptions are cut`() async throws {
        let accounts = service()
        var description = try phone()
        description.name = "a\u{1B}[2Jb" + String(repeating: "é", count: 100)
        let login = try await accounts.register(nickName: "anna", password: "secret", device: description, address: nil)
        #expect(login.device.description.name.utf8.count <= 64)
        #expect(login.device.description.name.hasPrefix("a[2Jbé"))
    }

    @Test
    func `an account changes itself 60 times a minute; each change is a transaction for which all messages wait`()
        async throws
    {
        let accounts = service()
        let tokens = PushTokenService(store: store, time: time)
        var people: [Principal] = []
        for name in ["anna", "bob"] {
            let login = try await accounts.register(nickName: name, password: "secret", device: phone(), address: nil)
            people.append(login.principal)
        }
        let anna = people[0]
        func rename(_ person: Principal) async throws {
            let picture = "https://a.example/1.png"
            _ = try await accounts.changeOwnProfile(of: person.user, nickName: nil, avatarURL: picture)
        }
        for _ in 1...60 {
            try await rename(anna)
            try await tokens.set(nil, of: anna)
        }
        await #expect(throws: HermesError.self) { try await rename(anna) }
        await #expect(throws: HermesError.self) { try await tokens.set(nil, of: anna) }
        await #expect {
            try await accounts.removeOwnDevice(anna.device, of: anna.user)
        } throws: { ($0 as? HermesError)?.code == .rateLimited }
        try await rename(people[1])
        try await tokens.set(nil, of: people[1])
        time.advance(by: .seconds(2))
        try await rename(anna)
    }
}
