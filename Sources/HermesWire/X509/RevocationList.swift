// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A certificate revocation list (RFC 5280, section 5.1): the serial numbers of revoked certificates.
package struct RevocationList: Sendable, Hashable {
    /// The signature algorithm of a list.
    package enum Algorithm: Sendable, Hashable, CaseIterable {
        case rsaSHA256
        case rsaSHA384
        case rsaSHA512
        case ecdsaSHA256
        case ecdsaSHA384
        case ecdsaSHA512

        /// The DER content of the algorithm's object identifier.
        fileprivate var identifier: [UInt8] {
            switch self {
            case .rsaSHA256: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0B]
            case .rsaSHA384: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0C]
            case .rsaSHA512: [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0D]
            case .ecdsaSHA256: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02]
            case .ecdsaSHA384: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x03]
            case .ecdsaSHA512: [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x04]
            }
        }
    }

    /// The issuer's name in DER.
    package let issuer: [UInt8]
    /// The serial numbers of the revoked certificates, in the form of ``CertificateNames/serial``.
    package let serials: Set<[UInt8]>
    /// The time by which the next list will be issued, in seconds since 1970; nil if the list does not give it.
    package let nextUpdate: Int?
    package let algorithm: Algorithm
    /// The bytes that the signature covers.
    package let signed: [UInt8]
    package let signature: [UInt8]

    /// - Throws: if the bytes are not a revocation list, or if the list is of an unsupported kind: a delta list, a list
    ///   for only some certificates, a list for several issuers, or a list with an algorithm that is not in
    ///   ``Algorithm``.
    package init(der: [UInt8]) throws(X509Malformation) {
        var outer = DERReader(der[...])
        var list = DERReader(try outer.next(DERReader.Tag.sequence).content)
        let signed = try list.next(DERReader.Tag.sequence)
        let algorithm = try Self.algorithm(try list.next(DERReader.Tag.sequence))
        let signature = try list.next(DERReader.Tag.bitString).content
        guard signature.first == 0, outer.isAtEnd, list.isAtEnd else { throw X509Malformation() }
        var fields = DERReader(signed.content)
        _ = try fields.optional(DERReader.Tag.integer)
        guard try Self.algorithm(try fields.next(DERReader.Tag.sequence)) == algorithm else { throw X509Malformation() }
        issuer = Array(try fields.next(DERReader.Tag.sequence).whole)
        _ = try Self.time(&fields)
        nextUpdate = try Self.time(&fields)
        var serials: Set<[UInt8]> = []
        if let revoked = try fields.optional(DERReader.Tag.sequence) {
            var entries = DERReader(revoked.content)
            while !entries.isAtEnd {
                var entry = DERReader(try entries.next(DERReader.Tag.sequence).content)
                serials.insert(Array(try entry.next(DERReader.Tag.integer).content))
                _ = try entry.next()
                if let extensions = try entry.optional(DERReader.Tag.sequence) { try Self.check(extensions.content) }
            }
        }
        if let tagged = try fields.optional(DERReader.Tag.explicit0) {
            var inner = DERReader(tagged.content)
            try Self.check(try inner.next(DERReader.Tag.sequence).content)
        }
        self.serials = serials
        self.algorithm = algorithm
        self.signed = Array(signed.whole)
        self.signature = Array(signature.dropFirst())
    }

    private static func algorithm(_ element: DERReader.Element) throws(X509Malformation) -> Algorithm {
        var fields = DERReader(element.content)
        let identifier = Array(try fields.next(DERReader.Tag.objectIdentifier).content)
        guard let algorithm = Algorithm.allCases.first(where: { $0.identifier == identifier }) else {
            throw X509Malformation()
        }
        return algorithm
    }

    /// Refuses critical extensions, because this type does not support any.
    private static func check(_ extensions: ArraySlice<UInt8>) throws(X509Malformation) {
        var all = DERReader(extensions)
        while !all.isAtEnd {
            var one = DERReader(try all.next(DERReader.Tag.sequence).content)
            _ = try one.next(DERReader.Tag.objectIdentifier)
            if let critical = try one.optional(DERReader.Tag.boolean), critical.content.first != 0 {
                throw X509Malformation()
            }
        }
    }

    /// Reads a time, `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`, as seconds since 1970; nil if the next field is not a time.
    private static func time(_ fields: inout DERReader) throws(X509Malformation) -> Int? {
        let isLong = fields.nextTag == DERReader.Tag.generalizedTime
        guard isLong || fields.nextTag == DERReader.Tag.utcTime else { return nil }
        let text = Array(try fields.next().content)
        guard text.count == (isLong ? 15 : 13), text.last == 0x5A else { throw X509Malformation() }
        var digits: [Int] = []
        for byte in text.dropLast() {
            guard (0x30...0x39).contains(byte) else { throw X509Malformation() }
            digits.append(Int(byte) - 0x30)
        }
        func number(_ index: Int) -> Int { digits[index] * 10 + digits[index + 1] }
        let start = isLong ? 4 : 2
        // Two-digit years are 1950 … 2049 (RFC 5280, section 4.1.2.5.1).
        let year = isLong ? number(0) * 100 + number(2) : number(0) < 50 ? 2000 + number(0) : 1900 + number(0)
        let month = number(start)
        let day = number(start + 2)
        guard (1...12).contains(month), (1...31).contains(day), year >= 1950 else { throw X509Malformation() }
        let days = CivilDate.daysSince1970(year: year, month: month, day: day)
        return days * 86_400 + number(start + 4) * 3600 + number(start + 6) * 60 + number(start + 8)
    }
}
