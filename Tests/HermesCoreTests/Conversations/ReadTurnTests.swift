// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// If a client causes a read from a store, the read waits for the turn of its source. So no client can occupy all
/// readers of the store.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ReadTurnTests {
    struct World: Sendable {
        let messenger: Messenger
        let keys: APIKeyService
        let administrators: AdministratorService
        let ann: Principal
        let bob: UserID
        let token: String
        let group: GroupID
    }

    /// A read: the gate where it waits, the source that it counts for, and the call that causes it. The result of the
    /// read does not matter.
    struct Read: Sendable, CustomStringConvertible {
        let description: String
        let gate: @Sendable (World) -> ReadGate
        let source: @Sendable (World) -> CommitSource
        let run: @Sendable (World) async throws -> Void
    }

    private static let address = "10.0.0.1"

    private static func read(
        _ name: String,
        _ gate: @escaping @Sendable (World) -> ReadGate,
        _ source: @escaping @Sendable (World) -> CommitSource,
        _ run: @escaping @Sendable (World) async throws -> Void
    ) -> Read {
        Read(description: name, gate: gate, source: source, run: run)
    }

    /// Creates a read of an account.
    private static func own(_ name: String, _ run: @escaping @Sendable (World) async throws -> Void) -> Read {
        read(name, { $0.messenger.messages.reads }, { .account($0.ann.user) }, run)
    }

    /// Creates a read of the operators of the server.
    private static func operators(_ name: String, _ run: @escaping @Sendable (World) async throws -> Void) -> Read {
        read(name, { $0.messenger.messages.reads }, { _ in .server }, run)
    }

    /// Creates a read of a login.
    private static func login(_ name: String, _ run: @escaping @Sendable (World) async throws -> Void) -> Read {
        read(name, { $0.messenger.accounts.logins }, { _ in CommitSource(host: address) }, run)
    }

    /// Creates a read of the state of an account that logs in.
    private static func standing(_ name: String, _ run: @escaping @Sendable (World) async throws -> Void) -> Read {
        read(name, { $0.messenger.accounts.standings }, { _ in CommitSource(host: address) }, run)
    }

    private static let event = EphemeralEvent.command([1])

    private static let contacts: [Read] = [
        own("contacts") { _ = try await $0.messenger.contacts.contacts(of: $0.ann.user, after: nil, limit: 9) },
        own("friends") { _ = try await $0.messenger.contacts.accepted(of: $0.ann.user, skipped: 0, limit: 9) },
        own("isBlocked") { _ = try await $0.messenger.contacts.isBlocked($0.ann.user, by: $0.bob) },
        own("mayWrite") { _ = try await $0.messenger.contacts.mayWrite($0.ann.user, to: $0.bob) },
        own("areContacts") { _ = try await $0.messenger.contacts.areContacts($0.ann.user, $0.bob) },
        own("online") { _ = try await $0.messenger.contacts.online(among: [$0.bob], for: $0.ann.user) },
        own("watch") { _ = try await $0.messenger.contacts.watch([$0.bob], by: RecordingAttachment($0.ann)) },
        own("typing") { _ = try await $0.messenger.tell($0.bob, event, from: $0.ann.user) },
        own("signal") { _ = try await $0.messenger.tellContact($0.bob, event, from: $0.ann.user) },
    ]

    private static let groups: [Read] = [
        own("group") { _ = try await $0.messenger.groups.group($0.group, reader: $0.ann.user) },
        own("typing in a group") { _ = try await $0.messenger.groups.listeners(in: $0.group, to: $0.ann.user) },
        own("groups") { _ = try await $0.messenger.groups.groups(of: $0.ann.user, after: nil, limit: 9) },
        operators("groups by name") { _ = try await $0.messenger.groups.groups(named: "g", after: nil, limit: 9) },
        operators("any group") { _ = try await $0.messenger.groups.group($0.group) },
        operators("change of any group") {
            try await $0.messenger.groups.administer(.setRole(.administrator, of: $0.bob), in: $0.group)
        },
    ]

    private static let accounts: [Read] = [
        own("account") { _ = try await $0.messenger.accounts.account(.id($0.bob), for: .account($0.ann.user)) },
        own("own devices") { _ = try await $0.messenger.accounts.devices(of: $0.ann.user) },
        own("removal of a device") { try await $0.messenger.accounts.removeOwnDevice($0.ann.device, of: $0.ann.user) },
        own("new name") {
            _ = try await $0.messenger.accounts.changeOwnProfile(of: $0.ann.user, nickName: "Ann", avatarURL: nil)
        },
        own("new password") {
            try await $0.messenger.accounts.changePassword(of: $0.ann, old: "secret1", new: "secret2")
        },
        operators("any account") { _ = try await $0.messenger.accounts.account(.id($0.bob)) },
        operators("accounts") { _ = try await $0.messenger.accounts.accounts(after: nil, limit: 9) },
        operators("accounts by name") {
            _ = try await $0.messenger.accounts.accounts(named: "a", after: nil, limit: 9)
        },
        operators("token for a device") {
            _ = try await $0.messenger.accounts.issueToken(for: DeviceDescription(id: $0.ann.device), of: $0.ann.user)
        },
        operators("invitations") { _ = try await $0.messenger.accounts.invitations.invitations() },
    ]

    private static let messages: [Read] = [
        own("inbox") { _ = try await $0.messenger.inbox.answer(.page(after: 0, limit: 9), for: $0.ann.user) },
        own("history") {
            let conversation = ConversationID.direct(between: $0.ann.user, and: $0.bob)
            _ = try await $0.messenger.inbox.answer(.history(conversation, before: nil, limit: 9), for: $0.ann.user)
        },
        own("history of a group") {
            _ = try await $0.messenger.inbox.answer(.history(.group($0.group), before: nil, limit: 9), for: $0.ann.user)
        },
        operators("conversations") {
            let request = InboxRequest.conversations(after: nil, limit: 9)
            _ = try await $0.messenger.inbox.answer(request, for: $0.ann.user, source: .server)
        },
        operators("recipients of a push") { _ = try await $0.messenger.pushes.existing([$0.bob]) },
        read(
            "sessions",
            { $0.messenger.durable.reads },
            { _ in .server },
            { _ = try await $0.messenger.durable.list(after: nil, containing: "", limit: 9) }
        ),
    ]

    private static let console: @Sendable (World) async throws -> Void = { world in
        _ = try await world.administrators.logIn(
            name: "root",
            password: "secret",
            code: nil,
            address: address,
            replacing: nil
        )
    }

    private static let logins: [Read] = [
        read(
            "position of a new device",
            { $0.messenger.accounts.standings },
            { .account($0.ann.user) },
            { _ = try await $0.messenger.accounts.position(of: $0.ann.user) }
        ),
        read(
            "comparison with the newest entry",
            { $0.messenger.accounts.logins },
            { .account($0.ann.user) },
            {
                let entry = KnownEntry(seq: 1, id: "", committedAt: Timestamp(rawValue: 0))
                _ = try await $0.messenger.accounts.has(entry, inInboxOf: $0.ann.user)
            }
        ),
        read(
            "head of an inbox",
            { $0.messenger.inbox.heads },
            { .account($0.ann.user) },
            { world in
                await withCheckedContinuation { continuation in
                    world.messenger.inbox.deliver(
                        to: world.ann.user,
                        after: 7,
                        limit: 9,
                        head: 7,
                        source: .account(world.ann.user)
                    ) { _ in continuation.resume() }
                }
            }
        ),
        standing("login by password") {
            let credential = Credential.password(nickName: "ann", password: "secret1")
            let device = DeviceDescription(id: $0.ann.device)
            _ = try await $0.messenger.accounts.logIn(credential, device: device, address: address)
        },
        standing("login by token") {
            let device = DeviceDescription(id: $0.ann.device)
            _ = try await $0.messenger.accounts.logIn(.token($0.token), device: device, address: address)
        },
        standing("admission by token or password") {
            let credential = Credential.passwordOrToken(nickName: "ann", secret: $0.token)
            _ = try await $0.messenger.accounts.admit(credential, device: nil, address: address)
        },
        standing("claim") {
            _ = try await $0.messenger.accounts.admit(.claim($0.ann.user), device: nil, address: address)
        },
        login("certificate") {
            let clients = ClientAuthenticator(
                accounts: $0.messenger.accounts,
                time: ManualTime(),
                isAnonymousAllowed: false
            )
            _ = try await clients.logIn(
                userName: nil,
                password: nil,
                clientID: "x",
                certificateIdentity: "nobody",
                address: address
            )
        },
        login("registration") {
            let device = DeviceDescription(id: $0.ann.device)
            _ = try await $0.messenger.accounts.register(
                nickName: "eve",
                password: "secret1",
                device: device,
                address: address
            )
        },
        read(
            "API key",
            { $0.keys.reads },
            { _ in CommitSource(host: address) },
            { _ = try await $0.keys.check("hk_" + AccessToken().text, from: CommitSource(host: address)) }
        ),
        read("API keys", { $0.keys.reads }, { _ in .server }, { _ = try await $0.keys.keys() }),
        read(
            "administrators",
            { $0.administrators.reads },
            { _ in .server },
            { _ = try await $0.administrators.administrators() }
        ),
        read(
            "audit log",
            { $0.administrators.reads },
            { _ in .server },
            { _ = try await $0.administrators.auditLog(before: nil, limit: 9) }
        ),
        read("console", { $0.administrators.reads }, { _ in CommitSource(host: address) }, console),
    ]

    private static func world() async throws -> World {
        let store = MemoryStore()
        let time = ManualTime()
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            accountSettings: AccountSettings(passwordParameters: PasswordTests.cheap),
            time: time
        )
        let device = DeviceDescription(id: try HermesCoreTests.device("phone"))
        func register(_ name: String) async throws -> Login {
            try await messenger.accounts.register(nickName: name, password: "secret1", device: device, address: nil)
        }
        let ann = try await register("ann")
        let bob = try await register("bob")
        messenger.devices.attach(RecordingAttachment(bob.principal))
        let create = GroupCommand.create(name: "g", members: [bob.principal.user])
        let group = try await messenger.groups.apply(create, by: ann.principal)
        return World(
            messenger: messenger,
            keys: APIKeyService(store: store, time: time),
            administrators: AdministratorService(store: store, time: time, passwordCost: PasswordTests.cheap),
            ann: ann.principal,
            bob: bob.principal.user,
            token: try #require(ann.token),
            group: group.id
        )
    }

    static let reads: [Read] = [contacts, groups, accounts, messages, logins].flatMap { $0 }

    @Test(arguments: ReadTurnTests.reads)
    func `each read waits for its turn, and goes on then`(_ read: Read) async throws {
        let world = try await Self.world()
        let gate = read.gate(world)
        // All places are taken.
        let doors = (0..<gate.maxRunning).map { _ in AsyncStream<Void>.makeStream() }
        let holders = doors.map { door in
            Task {
                _ = try? await gate.turn(of: .server) { () async throws(HermesError) in
                    for await _ in door.stream {}
                }
            }
        }
        while gate.running < gate.maxRunning { await Task.yield() }
        let isDone = Mutex(false)
        let source = read.source(world)
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask { @Sendable in
                _ = try? await read.run(world)
                isDone.withLock { $0 = true }
            }
            while gate.waiting(of: source) == 0, !isDone.withLock(\.self) { await Task.yield() }
            #expect(gate.waiting(of: source) == 1)
            #expect(!isDone.withLock { $0 })
            for door in doors { door.continuation.finish() }
        }
        for holder in holders { _ = await holder.value }
        // Some reads are answered just before they leave the gate. If a read never leaves the gate, the time limit ends
        // the test.
        while gate.running > 0 { await Task.yield() }
        await world.messenger.shutdown()
    }
}
