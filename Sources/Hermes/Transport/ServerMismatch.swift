// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOSSL

/// Texts for connections to a port that does not speak the client's protocol.
package enum ServerMismatch {
    /// The end of the texts that say that the server perhaps does not speak TLS.
    package static let speaksNoTLS = TLSErrorText.speaksNoTLS
    /// The text for a server that speaks TLS, although the client does not.
    package static let speaksTLS = "the server speaks TLS on this port"

    /// Returns a short text for an error of TLS; nil for other errors.
    static func text(ofTLS error: any Error) -> String? {
        let failure: BoringSSLError
        switch error {
        case NIOSSLError.handshakeFailed(let found), NIOSSLError.shutdownFailed(let found): failure = found
        case let found as BoringSSLError: failure = found
        default: return nil
        }
        switch failure {
        case .sslError(let stack), .unknownError(let stack), .invalidSNIName(let stack), .failedToSetALPN(let stack):
            return stack.first.map { TLSErrorText.text(ofEntry: "\($0)") } ?? "TLS failed"
        default: return "TLS failed"
        }
    }

    /// Returns the text for the first bytes of a server's answer; nil if they do not show what the server speaks.
    ///
    /// - Parameter bytes: bytes that are not of the client's protocol.
    static func text(ofAnswer bytes: ByteBufferView) -> String? {
        if bytes.starts(with: "HTTP/".utf8) { return "an HTTP server answers on this port; use another port" }
        // A record with an alert (RFC 8446, section 5.1): content type 21, major version 3.
        return bytes.starts(with: [21, 3] as [UInt8]) ? speaksTLS : nil
    }
}
