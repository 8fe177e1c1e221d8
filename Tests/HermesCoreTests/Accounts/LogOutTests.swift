// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import HermesCore

/// Tests which connections a log-out ends.
@Suite struct LogOutTests {
    private let store = MemoryStore()
    private let time = ManualTime()
    private let devices: DeviceRegistry

    init() { devices = DeviceRegistry(time: time) }

    private func service(
        _ accounts: (any AccountStore)? = nil,
        endTopicClients: @escaping AccountService.EndOfTopicClients = { _, _, _, _ in }
    ) -> AccountService {
        AccountService(
            store: accounts ?? store,
            messages: store,
            devices: devices,
            time: time,
            settings: AccountSettings(passwordParameters: PasswordTests.cheap),
            endTopicClients: endTopicClients
        )
    }

    private func phone() throws -> DeviceDescription { DeviceDescription(id: try device("phone")) }

    private func register(_ accounts: AccountService) async throws -> Login {
        try await accounts.register(nickName: "anna", password: "secret", device: phone(), address: nil)
    }

    private func attach(_ login: Login) -> RecordingAttachment {
        let attachment = RecordingAttachment(login.principal)
        devices.attach(attachment)
        return attachment
    }

    /// The login of the connection began before the token was revoked, like the login of a thief who has the token.
    @Test func `a connection that showed the same token ends, even if it is of the same device`() async throws {
        let accounts = service()
        let first = try await register(accounts)
        let token = try #require(first.token)
        let attached = attach(try await accounts.logIn(.token(token), device: phone(), address: nil))
        let underWay = try await accounts.logIn(.token(token), device: phone(), address: nil)
        try await accounts.logOut(first.principal, token: first.tokenHash, removeDevice: false)
        #expect(attached.ends == [.revoked])
        #expect(attach(underWay).ends == [.revoked])
    }

    /// QSIOP admits and opens a device in these two steps.
    @Test func `a device that was admitted before its token was revoked, and opened after that, ends`() async throws {
        let accounts = service()
        let first = try await register(accounts)
        let token = try #require(first.token)
        let admission = try await accounts.admit(.tokenOfAnyDevice(token), device: phone().id, address: nil)
        try await accounts.logOut(first.principal, token: first.tokenHash, removeDevice: false)
        #expect(attach(try await accounts.open(phone(), by: admission)).ends == [.revoked])
    }

    /// This happens over IMPB, where a login removes the device that the registration created.
    @Test func `every other connection of a removed device ends`() async throws {
        let accounts = service()
        let first = try await register(accounts)
        let credential = Credential.password(nickName: "anna", password: "secret")
        let other = attach(try await accounts.logIn(credential, device: phone(), address: nil))
        try await accounts.logOut(first.principal, token: first.tokenHash, removeDevice: true)
        #expect(other.ends == [.revoked])
    }

    @Test func `an account removes a limited number of devices in a minute, but can always log out`() async throws {
        let accounts = service()
        let user = try await register(accounts).principal.user
        let credential = Credential.password(nickName: "anna", password: "secret")
        for number in 0..<100 {
            let tablet = DeviceDescription(id: try device("tablet\(number)"))
            let login = try await accounts.logIn(credential, device: tablet, address: nil)
            try await accounts.logOut(login.principal, token: login.tokenHash, removeDevice: true)
        }
        let rest = try await accounts.devices(of: user).map(\.description.id)
        let (last, left) = (try device("tablet59"), try device("tablet60"))
        #expect(rest.count == 1 + 40 && !rest.contains(last) && rest.contains(left))
        #expect(try await accounts.tokens(of: user).count == 1)
        time.advance(by: .seconds(60))
        let login = try await accounts.logIn(credential, device: DeviceDescription(id: left), address: nil)
        try await accounts.logOut(login.principal, token: login.tokenHash, removeDevice: true)
        #expect(try await accounts.devices(of: user).count == 40)
    }

