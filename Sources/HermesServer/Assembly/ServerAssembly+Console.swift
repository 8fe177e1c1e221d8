// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import HermesGateways
import Logging
import ServiceLifecycle
import Synchronization

extension ServerAssembly {
    /// Creates the console's operations. The tests use the same list.
    func consoleCore(_ port: ConsolePort) -> ConsoleCore {
        ConsoleCore(
            api: core,
            administrators: administrators,
            cookie: ConsoleCookie(isEncrypted: port.tls != nil),
            figures: figures,
            log: tail,
            outbound: outbound,
            configuration: settings.inForce,
            listeners: { [self] in opened.withLock { $0 } },
            failedLogins: FailedLogins(gateway: "console", log: logins, logger: logger)
        )
    }

    /// Returns the console's service, if the console's port is open.
    func consoleServices(_ signal: ReadySignal) -> [any Service] {
        console.map { [consoleService($0, signal)] } ?? []
    }

    private func consoleService(_ port: ConsolePort, _ signal: ReadySignal) -> ConsoleService {
        administrators.recorded.observe { [logger] (event, failure) in
            var metadata: Logger.Metadata = [
                "who": "\(event.who)", "address": "\(event.address)", "action": "\(event.action)",
                "target": "\(event.target)", "result": "\(event.result)",
            ]
            if let failure { metadata["not_stored"] = "\(failure.message)" }
            logger.log(level: failure == nil ? .info : .error, "console", metadata: metadata)
        }
        let core = consoleCore(port)
        return ConsoleService(
            listener: port.listener,
            console: Console(
                core.routes,
                events: core.api.events,
                administrators: administrators,
                cookie: core.cookie,
                logger: logger
            ),
            pages: Pages(.console),
            hosts: ConsoleHosts(
                origins: settings.console.origins,
                isLoopback: settings.console.listener.isLoopback
            ),
            logger: quiet(logger),
            listening: { [settings] port in
                signal.opened(BoundAddress(name: "console", host: settings.console.listener.host, port: port))
            }
        )
    }

    /// Logs how to create the first administrator, if there is none yet.
    func suggestAdministrator() async {
        guard console != nil, let all = try? await administrators.administrators(), all.isEmpty else { return }
        logger.notice(
            "nobody can log in to the console yet",
            metadata: ["create": "hermes admin add NAME --role administrator"]
        )
    }
}
#endif
