// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Testing

@Suite struct TLSErrorTextTests {
    @Test func `the errors of TLS have texts without paths`() {
        func text(_ reason: String) -> String {
            TLSErrorText.text(
                ofEntry: "Error: 268435612 error:1000009c:SSL routines:OPENSSL_internal:\(reason) at /build/ssl.cc:231"
            )
        }
        #expect(text("HTTP_REQUEST") == "the peer speaks HTTP without TLS")
        #expect(text("WRONG_VERSION_NUMBER").hasSuffix(TLSErrorText.speaksNoTLS))
        #expect(text("PEER_DID_NOT_RETURN_A_CERTIFICATE") == "the client shows no certificate")
        #expect(text("TLSV1_ALERT_UNKNOWN_CA") == "tlsv1 alert unknown ca")
        #expect(TLSErrorText.text(ofEntry: "Error:  EOF during handshake").hasSuffix(TLSErrorText.speaksNoTLS))
        #expect(TLSErrorText.text(ofEntry: "something at /build/ssl.cc") == "TLS failed")
    }
}
