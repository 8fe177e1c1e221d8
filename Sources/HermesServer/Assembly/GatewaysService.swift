// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import Logging
import NIOCore
import NIOSSL
import ServiceLifecycle

/// Runs the listeners of all wire protocols, and drains their clients when the server stops.
struct GatewaysService: Service {
    let listeners: [Listener]
    let webSockets: [WebSocketEndpoint]
    let health: HealthState
    let deadline: Duration
    let logger: Logger
    /// Called when the service begins to run.
    let started: @Sendable () -> Void

    /// Opens a listener for each enabled protocol of the catalogue.
    ///
    /// - Parameter http: the port whose WebSockets the gateways serve.
    static func listen(
        _ environment: GatewayEnvironment,
        http: ListenerSettings,
        group: any EventLoopGroup
    ) async throws(ServerFailure) -> (listeners: [Listener], webSockets: [WebSocketEndpoint]) {
        var listeners: [Listener] = []
        var webSockets: [WebSocketEndpoint] = []
        do throws(ServerFailure) {
            for type in GatewayCatalog.all {
                try await listen(type, environment, http, group, &listeners, &webSockets)
            }
        } catch {
            for listener in listeners { await listener.stopAccepting() }
            throw error
        }
        return (listeners, webSockets)
    }

    /// Starts the enabled listeners of one protocol, which share a gateway. There is one exception: a listener has
    /// its own gateway if it forbids anonymous access and the server allows anonymous access.
    private static func listen<G: Gateway>(
        _ type: G.Type,
        _ environment: GatewayEnvironment,
        _ http: ListenerSettings,
        _ group: any EventLoopGroup,
        _ listeners: inout [Listener],
        _ webSockets: inout [WebSocketEndpoint]
    ) async throws(ServerFailure) {
        let gateway = G(environment: environment)
        let overHTTP = environment.environment(for: http)
        let webGateway = overHTTP === environment ? gateway : G(environment: overHTTP)
        if let webSocket = WebSocketEndpoint(webGateway, environment: overHTTP) { webSockets.append(webSocket) }
        for (name, protocolName, settings) in environment.settings.listeners
        where protocolName == G.name && settings.isEnabled {
            do {
                let own = environment.environment(for: settings)
                listeners.append(
                    try await Listener.start(
                        own === environment ? gateway : G(environment: own),
                        name: name,
                        on: settings,
                        environment: own,
                        group: group
                    )
                )
            } catch {
                guard let tls = settings.tls else { throw .cannotListen(name, settings, error) }
                // A missing file also causes an IOError.
                let isFile = !ConfigurationFiles.fileProblems(of: tls, name).isEmpty
                let isAddress = error is SocketAddressError.UnknownHost || error is IOError && !isFile
                guard isAddress else { throw .badCertificate(name, tls, error) }
                throw .cannotListen(name, settings, error)
            }
        }
    }

    func run() async throws {
        started()
        try? await gracefulShutdown()
        health.advance(to: .draining)
        let open =
            listeners.map(\.openConnections).reduce(0, +) + webSockets.map(\.acceptor.openConnections).reduce(0, +)
        logger.info("stopping", metadata: ["connections": "\(open)", "deadline": "\(deadline)"])
        await withDiscardingTaskGroup { group in
            for listener in listeners {
                group.addTask {
                    await listener.stopAccepting()
                    await listener.drain(within: deadline)
                }
            }
            for webSocket in webSockets { group.addTask { await webSocket.acceptor.drain(within: deadline) } }
        }
    }
}
