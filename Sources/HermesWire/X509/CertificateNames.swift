// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The serial number, the issuer and the subject of a certificate (RFC 5280, section 4.1). Issuer and serial number
/// identify the certificate.
package struct CertificateNames: Sendable, Hashable {
    /// The serial number in two's complement, in the fewest bytes.
    package let serial: [UInt8]
    /// The issuer's name in DER.
    package let issuer: [UInt8]
    /// The subject's name in DER.
    package let subject: [UInt8]

    /// - Parameter der: the whole certificate in DER.
    package init(der: [UInt8]) throws(X509Malformation) {
        var outer = DERReader(der[...])
        var certificate = DERReader(try outer.next(DERReader.Tag.sequence).content)
        var fields = DERReader(try certificate.next(DERReader.Tag.sequence).content)
        _ = try fields.optional(DERReader.Tag.explicit0)
        serial = Array(try fields.next(DERReader.Tag.integer).content)
        _ = try fields.next(DERReader.Tag.sequence)
        issuer = Array(try fields.next(DERReader.Tag.sequence).whole)
        _ = try fields.next(DERReader.Tag.sequence)
        subject = Array(try fields.next(DERReader.Tag.sequence).whole)
    }
}
