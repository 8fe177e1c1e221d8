// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOSSL

/// Holds the certificates that TLS has verified for a connection, from the authority's to the client's, until
/// ``ConnectionHandler`` takes them. Empty if the connection resumes an earlier session.
///
/// State: confined to the channel's event loop.
final class VerifiedChain: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private(set) var certificates: [CertificateNames] = []
    private let context: NIOSSLContext
    /// A certificate of it could not be read.
    private(set) var isUnreadable = false

    /// - Parameter context: the context of the connection.
    init(_ context: NIOSSLContext) { self.context = context }

    /// Whether TLS has checked the client against the revocation lists in force. It has if the certificates are known,
    /// or if the resumed session began under these lists.
    func isFresh(in box: TLSContextBox) -> Bool { !certificates.isEmpty || box.isCurrent(context) }

    /// Creates a TLS handler that reports the chain to this object. Both belong in the pipeline, this one behind it.
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

/// The requirement is not deprecated, so that its callers are not warned.
private protocol HandlerMaker {
    func handler(
        _ context: NIOSSLContext,
        _ observe: @escaping NIOSSLVerificationCallback
    ) throws -> NIOSSLServerHandler
}

private struct ObservedHandlerMaker: HandlerMaker {
    /// NIOSSL deprecates this initializer in favour of callbacks that replace BoringSSL's verification. Only this one
    /// leaves it as it is, and tells the chain that it found.
    @available(*, deprecated, message: "the initializer is")
    func handler(
        _ context: NIOSSLContext,
        _ observe: @escaping NIOSSLVerificationCallback
    ) throws -> NIOSSLServerHandler {
        try NIOSSLServerHandler(context: context, verificationCallback: observe)
    }
}
