// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOSSL

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension HermesClientError {
    /// Whether the peer closed the connection, although some bytes were on their way (then the system reports a reset),
    /// or without the closing handshake of TLS. Other errors of a connection, such as a time-out, come from the network.
    var isClosedByPeer: Bool {
        guard let cause else { return false }
        switch cause {
        case let error as IOError: return error.errnoCode == ECONNRESET || error.errnoCode == EPIPE
        case NIOSSLError.uncleanShutdown: return true
        default: return false
        }
    }
}
