// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import NIOSSL

/// The check of a client's certificate after the TLS handshake, on the connection's event loop. TLS has verified the
/// certificate in a full handshake, but does not check whether the certificate is revoked. In a resumed session, the
/// certificate may have expired after the full handshake.
struct PeerCertificateCheck {
    private let connection: Connection
    private let pipeline: ChannelPipeline.SynchronousOperations

    init(_ connection: Connection, _ context: ChannelHandlerContext) {
        self.connection = connection
        pipeline = context.pipeline.syncOperations
    }

    /// Whether the certificate is accepted. The connection keeps the parts of the certificate that it needs.
    func passes() -> Bool {
        let certificate = try? pipeline.nioSSL_peerCertificate()
        return isInTime(certificate) && isInForce(certificate) && takesName(of: certificate)
    }

    /// Returns true if there is no certificate, or if the certificate has not expired. In the second case, the
    /// connection will end when the certificate expires.
    private func isInTime(_ certificate: NIOSSLCertificate?) -> Bool {
        guard let certificate, !connection.lasts(untilEndOf: certificate) else { return true }
        refused("the client's certificate has expired")
        return false
    }

    /// Returns false if the certificate or one of its authorities is revoked, or if a required certificate is missing.
    private func isInForce(_ certificate: NIOSSLCertificate?) -> Bool {
        guard let revocations = connection.listener.revocations else { return true }
        guard let certificate else {
            guard revocations.requiresCertificates else { return true }
            connection.handshakeFailed("the client shows no certificate")
            return false
        }
        guard let certificates = read(certificate, takeChain(), revocations), !revocations.isRevoked(certificates)
        else {
            refused("the client's certificate is revoked")
            return false
        }
        connection.certificates = certificates
        return true
    }

    /// Removes from the pipeline the handler that holds the verified chain, and returns this handler.
    private func takeChain() -> VerifiedChain? {
        guard let chain = try? pipeline.handler(type: VerifiedChain.self) else { return nil }
        pipeline.removeHandler(chain, promise: nil)
        return chain
    }

    /// Returns the names of a certificate and of its authorities; nil if it cannot be known whether one of them is
    /// revoked.
    private func read(
        _ certificate: NIOSSLCertificate,
        _ chain: VerifiedChain?,
        _ revocations: TLSContextBox
    ) -> PeerCertificates? {
        guard let chain, !chain.isUnreadable, chain.isFresh(in: revocations),
            let names = try? CertificateNames(der: certificate.toDERBytes())
        else { return nil }
        return PeerCertificates(names, chain: chain.certificates)
    }

    private func refused(_ reason: String) {
        connection.listener.metrics.ended(.attachment(.revoked))
        let listener = connection.listener
        listener.logins.certificateRefused(reason, address: connection.remoteHost, to: listener.logger)
    }

    /// Reads the client's name from a certificate that TLS has verified.
    ///
    /// - Returns: false if there is a certificate that does not have exactly one common name.
    private func takesName(of certificate: NIOSSLCertificate?) -> Bool {
        guard connection.listener.takesCertificateNames, let certificate else { return true }
        connection.certificateName = certificate.onlyCommonName
        guard connection.certificateName == nil else { return true }
        connection.handshakeFailed("the client's certificate does not have exactly one common name")
        return false
    }
}

extension ChannelPipeline.SynchronousOperations {
    /// Whether the pipeline has the TLS handler of a server.
    var hasTLS: Bool { (try? handler(type: NIOSSLServerHandler.self)) != nil }
}
