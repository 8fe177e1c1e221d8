// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import Logging
import NIOCore
import NIOPosix

/// The open HTTP port, before it serves anything.
struct HTTPPort: Sendable {
    let listener: HTTPListener
    /// The certificate; nil if the port is not encrypted.
    let tls: TLSContextBox?

    /// - Returns: nil if the port is switched off.
    static func open(
        _ settings: ServerSettings,
        health: HealthState,
        counter: ConnectionCounter,
        group: any EventLoopGroup,
        _ logger: Logger
    ) async throws(ServerFailure) -> HTTPPort? {
        guard settings.http.listener.isEnabled else { return nil }
        let tls: TLSContextBox?
        do {
            tls = try settings.http.listener.tls.map(TLSContextBox.init)
        } catch {
            throw settings.http.listener.tls.map { .badCertificate("http", $0, error) }
                ?? ServerFailure(.badConfiguration, "listeners.http.tls cannot be used: \(error)")
        }
        let gate = HTTPGate(
            limits: settings.http.limits,
            api: settings.api,
            forwarded: ForwardedClient(proxies: settings.http.trustedProxies),
            counter: counter,
            health: health,
            // The deadlines of connections use the system's clock, whatever clock the rest of the server uses.
            uptime: { [time = SystemTime()] in time.uptime() },
            name: "http",
            logger: logger
        )
        do {
            let listener = try await HTTPListener.start(
                settings.http.listener,
                gate: gate,
                counter: counter,
                tls: tls,
                group: group,
                logger: logger
            )
            return HTTPPort(listener: listener, tls: tls)
        } catch {
            throw .cannotListen("http", settings.http.listener, error)
        }
    }
}
