// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOSSL

/// Texts for connections to a port that does not speak the client's protocol.
package enum ServerMismatch {
    /// The last words of the texts for a server that may not speak TLS.
    package static let speaksNoTLS = TLSErrorText.speaksNoTLS
    /// The text for a server that speaks TLS, although the client does not.
    package static let speaksTLS = "the server speaks TLS on this port"

    /// Whether the error shows that every further connection will fail because of TLS. There are three possible
    /// causes: only one side uses TLS, the client does not trust the server's certificate, or the client's TLS options
    /// are invalid.
    ///
    /// The end of a connection during the handshake does not show this. A busy server ends connections, too.
    package static func isAboutTLS(_ error: HermesClientError) -> Bool {
        if error.code == .badTLS || error.message.contains(speaksTLS) { return true }
        guard let cause = error.cause else { return false }
        switch cause {
        case NIOSSLError.handshakeFailed(.sslError(let stack)), NIOSSLError.handshakeFailed(.unknownError(let stack)):
            guard let entry = stack.first.map({ "\($0)" }) else { return false }
            return lastingProblems.contains { entry.contains("OPENSSL_internal:\($0)") }
        case let found as NIOSSLExtraError: return found == .failedToValidateHostname
        case let found as HermesClientError: return isAboutTLS(found)
        default: return false
        }
    }

    /// BoringSSL's names for the problems that every further connection to the same server has, too.
    private static let lastingProblems = [
        "CERTIFICATE_VERIFY_FAILED", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER",
    ]

    /// Returns a short text for an error of TLS; nil for other errors.
    static func text(ofTLS error: any Error) -> String? {
        let failure: BoringSSLError
        switch error {
        case NIOSSLError.handshakeFailed(let found), NIOSSLError.shutdownFailed(let found): failure = found
        case let found as BoringSSLError: failure = found
        case NIOSSLError.noSuchFilesystemObject: return "there is no such file"
        case NIOSSLError.failedToLoadCertificate: return "no certificate can be read"
        case NIOSSLError.failedToLoadPrivateKey:
            return "no private key can be read; name the file of the certificate's key"
        case let found as NIOSSLExtraError where found == .failedToValidateHostname:
            return "the certificate is not for this host"
        default: return nil
        }
        switch failure {
        case .sslError(let stack), .unknownError(let stack), .invalidSNIName(let stack), .failedToSetALPN(let stack):
            return stack.first.map { TLSErrorText.text(ofEntry: "\($0)") } ?? "TLS failed"
        default: return "TLS failed"
        }
    }

    /// Returns the text for the first bytes of a server's answer; nil if they do not show which protocol the server
    /// speaks.
    ///
    /// - Parameter bytes: bytes that are not of the client's protocol.
    static func text(ofAnswer bytes: ByteBufferView) -> String? {
        if bytes.starts(with: "HTTP/".utf8) { return "an HTTP server answers on this port; use another port" }
        // A record with an alert (RFC 8446, section 5.1): content type 21, major version 3.
        return bytes.starts(with: [21, 3] as [UInt8]) ? speaksTLS : nil
    }
}
