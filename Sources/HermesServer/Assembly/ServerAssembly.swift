// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesGateways
import HermesPush
package import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import UnixSignals

/// A server that was assembled from its settings. Its files and ports are already open, and the gateways' listeners
/// already serve clients. The other services start in ``run(signals:settingsFile:stop:ready:)``.
package final class ServerAssembly: Sendable {
    package let settings: ServerSettings
    package let messenger: Messenger
    private let store: OpenStore
    private let group: MultiThreadedEventLoopGroup
    private let listeners: [Listener]
    private let http: HTTPPort?
    private let webSockets: [WebSocketEndpoint]
    let stun: STUNListener?
    private let control: ControlSocket?
    let console: ConsolePort?
    let administrators: AdministratorService
    let core: APICore
    let gauges: StateGauges
    /// The figures over time; nil if nothing can show them, because there is no console, no control socket and no HTTP
    /// API.
    let figures: Figures?
    /// Saves the delivery statistics; nil if nothing is kept on the disk.
    private let reports: ClientStatisticsService?
    private let files: AccessFiles
    private let memory: MemoryBudget
    private let wills: @Sendable () -> Holding
    let api: API?
    let pages: Pages
    let outbound: OutboundServices
    private let health: HealthState
    private let counter: ConnectionCounter
    let logger: Logger
    /// The log of failed logins.
    let logins: LoginLog
    /// The last lines of the log; nil if they are not kept.
    let tail: LogTail?
    /// The addresses of the listeners; empty until all are open.
    let opened = Mutex<[BoundAddress]>([])

    private init(
        settings: ServerSettings,
        messenger: Messenger,
        store: OpenStore,
        group: MultiThreadedEventLoopGroup,
        listeners: [Listener],
        http: HTTPPort?,
        health: HealthState,
        counter: ConnectionCounter,
        webSockets: [WebSocketEndpoint],
        stun: STUNListener?,
        control: ControlSocket?,
        console: ConsolePort?,
        administrators: AdministratorService,
        core: APICore,
        files: AccessFiles,
        memory: MemoryBudget,
        topics: TopicPlane,
        wills: @escaping @Sendable () -> Holding,
        api: API?,
        outbound: OutboundServices,
        logger: Logger,
        logins: LoginLog,
        tail: LogTail?
    ) {
        self.logins = logins
        self.files = files
        self.tail = tail
        self.memory = memory
        self.wills = wills
        self.api = api
        pages = Self.pages(settings, routes: api?.routes, core: core)
        self.outbound = outbound
        self.settings = settings
        self.messenger = messenger
        self.store = store
        self.group = group
        self.listeners = listeners
        self.http = http
        self.health = health
        self.counter = counter
        self.webSockets = webSockets
        self.stun = stun
        self.control = control
        self.console = console
        self.administrators = administrators
        self.core = core
        let directory = settings.data.storeKind == .memory ? nil : settings.data.directory
        let gauges = StateGauges(
            listeners: listeners,
            webSockets: webSockets,
            http: counter,
            messenger: messenger,
            memory: memory,
            topics: topics,
            wills: wills,
            outbound: outbound,
            certificates: ServerCertificates(
                listeners: listeners,
                http: http?.tls,
                console: console?.tls,
                logger: logger
            ),
            directory: directory
        )
        self.gauges = gauges
        reports = directory.map { ClientStatisticsService(messenger.clientStatistics, directory: $0, logger: logger) }
        let gateways = ["http"] + listeners.map(\.name) + webSockets.map { "\($0.name).websocket" }
        figures =
            console == nil && control == nil && api == nil
            ? nil
            : Figures(
                gateways: gateways,
                gauges: gauges,
                directory: directory,
                loops: group.makeIterator().map { $0 }
            )
        self.logger = logger
    }

    /// Opens the HTTP port, which reports the progress of the start. Then opens the data directory, builds the core
    /// and opens the listeners. If a step fails, closes everything that was opened.
    ///
    /// - Parameters:
    ///   - settings: the configuration.
    ///   - logger: gets one line per event.
    ///   - tail: keeps the last of these lines for the console; nil if they are not kept.
    ///   - time: the clocks.
    ///   - memory: the store to use if `store.kind` is `memory`; nil for a new one.
    ///   - environment: the environment of the process, which may name the socket of a service manager.
    package static func start(
        _ settings: ServerSettings,
        logger: Logger,
        tail: LogTail? = nil,
        time: any TimeSource = SystemTime(),
        memory: MemoryStore? = nil,
        environment: [String: String] = [:]
    ) async throws(ServerFailure) -> ServerAssembly {
        _ = MetricsRegistry.installed
        let loops = settings.process.eventLoops > 0 ? settings.process.eventLoops : System.coreCount
        let ticks = LoopTicks()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: loops, metricsDelegate: ticks)
        let health = HealthState(manager: ServiceManager(environment: environment, logger: logger))
        let counter = ConnectionCounter(settings.gateways.limits)
        let http: HTTPPort?
        let store: OpenStore
        do throws(ServerFailure) {
            http = try await HTTPPort.open(settings, health: health, counter: counter, group: group, logger)
            health.starting("opening the store")
            do throws(ServerFailure) {
                store = try OpenStore.open(settings, memory: memory, logger: logger) { health.note($0) }
            } catch {
                await http?.listener.stop(within: .zero)
                throw error
            }
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
        let messenger = Messenger(
            accountStore: store.accounts,
            messageStore: store.messages,
            socialStore: store.social,
            sessionStore: store.sessions,
            pushTokenStore: store.pushTokens,
            accountSettings: settings.accounts,
            messageSettings: settings.messages,
            durableSettings: settings.durableSettings,
            time: time
        )
        do throws(ServerFailure) {
            let progress = StartProgress(health, time: time, logger: logger)
            try await load(messenger) { progress.note($0) }
            health.starting("opening the listeners")
            let files = try AccessFiles(settings.gateways.access, logger: logger)
            let environment = GatewayEnvironment(
                messenger: messenger,
                loops: LoopContexts(
                    group,
                    memory: MemoryBudget(limit: settings.gateways.limits.memoryBytes),
                    ticks: ticks
                ),
                settings: settings.gateways,
                access: files.access,
                tokenVerifier: files.verifier,
                logger: logger,
                serverVersion: "hermes/\(HermesVersion.current)",
                tickets: ReconnectTickets(
                    key: settings.data.storeKind == .memory ? nil : TicketKey.inDirectory(settings.data.directory)
                ),
                counter: counter
            )
            let keys = APIKeyService(store: store.apiKeys, time: messenger.time)
            let administrators = AdministratorService(
                store: store.administrators,
                time: messenger.time,
                sessions: settings.console.sessions,
                passwordCost: settings.accounts.passwordParameters,
                cluster: messenger.cluster
            )
            let running = RunningServer(time: time)
            let administration = Administration(
                messenger: messenger,
                store: store.messages,
                keys: keys,
                administrators: administrators,
                running: running
            )
            let control = await Self.control(settings, administration, group, logger)
            let console = try await ConsolePort.open(settings, health: health, group: group, logger)
            let core = APICore(
                messenger: messenger,
                keys: keys,
                loops: environment.loops,
                access: environment.access,
                events: EventStreams(
                    settings.events,
                    findsUndelivered: !settings.webhooks.url.isEmpty
                        && settings.webhooks.kinds.contains(.messageUndelivered),
                    maxBytes: settings.gateways.limits.memoryBytes / 8,
                    messenger: messenger,
                    keys: keys,
                    loops: environment.loops,
                    access: environment.access
                ),
                administrators: administrators,
                figures: { running.assembly?.figures?.history }
            )
            let outbound: OutboundServices
            do throws(ServerFailure) {
                outbound = try await OutboundServices.start(
                    settings,
                    messenger: messenger,
                    store: store,
                    group: group,
                    logger: logger
                )
            } catch {
                await console?.listener.stop(within: .zero)
                throw error
            }
            do throws(ServerFailure) {
                let opened = try await GatewaysService.listen(environment, http: settings.http.listener, group: group)
                let assembly = ServerAssembly(
                    settings: settings,
                    messenger: messenger,
                    store: store,
                    group: group,
                    listeners: opened.listeners,
                    http: http,
                    health: health,
                    counter: counter,
                    webSockets: settings.webSocket.isEnabled ? opened.webSockets : [],
                    stun: try await STUNService.listen(settings.gateways.stun, group: group, logger: logger),
                    control: control,
                    console: console,
                    administrators: administrators,
                    core: core,
                    files: files,
                    memory: environment.loops.memory,
                    topics: environment.loops.topicPlane,
                    wills: { environment.waitingWills },
                    api: settings.api.isEnabled
                        ? API(settings.api, core: core, logins: environment.logins, logger: logger) : nil,
                    outbound: outbound,
                    logger: logger,
                    logins: environment.logins,
                    tail: tail
                )
                running.assembled(assembly)
                return assembly
            } catch {
                await outbound.close()
                await console?.listener.stop(within: .zero)
                throw error
            }
        } catch {
            await http?.listener.stop(within: .zero)
            await messenger.shutdown()
            try? store.close()
            try? await group.shutdownGracefully()
            throw error
        }
    }

    /// Serves until SIGTERM or SIGINT arrives, the task is cancelled, or the function that `stop` received is called.
    ///
    /// - Parameters:
    ///   - signals: SIGTERM and SIGINT stop the server, and SIGHUP makes it read certificates, rules and keys again. If
    ///     this is nil, no signal is handled.
    ///   - settingsFile: the file with the settings; nil if there is none.
    ///   - stop: receives a function that stops the server.
    ///   - ready: called once, when all listeners are open.
    package func run(
        signals: EarlySignals? = nil,
        settingsFile: SettingsFile? = nil,
        stop: (@Sendable (@escaping @Sendable () async -> Void) -> Void)? = nil,
        ready: @escaping @Sendable ([BoundAddress]) -> Void
    ) async throws(ServerFailure) {
        let names =
            listeners.map(\.name) + (settings.http.listener.isEnabled ? ["http"] : [])
            + (console == nil ? [] : ["console"])
        let signal = ReadySignal(names) { [self] addresses in
            opened.withLock { $0 = addresses }
            showListeners(addresses)
            health.advance(to: .ready)
            ready(addresses)
        }
        let group = ServiceGroup(
            configuration: .init(
                services: services(signal, signals, settingsFile),
                gracefulShutdownSignals: signals == nil ? [] : [.sigterm, .sigint],
                logger: quiet(logger)
            )
        )
        stop? { await group.triggerGracefulShutdown() }
        await suggestAdministrator()
        let result: Result<Void, any Error>
        do { result = .success(try await group.run()) } catch { result = .failure(error) }
        // All connections are closed by now, so the threads can end.
        try? await self.group.shutdownGracefully()
        switch result {
        case .success: logger.info("stopped")
        case .failure(let failure as ServerFailure): throw failure
        case .failure(let error): throw ServerFailure(.internalError, "the server stopped: \(error)")
        }
    }

    /// The numbers of open connections: those of gateways, including WebSockets, and the other connections of the HTTP
    /// port.
    package var openConnections: (gateways: Int, http: Int) { (counter.open, counter.openHTTP) }

    /// The certificates in use.
    package var certificates: ServerCertificates {
        ServerCertificates(listeners: listeners, http: http?.tls, console: console?.tls, logger: logger)
    }

    /// Reads the push services' keys again, as SIGHUP does.
    @Sendable package func reloadPushKeys() async { await outbound.reloadKeys(logger: logger) }

    /// Returns the services in the order in which they start. They stop in reverse order: each service stops after all
    /// those that started later.
    private func services(
        _ signal: ReadySignal,
        _ signals: EarlySignals?,
        _ settingsFile: SettingsFile?
    ) -> [any Service] {
        let gateways = GatewaysService(
            listeners: listeners,
            webSockets: webSockets,
            health: health,
            deadline: settings.process.shutdownDeadline,
            logger: logger,
            started: { [listeners, settings] in
                for listener in listeners {
                    let place = settings.gateways.listeners.first { $0.name == listener.name }?.settings
                    let host = place?.unixSocketPath ?? place?.host ?? ""
                    signal.opened(BoundAddress(name: listener.name, host: host, port: listener.port))
                }
            }
        )
        var services: [any Service] = [
            StoreService(messenger: messenger, store: store, logger: logger),
            HousekeepingService(messenger: messenger, logger: logger),
            outbound,
            PresenceService(devices: messenger.devices),
        ]
        if let control { services.append(control) }
        if let http { services.append(httpService(http, signal)) }
        services += consoleServices(signal)
        if let reports { services.append(reports) }
        if let figures { services.append(FiguresService(figures: figures, time: messenger.time, logger: logger)) }
        services.append(files)
        if let stun { services.append(STUNService(listener: stun)) }
        services.append(gateways)
        if let signals {
            services.append(
                ReloadService(
                    certificates: certificates,
                    files: files,
                    pushKeys: reloadPushKeys,
                    settingsFile: settingsFile,
                    hangups: signals.hangups,
                    health: health
                )
            )
            services.append(WatchdogService(patience: settings.process.shutdownDeadline + .seconds(10), logger: logger))
        }
        return services
    }

    private func httpService(_ http: HTTPPort, _ signal: ReadySignal) -> HTTPService {
        let uptime = http.listener.gate.uptime
        let commits = CommitWatch(
            { [messenger] in
                [messenger.messages.statistics, messenger.durable.statistics.commits].compactMap(\.failure)
            },
            uptime: { [time = messenger.time] in time.uptime() },
            tryWrite: store.tryWrite
        )
        return HTTPService(
            listener: http.listener,
            health: health,
            readiness: Readiness(on: group.next(), uptime: uptime, probe: commits.probe),
            metrics: MetricsPage(gauges, uptime: uptime),
            api: api,
            pages: pages,
            site: HTTPGate.Site(
                webSockets: webSockets,
                origins: WebOrigins(
                    settings.webSocket.origins,
                    isAnonymousAllowed: settings.isAnonymousAllowedOverHTTP,
                    isLoopback: settings.http.listener.isLoopback
                )
            ),
            logger: quiet(logger),
            listening: { [settings] port in
                signal.opened(BoundAddress(name: "http", host: settings.http.listener.host, port: port))
            }
        )
    }

    /// Reads the state that is needed before the first connection.
    ///
    /// - Parameter progress: gets the steps.
    static func load(
        _ messenger: Messenger,
        _ progress: @Sendable (Messenger.LoadProgress) -> Void = { _ in }
    ) async throws(ServerFailure) {
        do throws(HermesError) {
            try await messenger.load(progress)
        } catch {
            throw ServerFailure(.diskFailed, "the database could not be read: \(error.message)")
        }
    }

    private static func control(
        _ settings: ServerSettings,
        _ administration: Administration,
        _ group: any EventLoopGroup,
        _ logger: Logger
    ) async -> ControlSocket? {
        guard settings.data.storeKind == .sqlite else { return nil }
        do {
            return try await ControlSocket.bind(
                directory: settings.data.directory,
                administration: administration,
                group: group,
                logger: logger
            )
        } catch SocketAddressError.unixDomainSocketPathTooLong {
            // A warning about the settings has already reported this.
            return nil
        } catch {
            // The server works without a control socket. But "hermes user" can then only say that the directory is in
            // use.
            logger.warning("no control socket", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Returns a copy of a logger that logs only warnings and worse. Libraries get this copy, because their lines
    /// matter only when something is wrong.
    func quiet(_ logger: Logger) -> Logger {
        var logger = logger
        logger.logLevel = max(logger.logLevel, .warning)
        return logger
    }
}
