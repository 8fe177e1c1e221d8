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
    /// The file with the settings, which are not read again; nil if there is none.
    let settingsFile: SettingsFile?
    /// The SIGHUPs, including those that arrived during the start (see ``EarlySignals``).
    let hangups: AsyncStream<Void>
    /// Tells the service manager when the files are read; nil if there is nobody to tell.
    var health: HealthState?

    func run() async throws {
        certificates.warn()
        await cancelWhenGracefulShutdown {
            for await _ in hangups {
                health?.reloading()
                certificates.reload()
                files.reload()
                await pushKeys()
                report()
                health?.reloaded()
            }
        }
    }

    private func report() {
        let logger = certificates.logger
        logger.info(
            "read again: certificates, revocation lists, topic rules, token keys, push keys; settings need a restart"
        )
        guard let settingsFile, settingsFile.hasChanged else { return }
        logger.warning(
            "the settings file has changed; settings are read only at the start",
            metadata: ["file": "\(settingsFile.path)"]
        )
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
        for listener in listeners {
            if let certificate = listener.certificate {
                reload(listener.name, certificate.settings) { try listener.reloadCertificate() }
            }
        }
        if let http { reload("http", http.settings) { try http.reload() } }
        if let console { reload("console", console.settings) { try console.reload() } }
        warn()
    }

    /// The certificates by the names of their listeners.
    private var all: [(name: String, certificate: TLSContextBox)] {
        var all: [(name: String, certificate: TLSContextBox)] = []
        for listener in listeners {
            if let certificate = listener.certificate { all.append((listener.name, certificate)) }
        }
        if let http { all.append(("http", http)) }
        if let console { all.append(("console", console)) }
        return all
    }

    /// The times when the certificates expire, in seconds since 1970, by the names of their listeners.
    var expiries: [(name: String, expiry: Int)] {
        all.compactMap { name, certificate in certificate.certificateExpiry.map { (name: name, expiry: $0) } }
    }

    /// Logs certificates that have expired or are not valid yet, and outdated revocation lists. All stay in use.
    ///
    /// - Parameter now: the present time in seconds since 1970.
    func warn(now: Int = Int(Date().timeIntervalSince1970)) {
        for (name, certificate) in all {
            guard let problem = certificate.certificateProblem(now: now) else { continue }
            logger.warning(
                "\(problem)",
                metadata: ["gateway": "\(name)", "file": "\(certificate.settings.certificatePath)"]
            )
        }
        for listener in listeners where listener.isRevocationOutdated(now: now) {
            logger.warning(
                "a revocation list is out of date; get a newer one and send SIGHUP",
                metadata: ["gateway": "\(listener.name)"]
            )
        }
    }

    private func reload(_ name: String, _ settings: TLSSettings, _ reload: () throws -> Void) {
        do {
            try reload()
            logger.info("certificate read", metadata: ["gateway": "\(name)"])
        } catch {
            logger.error(
                "certificate is unusable; the old one stays in use",
                metadata: [
                    "gateway": "\(name)", "error": "\(ServerFailure.badCertificate(name, settings, error).message)",
                ]
            )
        }
    }
}