    @Test(arguments: [false, true])
    func `the end of its own connection is left to the caller`(removesDevice: Bool) async throws {
        let accounts = service()
        let login = try await register(accounts)
        let own = attach(login)
        try await accounts.logOut(login.principal, token: login.tokenHash, removeDevice: removesDevice)
        #expect(own.ends.isEmpty)
        #expect(devices.attachments(of: login.principal.user).count == 1)
    }

    @Test(arguments: [false, true])
    func `what depends on the revoked token ends, even if the rest cannot be stored`(removesDevice: Bool) async throws {
        let ended = EndedClients()
        let accounts = service(TokenRevokingStore(store)) { _, _, _, devices in
            ended.all.withLock { $0.append(devices) }
        }
        let login = try await register(accounts)
        let token = try #require(login.token)
        let other = attach(try await accounts.logIn(.token(token), device: phone(), address: nil))
        let failure = await code {
            try await accounts.logOut(login.principal, token: login.tokenHash, removeDevice: removesDevice)
        }
        #expect(failure == .storageUnavailable)
        #expect(other.ends == [.revoked])
        // The device's own MQTT client stays, so that it is told about the failure.
        let clients = ended.all.withLock { $0 }
        #expect(!clients.isEmpty && !clients.contains { $0.contains(login.principal) })
        #expect(clients.contains { $0.contains(clientID: "phone", tokenOwner: nil, login: nil) })
    }
}

private final class EndedClients: Sendable {
    let all = Mutex<[EndedDevices]>([])
}

/// A store that can revoke only single tokens. All other revocations fail.
private final class TokenRevokingStore: AccountStore {
    private let base: MemoryStore

    init(_ base: MemoryStore) { self.base = base }

    func revoke(_ scope: RevocationScope, now: Timestamp) async throws(HermesError) {
        guard case .token = scope else { throw HermesError(.storageUnavailable, "full") }
        try await base.revoke(scope, now: now)
    }

    func create(_ account: NewAccount, now: Timestamp) async throws(HermesError) -> Account {
        try await base.create(account, now: now)
    }

    func find(_ key: AccountKey) async throws(HermesError) -> StoredAccount? { try await base.find(key) }

    func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account] {
        try await base.accounts(after: id, limit: limit)
    }

    func update(_ id: UserID, _ change: AccountChange) async throws(HermesError) -> Account {
        try await base.update(id, change)
    }

    func keptNames() async throws(HermesError) -> [KeptName] { try await base.keptNames() }

    func keeps(_ name: KeptName) async throws(HermesError) -> Bool { try await base.keeps(name) }

    func free(_ name: KeptName) async throws(HermesError) { try await base.free(name) }

    func open(_ opening: DeviceOpening, now: Timestamp) async throws(HermesError) -> Device {
        try await base.open(opening, now: now)
    }

    func standing(
        _ key: LoginKey,
        device: DeviceID?,
        address: String?
    ) async throws(HermesError) -> LoginStanding? {
        try await base.standing(key, device: device, address: address)
    }

    func note(_ traces: [LoginTrace]) async throws(HermesError) { try await base.note(traces) }

    func devices(of user: UserID) async throws(HermesError) -> [Device] { try await base.devices(of: user) }

    func tokens(of user: UserID) async throws(HermesError) -> [DeviceToken] { try await base.tokens(of: user) }

    func owner(of token: TokenHash) async throws(HermesError) -> TokenOwner? { try await base.owner(of: token) }

    func create(_ invitation: NewInvitation, now: Timestamp) async throws(HermesError) -> Invitation {
        try await base.create(invitation, now: now)
    }

    func invitations() async throws(HermesError) -> [Invitation] { try await base.invitations() }

    func invitation(_ hash: TokenHash) async throws(HermesError) -> Invitation? { try await base.invitation(hash) }

    func revoke(invitationNamed name: String) async throws(HermesError) {
        try await base.revoke(invitationNamed: name)
    }
}
