// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesWire
import Logging
import NIOCore
import NIOPosix

/// Gateways over a store in memory, on ports of their own.
struct GatewayTestServer {
    let messenger: Messenger
    let environment: GatewayEnvironment
    let listeners: [String: Listener]

    /// Starts the gateways, runs `body` and stops everything.
    static func with(
        settings: GatewaySettings = GatewaySettings(),
        tls: TLSSettings? = nil,
        store: MemoryStore = MemoryStore(settings: StoreSettings(historyPeriod: .seconds(3600))),
        access: TopicAccess = TopicAccess(),
        loops: Int = 2,
        _ body: (GatewayTestServer) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: loops)
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            accountSettings: AccountSettings(passwordParameters: .init(ln: 1, r: 1, p: 1))
        )
        let environment = GatewayEnvironment(
            messenger: messenger,
            loops: LoopContexts(group),
            settings: settings,
            access: access,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        var listeners: [String: Listener] = [:]
        for type in GatewayCatalog.all {
            let listener = try await Listener.start(
                type,
                on: ListenerSettings(port: 0, tls: tls),
                environment: environment,
                group: group
            )
            listeners[listener.name] = listener
        }
        let server = GatewayTestServer(messenger: messenger, environment: environment, listeners: listeners)
        let result: Result<Void, any Error>
        do {
            result = .success(try await body(server))
        } catch {
            result = .failure(error)
        }
        for listener in listeners.values { await listener.stopAccepting() }
        for listener in listeners.values { await listener.drain(within: .seconds(1)) }
        await messenger.shutdown()
        try await group.shutdownGracefully()
        try result.get()
    }

    /// Somebody as the core sees it, without a connection.
    func principal(_ uid: UInt32, device: String = "core") async throws -> Principal {
        guard let user = UserID(uid), let device = DeviceID(device),
            let account = try await messenger.accounts.account(.id(user))
        else { throw Unexpected("there is no account \(uid)") }
        return Principal(user: user, nickName: account.nickName, device: device)
    }

    /// Has one account do something about another.
    func contact(_ command: ContactCommand, by uid: UInt32, _ other: UInt32) async throws {
        let peer = try await principal(other).user
        try await messenger.contacts.apply(command, to: peer, by: principal(uid))
    }

    /// Makes two accounts contacts; the inbox of each has an entry that says so.
    func befriend(_ one: UInt32, _ other: UInt32) async throws {
        try await contact(.request, by: one, other)
        try await contact(.accept, by: other, one)
    }

    func port(_ name: String) -> Int { listeners[name]?.port ?? 0 }

    /// A connection of the native protocol.
    func delimited() async throws -> DelimitedTestClient {
        try await DelimitedTestClient.connect(port: port("delimited"))
    }

    /// A connection of IMPB.
    func impb() async throws -> IMPBTestClient {
        try await IMPBTestClient.connect(port: port("impb"))
    }
}
