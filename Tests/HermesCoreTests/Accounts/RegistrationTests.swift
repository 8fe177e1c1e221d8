// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

/// Tests who may register, and how many accounts can be registered.
@Suite struct RegistrationTests {
    private let store = MemoryStore()
    private let time = ManualTime()

    private func service(_ change: (inout AccountSettings) -> Void = { _ in }) -> AccountService {
        var settings = AccountSettings(passwordParameters: PasswordTests.cheap)
        change(&settings)
        return AccountService(
            store: store,
            messages: store,
            devices: DeviceRegistry(time: time),
            time: time,
            settings: settings
        )
    }

    private func register(
        _ name: String,
        _ invitation: String = "",
        from address: String? = "1.2.3.4",
        at accounts: AccountService
    ) async -> HermesError.Code? {
        await code {
            _ = try await accounts.register(
                nickName: name,
                password: "secret",
                invitation: invitation,
                device: DeviceDescription(id: try device("phone")),
                address: address
            )
        }
    }

    @Test func `an address makes so many accounts an hour`() async throws {
        let accounts = service { $0.registrationLimits = .init(perAddress: 3, inTotal: 100) }
        for number in 0..<3 { #expect(await register("a\(number)", at: accounts) == nil) }
        #expect(await register("b", at: accounts) == .rateLimited)
        #expect(await register("b", from: "1.2.3.5", at: accounts) == nil)
        for number in 0..<3 { #expect(await register("c\(number)", from: "2001:db8::\(number)", at: accounts) == nil) }
        #expect(await register("d", from: "2001:db8::9", at: accounts) == .rateLimited, "one network of 64 bits")
        time.advance(by: .seconds(1200))
        #expect(await register("e", at: accounts) == nil)
        #expect(await register("f", at: accounts) == .rateLimited)
        #expect(try await accounts.createAccount(nickName: "f", password: "secret").nickName.rawValue == "f")
    }

    @Test func `all together make so many accounts an hour`() async throws {
        let accounts = service { $0.registrationLimits = .init(perAddress: 3, inTotal: 5) }
        var codes: [HermesError.Code?] = []
        for number in 0..<8 { codes.append(await register("a\(number)", from: "1.2.3.\(number)", at: accounts)) }
        #expect(codes.filter { $0 == nil }.count == 5)
        #expect(codes.filter { $0 == .rateLimited }.count == 3)
    }

    @Test func `what makes no account is not counted`() async throws {
        let accounts = service { $0.registrationLimits = .init(perAddress: 2, inTotal: 2) }
        #expect(await register("a", at: accounts) == nil)
        for _ in 0..<5 { #expect(await register("A", at: accounts) == .nameTaken) }
        #expect(await register("b", at: accounts) == nil)
    }

    @Test func `who may not try again yet is told what it is about`() async throws {
        let accounts = service { $0.registrationLimits = .init(perAddress: 2, inTotal: 2) }
        #expect(await register("a", at: accounts) == nil)
        // It must not be possible to probe names at full speed.
        var delayed: HermesError?
        for _ in 0..<100 where delayed == nil {
            do {
                _ = try await accounts.register(
                    nickName: "A",
                    password: "secret",
                    device: DeviceDescription(id: try device("phone")),
                    address: "1.2.3.4"
                )
            } catch let error as HermesError where error.code == .loginDelayed {
                delayed = error
            } catch {}
        }
        #expect(delayed?.message.contains("register") == true && delayed?.retryAfter != nil)
        let login = await #expect(throws: HermesError.self) {
            _ = try await accounts.admit(.password(nickName: "b", password: "secret"), device: nil, address: "1.2.3.4")
        }
        #expect(login?.code == .loginDelayed && login?.message.contains("register") == false)
    }

    @Test func `no limit is no limit`() async throws {
        let accounts = service { $0.registrationLimits = .init(perAddress: 0, inTotal: 0) }
        for number in 0..<50 { #expect(await register("a\(number)", at: accounts) == nil) }
    }

    /// 1,100 registrations from one address must not delay the password logins of all other clients until these logins
    /// are refused.
    @Test func `registrations do not keep logins waiting`() async throws {
        let accounts = service {
            $0.passwordParameters = .init(ln: 10, r: 8, p: 1)
            $0.maxConcurrentHashes = 1
            $0.maxWaitingHashes = 10
            $0.registrationLimits = .init(perAddress: 0, inTotal: 0)
        }
        #expect(await register("anna", from: "9.9.9.9", at: accounts) == nil)
        let phone = DeviceDescription(id: try device("phone"))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { _ = await register("flood\(number)", from: "1.2.3.\(number % 200)", at: accounts) }
            }
            for _ in 0..<20 {
                let refusal = await code {
                    let credential = Credential.password(nickName: "anna", password: "secret")
                    _ = try await accounts.logIn(credential, device: phone, address: "9.9.9.9")
                }
                #expect(refusal == nil)
            }
        }
    }

    @Test func `invitations let in as many as they say`() async throws {
        let accounts = service { $0.registration = .invitation }
        let (invitation, text) = try await accounts.invitations.create(name: "friends", uses: 2, days: 7)
        #expect(invitation.used == 0)
        #expect(await register("a", at: accounts) == .invitationRequired)
        #expect(await register("a", "AAAAA-AAAAA-AAAAA-AAAAA", at: accounts) == .invitationRequired)
        #expect(await register("a", text, at: accounts) == nil)
        // A registration that creates no account does not use the invitation.
        #expect(await register("a", text, at: accounts) == .nameTaken)
        #expect(await register("b", text.lowercased().replacing("-", with: " "), at: accounts) == nil)
        #expect(await register("c", text, at: accounts) == .invitationRequired)
        #expect(try await accounts.invitations.invitations().map(\.used) == [2])
    }

    @Test func `invitations of one use make one account however many try`() async throws {
        let accounts = service { $0.registration = .invitation }
        let (_, text) = try await accounts.invitations.create(name: "one", uses: 1, days: 0)
        let made = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<20 {
                group.addTask { await register("a\(number)", text, from: "1.2.3.\(number)", at: accounts) == nil }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(made == 1)
    }

    @Test func `invitations end`() async throws {
        let accounts = service { $0.registration = .invitation }
        let (_, text) = try await accounts.invitations.create(name: "week", uses: 9, days: 7)
        let (_, other) = try await accounts.invitations.create(name: "other", uses: 9, days: 0)
        time.advance(by: .seconds(7 * 86_400))
        #expect(await register("a", text, at: accounts) == .invitationRequired)
        #expect(await register("a", other, at: accounts) == nil)
        try await accounts.invitations.revoke(name: "other")
        #expect(await register("b", other, at: accounts) == .invitationRequired)
        #expect(await code { try await accounts.invitations.revoke(name: "other") } == .notFound)
        #expect(await code { _ = try await accounts.invitations.create(name: "week", uses: 1, days: 1) } == .nameTaken)
        for (name, uses, days) in [("a b", 1, 1), ("", 1, 1), ("x", 0, 1), ("x", 1, -1), ("x", 1_000_001, 1)] {
            let refusal = await code { _ = try await accounts.invitations.create(name: name, uses: uses, days: days) }
            #expect(refusal == .invalidArgument)
        }
        let long = String(repeating: "x", count: InvitationService.maxNameCharacters + 1)
        #expect(await code { _ = try await accounts.invitations.create(name: long, uses: 1, days: 1) } == .tooLarge)
    }

    @Test func `codes are guessed as slowly as passwords`() async throws {
        let accounts = service {
            $0.registration = .invitation
            $0.loginLimits.failuresPerAddress = 5
        }
        var codes: [HermesError.Code?] = []
        for _ in 0..<10 { codes.append(await register("a", InvitationCode().text, at: accounts)) }
        #expect(codes.prefix(5).allSatisfy { $0 == .invitationRequired })
        #expect(codes.suffix(5).allSatisfy { $0 == .loginDelayed })
    }

    @Test func `codes are read as people write them`() throws {
        let text = InvitationCode().text
        #expect(text.utf8.count == 23)
        let hash = try #require(InvitationCode.hash(of: text))
        #expect(InvitationCode.hash(of: text.lowercased()) == hash)
        #expect(InvitationCode.hash(of: text.replacing("-", with: "")) == hash)
        #expect(InvitationCode.hash(of: "0O1IL-AAAAA-AAAAA-AAAAA") == InvitationCode.hash(of: "00111AAAAAAAAAAAAAAA"))
        for text in ["", "A", "UUUUU-UUUUU-UUUUU-UUUUU", String(repeating: "A", count: 1000), text + "0"] {
            #expect(InvitationCode.hash(of: text) == nil)
        }
    }
}
