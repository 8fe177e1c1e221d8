// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Short texts for BoringSSL's errors. The errors' own descriptions contain paths of source files.
package enum TLSErrorText {
    /// The ending of every text about a peer that certainly or possibly does not speak TLS.
    package static let speaksNoTLS = "not speak TLS on this port"

    /// Returns the text for an entry of BoringSSL's stack of errors, such as
    /// `Error: 268435612 error:1000009c:SSL routines:OPENSSL_internal:HTTP_REQUEST at /path/tls_record.cc:231`.
    package static func text(ofEntry entry: String) -> String {
        guard let start = entry.firstRange(of: "OPENSSL_internal:")?.upperBound else {
            return entry.contains("EOF")
                ? "the peer ended the TLS handshake; perhaps it does \(speaksNoTLS)" : "TLS failed"
        }
        let name = String(entry[start...].prefix { $0 == "_" || $0.isLetter || $0.isNumber })
        return known[name] ?? name.lowercased().replacing("_", with: " ")
    }

    private static let known = [
        "CERTIFICATE_VERIFY_FAILED": "the certificate is not trusted",
        "HTTP_REQUEST": "the peer speaks HTTP without TLS",
        "HTTPS_PROXY_REQUEST": "the peer speaks HTTP without TLS",
        "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client shows no certificate",
        "WRONG_VERSION_NUMBER": "the peer does \(speaksNoTLS)",
    ]
}
