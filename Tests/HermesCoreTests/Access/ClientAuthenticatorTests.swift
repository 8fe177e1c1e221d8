// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Testing

@Suite struct ClientAuthenticatorTests {
    private let store = MemoryStore()
    private let time = ManualTime()
    private let accounts: AccountService

    init() {
        accounts = AccountService(
            store: store,
            messages: store,
            devices: DeviceRegistry(time: time),
            time: time,
            settings: AccountSettings(passwordParameters: PasswordTests.cheap)
        )
    }

    /// A verifier that treats `jwt:NAME` as a token, and accepts it unless the name is `bad`.
    private struct Verifier: TokenVerifier {
        func isToken(_ text: String) -> Bool { text.hasPrefix("jwt:") }

        func verify(_ text: String, now: Timestamp) async throws(HermesError) -> VerifiedToken {
            guard text != "jwt:bad" else { throw HermesError(.invalidToken, "bad") }
            return VerifiedToken(
                subject: String(text.dropFirst(4)),
                claims: TopicClaims(publish: [], subscribe: nil),
                expiresAt: now.advanced(by: .seconds(60))
            )
        }
    }

    private func logIn(
        _ userName: String?,
        _ password: String?,
        client: String = "phone",
        certificate: String? = nil,
        anonymous: Bool = true,
        address: String? = nil
    ) async throws -> ClientAuthenticator.Outcome {
        let authenticator = ClientAuthenticator(
            accounts: accounts,
            verifier: Verifier(),
            time: time,
            isAnonymousAllowed: anonymous
        )
        return try await authenticator.logIn(
            userName: userName,
            password: password.map { ByteBuffer(string: $0) },
            clientID: client,
            certificateIdentity: certificate,
            address: address
        )
    }

    @Test func `a token is held against a clock that was set ahead at once`() async throws {
        let steady = SteadyTime(time)
        let authenticator = ClientAuthenticator(
            accounts: accounts,
            verifier: Verifier(),
            time: steady,
            isAnonymousAllowed: false
        )
        func now() async throws -> Timestamp? {
            try await authenticator.logIn(
                userName: "x",
                password: ByteBuffer(string: "jwt:ann"),
                clientID: "phone",
                certificateIdentity: nil,
                address: nil
            ).identity.expiresAt?.advanced(by: .seconds(-60))
        }
        #expect(try await now() == time.now())
        // This is like a pause of the machine during which the monotonic clock stood still.
        time.jump(by: .seconds(3_600))
        #expect(steady.now() < time.now(), "nothing is deleted yet")
        #expect(try await now() == time.now())
        #expect(steady.latest() == time.now())
        time.jump(by: .seconds(-7_200))
        steady.look()
        #expect(try await now() == time.now())
    }

    @Test func `nobody is somebody only where that is allowed`() async throws {
        let outcome = try await logIn(nil, nil)
        #expect(outcome.identity == ClientIdentity(clientID: "phone"))
        #expect(outcome.identity.owner == .anonymous)
        #expect(await code { _ = try await logIn(nil, nil, anonymous: false) } == .notAuthenticated)
        #expect(await code { _ = try await logIn("anna", nil) } == .wrongCredentials)
        #expect(await code { _ = try await logIn(nil, "x") } == .wrongCredentials)
    }

    @Test func `an account logs in by password or by a token of any device, as the device of its client id`()
        async throws
    {
        let phone = try DeviceDescription(id: device("first"))
        let first = try await accounts.register(nickName: "Anna", password: "secret", device: phone, address: nil)
        let byPassword = try await logIn("ANNA", "secret")
        #expect(byPassword.identity.principal?.device.rawValue == "phone")
        #expect(byPassword.identity.userName == "anna")
        #expect(byPassword.login == nil, "it is no device before it opens its inbox")
        let byToken = try await logIn("anna", first.token, client: "pad")
        #expect(byToken.identity.principal?.device.rawValue == "pad")
        #expect(byToken.device?.admission.tokenHash == first.tokenHash)
        let known = try await logIn("anna", "secret", client: "first")
        #expect(known.login?.principal.device.rawValue == "first")
        #expect(known.login?.token == nil, "no token is stored that nobody gets")
        let devices = try await accounts.devices(of: first.principal.user).map(\.description.id.rawValue)
        #expect(devices == ["first"])
        #expect(await code { _ = try await logIn("bob", first.token) } == .wrongCredentials)
        #expect(await code { _ = try await logIn("anna", "wrong") } == .wrongCredentials)
    }

