// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import Logging

/// Counts and logs the failed logins at the HTTP API or at the console, as other listeners do.
struct FailedLogins: Sendable {
    private let log: LoginLog
    private let logger: Logger
    private let metrics: LoginMetrics

    /// - Parameter gateway: the name in metrics and log lines.
    init(gateway: String, log: LoginLog, logger: Logger) {
        self.log = log
        var logger = logger
        logger[metadataKey: "gateway"] = "\(gateway)"
        self.logger = logger
        metrics = LoginMetrics(gateway: gateway)
    }

    /// Counts and logs an error if the client's credentials caused it.
    ///
    /// - Parameters:
    ///   - address: the client's address without port.
    ///   - user: the name that the client gave; nil if it gave none.
    func note(_ code: HermesError.Code, address: String?, user: String? = nil) {
        guard let failure = LoginFailure(code) else { return }
        metrics.failed(failure)
        log.failed(failure, address: address, user: user, to: logger)
    }
}
