// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOSSL

/// Holds the certificates that TLS has verified for a connection, from the authority's certificate to the client's
/// certificate, until ``PeerCertificateCheck`` reads them. There are none if the connection resumes an earlier
/// session.
///
/// State: confined to the channel's event loop.
final class VerifiedChain: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private(set) var certificates: [CertificateNames] = []
    private let context: NIOSSLContext
    /// Whether a certificate of the chain could not be read.
    private(set) var isUnreadable = false

    /// - Parameter context: the context of the connection.
    init(_ context: NIOSSLContext) { self.context = context }

    /// Whether the revocation lists in force cover the client. They cover it if the certificates of the chain are
    /// known, because they are then checked now. They also cover it if the resumed session began under these lists,
    /// because its certificates were checked at that time.
    func isFresh(in box: TLSContextBox) -> Bool { !certificates.isEmpty || box.isCurrent(context) }

    /// Creates a TLS handler that reports the chain to this object. The caller must add the TLS handler to the
    /// pipeline, and then this object.
    func makeHandler() throws -> NIOSSLServerHandler {
        let maker: any HandlerMaker = ObservedHandlerMaker()
        return try maker.handler(context) { [self] result, certificate in
            if let names = try? CertificateNames(der: certificate.toDERBytes()) {
                certificates.append(names)
            } else {
                isUnreadable = true
            }
            return result
        }
    }
}

/// A protocol whose requirement is not deprecated. Calls through it cause no warning, although the implementation is
/// deprecated.
private protocol HandlerMaker {
    func handler(
        _ context: NIOSSLContext,
        _ observe: @escaping NIOSSLVerificationCallback
    ) throws -> NIOSSLServerHandler
}

private struct ObservedHandlerMaker: HandlerMaker {
    /// NIOSSL deprecates this initializer in favor of callbacks that replace BoringSSL's verification. Only this
    /// initializer leaves the verification as it is, and reports the chain that was found.
    @available(*, deprecated, message: "the initializer is")
    func handler(
        _ context: NIOSSLContext,
        _ observe: @escaping NIOSSLVerificationCallback
    ) throws -> NIOSSLServerHandler {
        try NIOSSLServerHandler(context: context, verificationCallback: observe)
    }
}
