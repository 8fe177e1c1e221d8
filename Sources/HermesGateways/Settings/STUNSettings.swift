// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The address of the STUN listener, for direct links between clients.
package struct STUNSettings: Sendable, Hashable {
    package var isEnabled: Bool
    /// An IP address or host name.
    package var host: String
    /// The UDP port; 0: a free one, chosen by the system.
    package var port: Int

    package init(isEnabled: Bool = false, host: String = "127.0.0.1", port: Int = STUNListener.defaultPort) {
        self.isEnabled = isEnabled
        self.host = host
        self.port = port
    }
}
