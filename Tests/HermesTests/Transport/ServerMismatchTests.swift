// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOSSL
import Testing

@testable import Hermes

@Suite struct ServerMismatchTests {
    private func text(_ bytes: [UInt8]) -> String? {
        ServerMismatch.text(ofAnswer: ByteBuffer(bytes: bytes).readableBytesView)
    }

    @Test func `the first bytes of a server show what it speaks`() {
        #expect(text(Array("HTTP/1.1 400 Bad Request\r\n".utf8))?.contains("HTTP server") == true)
        #expect(text([21, 3, 1, 0, 2, 2, 70]) == ServerMismatch.speaksTLS)
        #expect(text([32, 2, 0, 0]) == nil)
        #expect(text([]) == nil)
    }

    @Test func `errors of TLS name neither types nor source files`() {
        let ended = NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake]))
        #expect(explain(ended).hasSuffix(ServerMismatch.speaksNoTLS))
        #expect(explain(NIOSSLError.handshakeFailed(.zeroReturn)) == "TLS failed")
        #expect(ServerMismatch.text(ofTLS: CancellationError()) == nil)
        #expect(explain(NIOSSLExtraError.failedToValidateHostname) == "the certificate is not for this host")
    }

    @Test func `failures that are about TLS are known by their cause or their text`() {
        func isAboutTLS(_ code: HermesClientError.Code, _ text: String, _ cause: (any Error)? = nil) -> Bool {
            ServerMismatch.isAboutTLS(HermesClientError(code, text, cause: cause))
        }
        #expect(isAboutTLS(.connectionLost, "", NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake]))))
        #expect(isAboutTLS(.connectionLost, "", NIOSSLExtraError.failedToValidateHostname))
        #expect(isAboutTLS(.protocolViolation, ServerMismatch.speaksTLS))
        #expect(isAboutTLS(.badTLS, ""))
        #expect(!isAboutTLS(.cannotConnect, "refused", IOError(errnoCode: 111, reason: "connect")))
        #expect(!isAboutTLS(.timedOut, ""))
    }
}