    /// After a node has vanished, connections are ended if the proof that they presented is no longer valid.
    @Test func `who changes the password over its inbox has shown the new one`() async throws {
        let anna = try await accounts.createAccount(nickName: "anna", password: "secret").id
        let first = try await logIn("anna", "secret")
        let opened = try #require(first.device)
        let login = try await accounts.open(opened.description, by: opened.admission)
        try await accounts.changePassword(of: login.principal, old: "secret", new: "second secret")
        let second = try #require(await store.find(.id(anna))?.password)
        #expect(first.identity.shown == .password(second))
        // The account now has the device, so the inbox is open at once.
        let again = try await logIn("anna", "second secret")
        let known = try #require(again.login)
        try await accounts.changePassword(of: known.principal, old: "second secret", new: "third secret")
        let third = try #require(await store.find(.id(anna))?.password)
        #expect(again.identity.shown == .password(third))
    }

    @Test func `a client id that is no device id has a name but no device`() async throws {
        let phone = try DeviceDescription(id: device("first"))
        let first = try await accounts.register(nickName: "Anna", password: "secret", device: phone, address: nil)
        for client in ["", "my sensor", String(repeating: "x", count: 65), "ü"] {
            let outcome = try await logIn("anna", "secret", client: client)
            let user = first.principal.user
            #expect(outcome.identity == ClientIdentity(account: user, userName: "anna", clientID: client))
            #expect(outcome.login == nil)
            #expect(await code { _ = try await logIn("anna", "wrong", client: client) } == .wrongCredentials)
            let byToken = try await logIn("anna", first.token, client: client)
            #expect(byToken.identity.tokenOwner == first.principal.device, "it ends with the device of the token")
        }
        #expect(try await accounts.devices(of: first.principal.user).count == 1)
    }

    @Test func `a password that is as long as a token is a password all the same and never delayed`() async throws {
        let password = String(repeating: "k", count: 43)
        let phone = try DeviceDescription(id: device("first"))
        _ = try await accounts.register(nickName: "anna", password: password, device: phone, address: nil)
        for _ in 0..<100 { _ = try await logIn("anna", password, address: "1.2.3.4") }
    }

    @Test func `failures are delayed, by name and by address`() async throws {
        let phone = try DeviceDescription(id: device("first"))
        _ = try await accounts.register(nickName: "anna", password: "secret", device: phone, address: nil)
        var codes: [HermesError.Code?] = []
        for _ in 0..<30 { codes.append(await code { _ = try await logIn("anna", "wrong", address: "1.2.3.4") }) }
        #expect(codes.contains(.loginDelayed))
        #expect(await code { _ = try await logIn("anna", "secret", address: "1.2.3.4") } == .loginDelayed)
        #expect(await code { _ = try await logIn("anna", "secret", address: "1.2.3.5") } == nil)
        codes = []
        for _ in 0..<60 { codes.append(await code { _ = try await logIn(nil, "jwt:bad", address: "5.6.7.8") }) }
        #expect(codes.first == .some(.invalidToken))
        #expect(codes.last == .some(.loginDelayed))
        _ = try await logIn(nil, "jwt:carl", address: "5.6.7.8")
    }

    @Test func `a token of others names its subject, and the account of that name if there is one`() async throws {
        let outcome = try await logIn("whatever", "jwt:Sensor-1")
        #expect(outcome.identity.userName == "sensor-1")
        #expect(outcome.identity.principal == nil)
        #expect(outcome.identity.claims == TopicClaims(publish: [], subscribe: nil))
        #expect(outcome.identity.expiresAt == time.now().advanced(by: .seconds(60)))
        let account = try await accounts.createAccount(nickName: "Anna", password: "secret")
        let anna = try await logIn(nil, "jwt:ANNA")
        #expect(anna.identity.principal?.user == account.id)
        #expect(anna.identity.claims != nil)
        try await accounts.setDisabled(account.id, true)
        #expect(await code { _ = try await logIn(nil, "jwt:anna") } == .accountDisabled)
        for subject in ["", " ", "a\u{202E}", String(repeating: "x", count: 1000)] {
            #expect(await code { _ = try await logIn(nil, "jwt:\(subject)") } == .invalidToken)
        }
    }

    @Test func `the name in a certificate is believed where it is given`() async throws {
        let account = try await accounts.createAccount(nickName: "anna", password: "secret")
        let outcome = try await logIn("bob", "wrong", certificate: "Anna", anonymous: false)
        #expect(outcome.identity.principal?.user == account.id)
        #expect(outcome.identity.claims == nil)
    }

    @Test func `a password that is not UTF-8 is a wrong one`() async throws {
        let authenticator = ClientAuthenticator(accounts: accounts, time: time, isAnonymousAllowed: true)
        let refusal = await code {
            _ = try await authenticator.logIn(
                userName: "anna",
                password: ByteBuffer(bytes: [0xFF, 0xFE]),
                clientID: "c",
                certificateIdentity: nil,
                address: nil
            )
        }
        #expect(refusal == .wrongCredentials)
    }
}
