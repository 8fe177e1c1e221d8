// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOSSL

/// The reasons for failed TLS handshakes, for the log.
package enum TLSProblem {
    /// Returns the reason why a handshake failed; nil if the error is not a failed handshake, or if the peer has only
    /// closed the connection, as load balancers do in health checks.
    package static func ofHandshake(_ error: any Error) -> String? {
        guard case NIOSSLError.handshakeFailed(let failure) = error else { return nil }
        switch failure {
        case .sslError(let stack) where stack == [.eofDuringHandshake]: return nil
        case .sslError(let stack), .unknownError(let stack):
            return stack.first.map { TLSErrorText.text(ofEntry: "\($0)") } ?? "TLS failed"
        default: return "TLS failed"
        }
    }
}
