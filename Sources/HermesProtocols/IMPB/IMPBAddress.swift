// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The addresses of a device.
public struct IMPBAddress: Hashable, Sendable {
    /// The host that the device reported.
    public var localHost: String
    /// The port that the device reported.
    public var localPort: Int
    /// The host that the server observed.
    public var observedHost: String
    /// The port that the server observed.
    public var observedPort: Int
}

extension IMPBAddress {
    init(_ info: IMPB_Ip_info) {
        self.init(
            localHost: info.ip,
            localPort: Int(info.port),
            observedHost: info.sockIp,
            observedPort: Int(info.sockPort)
        )
    }
}
