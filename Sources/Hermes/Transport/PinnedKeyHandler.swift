// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOSSL
import NIOTLS

/// Ends a TLS connection before any application bytes are sent, if the server's key is not one of the pinned keys.
///
/// The pins are checked in addition to the certificate: a valid certificate that somebody else obtained for the
/// server's name is not enough. NIOSSL reports the handshake before it sends buffered bytes.
final class PinnedKeyHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// The public keys, each as the SubjectPublicKeyInfo of its certificate (RFC 7469, section 2.4).
    private let keys: Set<[UInt8]>

    init(keys: Set<[UInt8]>) { self.keys = keys }

    /// Returns the public keys of certificates.
    static func keys(of certificates: [NIOSSLCertificate]) throws -> Set<[UInt8]> {
        Set(try certificates.map { try $0.extractPublicKey().toSPKIBytes() })
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .some(.handshakeCompleted) = event as? TLSUserEvent, !isExpected(context) {
            let message = "the server's key is not pinned: this is another server, or it has a new key"
            context.fireErrorCaught(HermesClientError(.badTLS, message))
            context.close(promise: nil)
        }
        context.fireUserInboundEventTriggered(event)
    }

    private func isExpected(_ context: ChannelHandlerContext) -> Bool {
        guard let certificate = try? context.channel.pipeline.syncOperations.nioSSL_peerCertificate(),
            let key = try? certificate.extractPublicKey().toSPKIBytes()
        else { return false }
        return keys.contains(key)
    }
}
