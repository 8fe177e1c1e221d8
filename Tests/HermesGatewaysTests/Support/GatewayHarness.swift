// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Logging
import NIOCore
import NIOPosix

@testable import HermesGateways

/// Gateways with a core in memory. Each gateway listens on a free port of this machine.
struct GatewayHarness {
    let group: MultiThreadedEventLoopGroup
    let messenger: Messenger
    let environment: GatewayEnvironment
    /// The listener of the gateway, or of the first gateway if there are several.
    let listener: Listener
    /// The listeners by their names.
    let listeners: [String: Listener]

    /// Starts one gateway, runs `body` and stops it.
    ///
    /// - Parameters:
    ///   - sessionStore: the store of durable sessions; nil for the same store as all other data.
    ///   - bus: the way to other nodes over the same store.
    ///   - logger: the logger; nil for a logger that writes nothing.
    static func with(
        _ gateway: any Gateway.Type,
        on listening: ListenerSettings = ListenerSettings(port: 0),
        settings: GatewaySettings = GatewaySettings(),
        loops: Int = 1,
        store: MemoryStore = MemoryStore(),
        bus: any ClusterBus = LoneNode(),
        sessionStore: (any SessionStore)? = nil,
        tokenVerifier: (any TokenVerifier)? = nil,
        durableSettings: DurableSettings = DurableSettings(),
        time: any TimeSource = SystemTime(),
        logger: Logger? = nil,
        _ body: (GatewayHarness) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: loops)
        let messenger = messenger(
            store,
            bus: bus,
            sessionStore: sessionStore,
            durableSettings: durableSettings,
            time: time
        )
        let environment = GatewayEnvironment(
            messenger: messenger,
            loops: LoopContexts(group, memory: MemoryBudget(limit: settings.limits.memoryBytes)),
            settings: settings,
            tokenVerifier: tokenVerifier,
            logger: logger ?? Self.logger
        )
        try await run([gateway], on: listening, environment, messenger, group, body)
    }

    /// Starts all gateways, runs `body` and stops them.
    static func with(
        settings: GatewaySettings = GatewaySettings(),
        tls: TLSSettings? = nil,
        store: MemoryStore = MemoryStore(settings: StoreSettings(historyPeriod: .seconds(3600))),
        access: TopicAccess = TopicAccess(),
        loops: Int = 2,
        messages: MessageSettings = MessageSettings(),
        _ body: (GatewayHarness) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: loops)
        let messenger = messenger(store, messages: messages)
        let environment = GatewayEnvironment(
            messenger: messenger,
            loops: LoopContexts(group),
            settings: settings,
            access: access,
            logger: logger
        )
        let listening = ListenerSettings(port: 0, tls: tls)
        try await run(GatewayCatalog.all, on: listening, environment, messenger, group, body)
    }

    private static func messenger(
        _ store: MemoryStore,
        bus: any ClusterBus = LoneNode(),
        sessionStore: (any SessionStore)? = nil,
        messages: MessageSettings = MessageSettings(),
        durableSettings: DurableSettings = DurableSettings(),
        time: any TimeSource = SystemTime()
    ) -> Messenger {
        Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: sessionStore ?? store,
            pushTokenStore: store,
            accountSettings: AccountSettings(passwordParameters: .init(ln: 1, r: 1, p: 1)),
            messageSettings: messages,
            durableSettings: durableSettings,
            time: time,
            bus: bus,
            placeStore: store
        )
    }

    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private static func run(
        _ gateways: [any Gateway.Type],
        on listening: ListenerSettings,
        _ environment: GatewayEnvironment,
        _ messenger: Messenger,
        _ group: MultiThreadedEventLoopGroup,
        _ body: (GatewayHarness) async throws -> Void
    ) async throws {
        var started: [Listener] = []
        for type in gateways {
            started.append(try await Listener.start(type, on: listening, environment: environment, group: group))
        }
        let harness = GatewayHarness(
            group: group,
            messenger: messenger,
            environment: environment,
            listener: started[0],
            listeners: Dictionary(uniqueKeysWithValues: started.map { ($0.name, $0) })
        )
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(harness))
        } catch {
            result = .failure(error)
        }
        for listener in started { await listener.stopAccepting() }
        for listener in started { await listener.drain(within: .seconds(1)) }
        await messenger.shutdown()
        try await group.shutdownGracefully()
        try result.get()
    }

    // MARK: People

    /// Registers a new account, and logs it in on the device "phone".
    func register(_ name: String) async throws -> Login {
        guard let phone = DeviceID("phone") else { throw HermesError(.internalError, "no device id") }
        return try await messenger.accounts.register(
            nickName: name,
            password: "correct horse",
            device: DeviceDescription(id: phone),
            address: nil
        )
    }

    /// Returns the principal of an account, without a connection.
    func principal(_ uid: UInt32, device: String = "core") async throws -> Principal {
        guard let user = UserID(uid), let device = DeviceID(device),
            let account = try await messenger.accounts.account(.id(user))
        else { throw Unexpected("there is no account \(uid)") }
        return Principal(user: user, nickName: account.nickName, device: device)
    }

    /// Carries out a contact command of one account for another account.
    func contact(_ command: ContactCommand, by uid: UInt32, _ other: UInt32) async throws {
        let peer = try await principal(other).user
        try await messenger.contacts.apply(command, to: peer, by: principal(uid))
    }

    /// Makes two accounts contacts; the inbox of each has an entry that says so.
    func befriend(_ one: UInt32, _ other: UInt32) async throws {
        try await contact(.request, by: one, other)
        try await contact(.accept, by: other, one)
    }

    /// Returns after every event loop has handled all its earlier work. Connections apply new rules one after the
    /// other.
    func turnsAreTaken() async {
        for loop in environment.loops.all {
            await withCheckedContinuation { heard in loop.post(.run { loop.inTurn { heard.resume() } }) }
        }
    }

    /// Renames an account. When the call returns, the account's connections know the new name.
    func rename(_ uid: UInt32, to name: String) async throws {
        let user = try await principal(uid).user
        _ = try await messenger.accounts.changeProfile(of: user, nickName: name, avatarURL: nil)
        await turnsAreTaken()
    }

    // MARK: Connections

    /// The number of connections that the server still has.
    func openCount() async throws -> Int { try await connectionCount { _ in true } }

    /// The number of open connections that are throttled.
    func throttledCount() async throws -> Int {
        try await connectionCount { $0.isOpen && $0.pauses.contains(.throttled) }
    }

    /// The number of connections that count against the budget of the account.
    func connectionCount(of user: UserID) async throws -> Int { try await connectionCount { $0.account == user } }

    private func connectionCount(_ isCounted: @escaping @Sendable (Connection) -> Bool) async throws -> Int {
        var count = 0
        for loop in environment.loops.all {
            count += try await loop.eventLoop.submit { loop.connections.count(where: isCounted) }.get()
        }
        return count
    }

    func port(_ name: String) -> Int { listeners[name]?.port ?? 0 }

    /// Opens a connection to the gateway, or to the first gateway if there are several.
    func connect<Decoder: FrameDecoder>(_ decoder: Decoder.Type) async throws -> WireClient<Decoder> {
        try await .connect(port: listener.port)
    }

    /// Opens a connection of the native protocol.
    func delimited() async throws -> DelimitedTestClient {
        try await DelimitedTestClient.connect(port: port("delimited"))
    }

    /// Opens a connection of IMPB.
    func impb() async throws -> IMPBTestClient {
        try await IMPBTestClient.connect(port: port("impb"))
    }
}
