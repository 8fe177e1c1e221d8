// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import HermesGateways
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle

/// The open port of the console, before it serves anything.
struct ConsolePort: Sendable {
    /// The largest number of connections. The console needs few of them; the rest is a reserve against peers that hold
    /// connections open without a login. Other listeners' connections do not count here.
    private static let maxConnections = 2_048
    /// The longest time between two requests on a connection. It is longer than the intervals at which the pages send
    /// requests, so that a page need not open a new connection.
    private static let idle = Duration.seconds(15)

    let listener: HTTPListener
    /// The certificate; nil if the console is not encrypted.
    let tls: TLSContextBox?

    /// - Returns: nil if the console is switched off, or if the store is in memory, where there are no administrators.
    ///   Also nil, with a warning, if the port cannot be opened and the server has other listeners. The server then
    ///   works without the console.
    /// - Throws: if the certificate cannot be used, or if the port cannot be opened and is the only listener.
    static func open(
        _ settings: ServerSettings,
        health: HealthState,
        group: any EventLoopGroup,
        _ logger: Logger
    ) async throws(ServerFailure) -> ConsolePort? {
        let console = settings.console.listener
        guard console.isEnabled, settings.data.storeKind == .sqlite else { return nil }
        let tls: TLSContextBox?
        do {
            tls = try console.tls.map(TLSContextBox.init)
        } catch {
            throw console.tls.map { .badCertificate("console", $0, error) }
                ?? ServerFailure(.badConfiguration, "listeners.console.tls cannot be used: \(error)")
        }
        var limits = settings.gateways.limits
        limits.connections = min(limits.connections, ConnectionCounter.total(forHTTP: maxConnections))
        let counter = ConnectionCounter(limits, http: DescriptorShares.present.console)
        var exchange = settings.http.limits
        exchange.idle = min(exchange.idle, idle)
        let gate = HTTPGate(
            limits: exchange,
            api: settings.api,
            forwarded: ForwardedClient(proxies: settings.http.trustedProxies),
            counter: counter,
            health: health,
            uptime: { [time = SystemTime()] in time.uptime() },
            name: "console",
            logger: logger
        )
        do {
            let listener = try await HTTPListener.start(
                console,
                gate: gate,
                counter: counter,
                tls: tls,
                group: group,
                logger: logger
            )
            return ConsolePort(listener: listener, tls: tls)
        } catch {
            let failure = ServerFailure.cannotListen("console", console, error)
            guard settings.enabledListeners.contains(where: { $0.name != "console" }) else { throw failure }
            logger.warning("no console", metadata: ["error": "\(failure.message)"])
            return nil
        }
    }
}

/// Serves the console.
struct ConsoleService: Service {
    /// The time in which running requests can finish when the server stops.
    private static let farewell = TimeAmount.seconds(1)

    let listener: HTTPListener
    let console: Console
    let pages: Pages
    let hosts: ConsoleHosts
    let logger: Logger
    /// Called with the port's number once the console is served.
    let listening: @Sendable (Int) -> Void

    func run() async throws {
        let conversation = HTTPConversation(router(), forwarded: listener.gate.forwarded, logger: logger)
        let origins = WebOrigins([], isAnonymousAllowed: false, isLoopback: true)
        listener.gate.open(HTTPGate.Site(webSockets: [], origins: origins))
        listening(listener.port)
        await withDiscardingTaskGroup { group in
            group.addTask {
                try? await gracefulShutdown()
                await listener.stop(within: Self.farewell)
            }
            for await connection in listener.requests {
                group.addTask { await conversation.serve(connection) }
            }
        }
    }

    private func router() -> Router<HTTPContext> {
        let router = Router(context: HTTPContext.self)
        router.add(middleware: hosts)
        for method in [HTTPRequest.Method.get, .head] {
            router.on("/", method: method) { _, _ in Pages.redirect(to: "/console/") }
        }
        console.register(on: router)
        pages.register(on: router)
        return router
    }
}
#endif
