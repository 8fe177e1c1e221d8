// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// The HTTP port: `/healthz`, `/readyz`, `/metrics`, the API under `/v1`, and gateways over WebSocket.
struct HTTPService: Service {
    /// Open connections at most, WebSockets not counted; what is more is closed.
    private static let maxConnections = 1000
    private static let idleTimeout = TimeAmount.seconds(30)
    /// How long requests that are being answered have when the server stops.
    private static let farewell = Duration.seconds(2)
    /// How long `/readyz` waits for the store.
    private static let storePatience = Duration.seconds(2)

    let settings: ListenerSettings
    /// The certificate in use; nil: not encrypted.
    let tls: TLSContextBox?
    let health: HealthState
    let store: any MessageStore
    let gauges: StateGauges
    /// Nil if it is switched off.
    let api: API?
    let webSockets: [WebSocketEndpoint]
    let origins: WebSocketOrigins
    /// WebSockets at most.
    let maxWebSockets: Int
    let group: MultiThreadedEventLoopGroup
    let logger: Logger
    /// Called with the port once it is open.
    let listening: @Sendable (Int) -> Void

    func run() async throws {
        let application = Application(
            router: router(),
            server: server(),
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port),
                serverName: "hermes",
                availableConnectionsDelegate: MaximumAvailableConnections(Self.maxConnections + maxWebSockets)
            ),
            onServerRunning: { channel in listening(channel.localAddress?.port ?? 0) },
            eventLoopGroupProvider: .shared(group),
            logger: quiet(logger)
        )
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await application.run() }
                group.addTask {
                    // Whoever holds a request open does not keep the server from stopping.
                    try await gracefulShutdown()
                    try await Task.sleep(for: Self.farewell)
                }
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch let error as IOError {
            throw ServerFailure.cannotListen("http", settings, error)
        } catch is CancellationError {
            // Stopped together with everything else.
        }
    }

    private func router() -> Router<BasicRequestContext> {
        let router = Router()
        router.get("/healthz") { _, _ in "ok\n" }
        router.get("/readyz") { [health, store] _, _ -> Response in
            let state = health.current
            guard state == .ready else { return Self.text(.serviceUnavailable, "\(state.rawValue)\n") }
            guard await Self.isAnswering(store) else { return Self.text(.serviceUnavailable, "store\n") }
            return Self.text(.ok, "ready\n")
        }
        router.get("/metrics") { [gauges] _, _ in
            gauges.read()
            return Self.text(.ok, MetricsRegistry.shared.text(), type: "text/plain; version=0.0.4; charset=utf-8")
        }
        api?.register(on: router)
        for endpoint in webSockets {
            // A handshake that is not good comes here as any other request.
            router.get(RouterPath(endpoint.path)) { [origins] request, _ -> Response in
                guard origins.allow(request.headers[values: .origin]) else {
                    return Self.text(.forbidden, "this web page may not connect\n")
                }
                var response = Self.text(.upgradeRequired, "WebSocket with the subprotocol \(endpoint.subprotocol)\n")
                response.headers[.upgrade] = "websocket"
                response.headers[.secWebSocketVersion] = "13"
                return response
            }
        }
        return router
    }

    private func server() -> HTTPServerBuilder {
        let upgrader = WebSocketUpgrader(endpoints: webSockets, origins: origins)
        let limit = HTTPConnectionLimit(Self.maxConnections)
        return HTTPServerBuilder { [tls] responder in
            HTTPConnection(
                responder: responder,
                upgrader: upgrader,
                limit: limit,
                idleTimeout: Self.idleTimeout,
                tls: tls
            )
        }
    }

    /// Whether the store gives an answer in time.
    private static func isAnswering(_ store: any MessageStore) async -> Bool {
        guard let anyone = UserID(rawValue: 1) else { return true }
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask { (try? await store.position(of: anyone)) != nil }
            group.addTask {
                // Cancelled once the store has answered.
                try? await Task.sleep(for: storePatience)
                return false
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }

    private static func text(
        _ status: HTTPResponse.Status,
        _ body: String,
        type: String = "text/plain; charset=utf-8"
    ) -> Response {
        Response(status: status, headers: [.contentType: type], body: .init(byteBuffer: ByteBuffer(string: body)))
    }

    /// The library's own lines matter only when something is wrong.
    private func quiet(_ logger: Logger) -> Logger {
        var logger = logger
        logger.logLevel = max(logger.logLevel, .warning)
        return logger
    }
}
