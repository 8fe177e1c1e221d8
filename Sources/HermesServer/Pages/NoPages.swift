// Hermes
// SPDX-License-Identifier: Apache-2.0

#if !Pages
import HermesGateways
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle

// A build without the trait `Pages` has neither pages nor a console. Their paths answer like the paths of pages that
// are switched off. The console's port stays closed, whatever the settings say.

/// Registers no paths, because this build has no pages.
struct Pages: Sendable {
    func register(on router: Router<HTTPContext>) {}
}

/// Opens no port, because this build has no console.
struct ConsolePort: Sendable {
    let listener: HTTPListener
    let tls: TLSContextBox?

    static func open(
        _ settings: ServerSettings,
        health: HealthState,
        group: any EventLoopGroup,
        _ logger: Logger
    ) async throws(ServerFailure) -> ConsolePort? {
        if settings.console.listener.isEnabled { logger.info("no console: this program was built without pages") }
        return nil
    }
}

extension ServerAssembly {
    static func pages(_ settings: ServerSettings, routes: [APIRoute]?, core: APICore) -> Pages { Pages() }

    func showListeners(_ addresses: [BoundAddress]) {}

    func consoleServices(_ signal: ReadySignal) -> [any Service] { [] }

    func suggestAdministrator() async {}
}
#endif
