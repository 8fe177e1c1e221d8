// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOSSL
import Testing

@testable import Hermes

/// The distinction between a server that closes a connection and a network that breaks it.
@Suite struct ClosedByPeerTests {
    static let causes: [(any Error, Bool)] = [
        (IOError(errnoCode: ECONNRESET, reason: "read"), true), (IOError(errnoCode: EPIPE, reason: "write"), true),
        (NIOSSLError.uncleanShutdown, true), (IOError(errnoCode: ETIMEDOUT, reason: "read"), false),
        (IOError(errnoCode: EHOSTUNREACH, reason: "read"), false),
        (IOError(errnoCode: ENETDOWN, reason: "write"), false), (NIOSSLError.noCertificateToValidate, false),
        (ChannelError.eof, false), (CancellationError(), false),
    ]

    @Test(arguments: causes.indices)
    func `only resets, and ends of TLS without its handshake, come from the server`(index: Int) {
        let (cause, isClosedByPeer) = Self.causes[index]
        let error = HermesClientError(.connectionLost, "the connection broke", cause: cause)
        #expect(error.isClosedByPeer == isClosedByPeer, "\(cause)")
        #expect(HermesClientError.isOfSystem(cause) == (cause is IOError), "\(cause)")
    }

    @Test func `an error without a cause, such as a heartbeat that was not answered, does not come from the server`() {
        #expect(!HermesClientError(.timedOut, "the server did not answer 3 heartbeat(s)").isClosedByPeer)
        #expect(!HermesClientError(.connectionLost, "the server does not read its input").isClosedByPeer)
    }

    @Test(
        arguments: [(1000, true), (1005, true), (1001, false), (1009, false), (1011, false)] as [(UInt16, Bool)]
    )
    func `a WebSocket that is closed with a reason makes no message suspect`(code: UInt16, isWithoutReason: Bool) {
        let error = WebSocketBytes.error(ofClose: ByteBuffer(integer: code))
        #expect((error == nil) == isWithoutReason)
        #expect(error?.isClosedByPeer != true)
    }

    @Test func `a WebSocket that is closed without a code has no reason`() {
        #expect(WebSocketBytes.error(ofClose: ByteBuffer()) == nil)
    }
}
