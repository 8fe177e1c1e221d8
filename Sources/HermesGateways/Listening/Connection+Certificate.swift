// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import NIOCore
import NIOSSL

/// A connection that began with a client's certificate ends when the certificate expires.
extension Connection {
    /// The longest time between two checks of the wall clock. The checks are repeated because somebody may set the
    /// clock.
    private static let longestLook = TimeAmount.minutes(10)

    /// Ends the connection when the certificate expires.
    ///
    /// - Returns: false if the certificate has expired.
    func lasts(untilEndOf certificate: NIOSSLCertificate) -> Bool {
        let end = Double(certificate.notValidAfter)
        guard Date().timeIntervalSince1970 < end else { return false }
        lookAgain(at: end)
        return true
    }

    /// - Parameter end: the end of the certificate's validity, in seconds since 1970.
    private func lookAgain(at end: Double) {
        let left = max(1, min(end - Date().timeIntervalSince1970, 1e6))
        let pause = min(TimeAmount.milliseconds(Int64(left * 1_000)), Self.longestLook)
        loop.eventLoop.scheduleTask(in: pause) { [weak self] in
            guard let self, isOpen else { return }
            if Date().timeIntervalSince1970 >= end { self.end(.attachment(.revoked)) } else { lookAgain(at: end) }
        }
    }
}
