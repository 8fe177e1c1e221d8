// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import Logging
import NIOCore
import ServiceLifecycle

/// Answers STUN requests while the server runs.
struct STUNService: Service {
    let listener: STUNListener

    /// Opens the port, if one is configured.
    static func listen(
        _ settings: STUNSettings,
        group: any EventLoopGroup,
        logger: Logger
    ) async throws(ServerFailure) -> STUNListener? {
        guard settings.isEnabled else { return nil }
        do {
            let listener = try await STUNListener.start(host: settings.host, port: settings.port, group: group)
            logger.info("answering STUN", metadata: ["host": "\(settings.host)", "port": "\(listener.port)"])
            return listener
        } catch {
            let place = ListenerSettings(host: settings.host, port: settings.port)
            throw .cannotListen("stun", place, error)
        }
    }

    func run() async throws {
        try? await gracefulShutdown()
        await listener.stop()
    }
}
