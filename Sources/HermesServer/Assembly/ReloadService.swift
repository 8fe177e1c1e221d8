// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways
import Logging
import ServiceLifecycle

/// Reads certificates, topic rules, token keys and push services' keys again on SIGHUP.
struct ReloadService: Service {
    let certificates: ServerCertificates
    let files: AccessFiles
    let pushKeys: @Sendable () async -> Void
    /// The SIGHUPs, including those that arrived during the start (see ``EarlySignals``).
    let hangups: AsyncStream<Void>

    func run() async throws {
        certificates.warn()
        await cancelWhenGracefulShutdown {
            for await _ in hangups {
                certificates.reload()
                files.reload()
                await pushKeys()
            }
        }
    }
}

/// The certificates of all listeners.
package struct ServerCertificates: Sendable {
    let listeners: [Listener]
    /// The HTTP port's certificate; nil if the port is not encrypted.
    let http: TLSContextBox?
    /// The console's certificate; nil if the console is not encrypted.
    let console: TLSContextBox?
    let logger: Logger

    /// Reads all certificates again, for new connections. If a certificate is unusable, the old one stays in use.
    package func reload() {
        for listener in listeners where listener.isEncrypted {
            reload(listener.name) { try listener.reloadCertificate() }
        }
        warn()
        if let http { reload("http") { try http.reload() } }
        if let console { reload("console") { try console.reload() } }
    }

    /// Logs outdated revocation lists; they stay in use.
    func warn() {
        let now = Int(Date().timeIntervalSince1970)
        for listener in listeners where listener.isRevocationOutdated(now: now) {
            logger.warning(
                "a revocation list is out of date; get a newer one and send SIGHUP",
                metadata: ["gateway": "\(listener.name)"]
            )
        }
    }

    private func reload(_ name: String, _ reload: () throws -> Void) {
        do {
            try reload()
            logger.info("certificate read", metadata: ["gateway": "\(name)"])
        } catch {
            logger.error(
                "certificate is unusable; the old one stays in use",
                metadata: ["gateway": "\(name)", "error": "\(error)"]
            )
        }
    }
}
