// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways

extension HermesServer {
    /// Returns the address at which this machine reaches the HTTP port, such as `http://127.0.0.1:8080`.
    ///
    /// - Throws: if the configuration is wrong, or if the port is switched off, needs PROXY headers, or has no fixed
    ///   TCP port.
    package static func httpAddress(
        arguments: [String],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String?
    ) throws(ServerFailure) -> String {
        let http = try load(arguments: arguments, environment: environment, file: file).http.listener
        guard http.isEnabled, http.port > 0, http.unixSocketPath == nil, http.proxyProtocol == .off else {
            throw ServerFailure(
                .badConfiguration,
                "the HTTP port cannot be asked: listeners.http needs enabled: true, a TCP port other than 0, and "
                    + "proxyProtocol: off"
            )
        }
        let place = reachable(http.host)
        return "\(http.tls == nil ? "http" : "https")://\(place.contains(":") ? "[\(place)]" : place):\(http.port)"
    }
}
