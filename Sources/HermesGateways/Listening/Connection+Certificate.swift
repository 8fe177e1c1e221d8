// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import NIOCore
import NIOSSL

/// The client's certificate. The connection ends when the certificate expires.
extension Connection {
    /// The parts of a certificate that are kept.
    final class KeptCertificate {
        fileprivate(set) var name: String?
        fileprivate(set) var certificates: PeerCertificates?
    }

    /// The common name of the peer's certificate, if the listener uses it as the user name.
    package internal(set) var certificateName: String? {
        get { certificate?.name }
        set { keptCertificate().name = newValue }
    }

    /// The peer's certificate and those of the authorities above it; nil unless revocation lists are configured.
    var certificates: PeerCertificates? {
        get { certificate?.certificates }
        set { keptCertificate().certificates = newValue }
    }

    private func keptCertificate() -> KeptCertificate {
        if let certificate { return certificate }
        let kept = KeptCertificate()
        certificate = kept
        return kept
    }

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
