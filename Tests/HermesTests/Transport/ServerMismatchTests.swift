// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOEmbedded
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

    private func isAboutTLS(_ code: HermesClientError.Code, _ text: String, _ cause: (any Error)? = nil) -> Bool {
        ServerMismatch.isAboutTLS(HermesClientError(code, text, cause: cause))
    }

    @Test func `failures that are about TLS are known by their cause or their text`() {
        #expect(isAboutTLS(.connectionLost, "", NIOSSLExtraError.failedToValidateHostname))
        #expect(isAboutTLS(.cannotConnect, "", HermesClientError(.badTLS, "")))
        #expect(isAboutTLS(.protocolViolation, ServerMismatch.speaksTLS))
        #expect(isAboutTLS(.badTLS, ""))
        #expect(!isAboutTLS(.cannotConnect, "refused", IOError(errnoCode: 111, reason: "connect")))
        #expect(!isAboutTLS(.timedOut, ""))
    }

    @Test func `the end of a connection during the handshake is not about TLS`() {
        for failure in [BoringSSLError.sslError([.eofDuringHandshake]), .sslError([]), .syscallError, .zeroReturn] {
            let error = NIOSSLError.handshakeFailed(failure)
            #expect(!isAboutTLS(.connectionLost, "the connection broke: \(explain(error))", error), "\(failure)")
        }
        #expect(!isAboutTLS(.connectionLost, "", NIOSSLError.uncleanShutdown))
    }

    @Test(arguments: [
        ("this is no TLS\r\n", true), ("HTTP/1.1 400 Bad Request\r\n", true),
        // This server refuses the handshake for another reason, with the alert internal_error.
        ("\u{15}\u{03}\u{03}\u{00}\u{02}\u{02}\u{50}", false),
    ])
    func `an answer without TLS is about TLS, and an alert is not`(answer: String, isLasting: Bool) throws {
        let context = try NIOSSLContext(configuration: .makeClientConfiguration())
        let channel = EmbeddedChannel()
        let handler = try NIOSSLClientHandler(context: context, serverHostname: nil)
        try channel.pipeline.syncOperations.addHandler(handler)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let error = #expect(throws: NIOSSLError.self) { try channel.writeInbound(ByteBuffer(string: answer)) }
        #expect(isAboutTLS(.connectionLost, "", error) == isLasting, "\(String(describing: error))")
        _ = try? channel.finish()
    }
}
