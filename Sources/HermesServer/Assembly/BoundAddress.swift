// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The address of an open listener.
package struct BoundAddress: Sendable, Hashable, CustomStringConvertible {
    /// The listener's name in the configuration.
    package let name: String
    /// The host, or the path of a Unix socket.
    package let host: String
    /// The actual port, even if the configuration said 0.
    package let port: Int

    package init(name: String, host: String, port: Int) {
        self.name = name
        self.host = host
        self.port = port
    }

    package var description: String {
        if host.contains("/") { return "\(name) \(host)" }
        return host.contains(":") ? "\(name) [\(host)]:\(port)" : "\(name) \(host):\(port)"
    }
}
