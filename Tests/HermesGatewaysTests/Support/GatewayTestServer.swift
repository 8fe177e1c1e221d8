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
        _ body: (GatewayTestServer) async throws -> Void
    ) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
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
