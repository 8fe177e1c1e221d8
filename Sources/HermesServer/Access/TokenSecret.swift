// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation

/// Distinguishes a secret from a public key in an unsupported form. A public key is not secret. If a public key were
/// used as the secret of HS256, everybody could sign tokens.
///
/// A random secret is never mistaken for a key, whether the secret is binary, hexadecimal or base64. The modulus of a
/// key looks random, so it is recognized only if a name (such as `modulus`) or `00:` precedes it.
enum TokenSecret {
    /// If the bytes do not look like a secret, returns a description of them for people; nil if they may be a secret.
    static func mistake(in bytes: Data) -> String? {
        if isDER(bytes) { return "a key in DER; write it as PEM: openssl pkey -pubin -inform DER -in FILE" }
        let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]]
        if marks.contains(where: { bytes.starts(with: $0) }), isText(bytes) {
            return "a text with a byte order mark; write it as UTF-8 without one"
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        if text.contains("--- BEGIN ") || text.contains("-----BEGIN") { return "a key that is not PEM" }
        let begin = text.drop { $0.isWhitespace || $0 == "\"" || $0 == "'" }
        if ["ssh-", "ecdsa-sha2-", "sk-ssh-"].contains(where: begin.hasPrefix) {
            return "a key of SSH; write it as PEM: ssh-keygen -e -m PKCS8 -f FILE"
        }
        if ["http://", "https://"].contains(where: begin.lowercased().hasPrefix) {
            return "a URL; write the contents of that address into the file"
        }
        if begin.hasPrefix("{") || begin.hasPrefix("[") { return "JSON that is no JWKS" }
        if begin.hasPrefix("<"), begin.contains("</") || begin.contains("/>") { return "XML" }
        let bare = begin.reversed().drop { $0.isWhitespace || $0 == "\"" || $0 == "'" }.reversed()
        return mistake(in: String(bare))
    }

    /// - Parameter text: the text without the white space and quotes around it.
    private static func mistake(in text: String) -> String? {
        if let inner = hex(text) {
            if let kind = kind(of: inner) { return "\(kind) in hexadecimal digits" }
            // openssl prints a modulus in this form. The leading zero byte shows that the number is not negative.
            if text.hasPrefix("00:"), isModulus(inner.dropFirst()) { return "the modulus of a key" }
        } else if let inner = base64(text[...].utf8), let kind = kind(of: inner) {
            return "\(kind) in base64 without the lines of PEM around it"
        }
        // The text begins like the base64 of a DER SEQUENCE. That SEQUENCE has more than 255 bytes, and its first
        // element is a SEQUENCE or an INTEGER. The rest may be damaged.
        if text.hasPrefix("MII"), let start = base64(text.prefix(8).utf8), start.count == 6,
            [0x02, 0x30].contains(start[4])
        {
            return "a key in base64 without the lines of PEM around it, and not a whole one"
        }
        if text.contains(where: \.isWhitespace) {
            return "a text of several words or lines; a secret has no white space inside"
        }
        if let sign = text.firstIndex(where: { $0 == "=" || $0 == ":" }), isName(text[..<sign]),
            text[sign...].contains(where: { $0 != "=" && $0 != ":" })
        {
            return "a name and a value; write the value alone, and a public key as PEM"
        }
        return nil
    }

    /// Whether the text is a name that may precede the value of a key, such as `modulus`.
    private static func isName(_ text: Substring) -> Bool {
        let text = text.drop { $0 == "\"" || $0 == "'" }.prefix { $0 != "\"" && $0 != "'" }
        if text == "n" { return true }
        let isWord = text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_.".contains($0)) }
        let lower = text.lowercased()
        let names = ["key", "secret", "modulus", "pub", "cert", "rsa", "jwk", "token"]
        return isWord && names.contains(where: lower.contains)
    }

    /// Returns the kind of key that the bytes look like, in words for people; nil if they may be a secret.
    private static func kind(of bytes: Data) -> String? {
        if isDER(bytes) { return "a key" }
        if bytes.range(of: Data("-----BEGIN".utf8)) != nil { return "a PEM file" }
        // An uncompressed point of P-256 (SEC 1, section 2.3.3). Random bytes are practically never a point on the
        // curve.
        if bytes.count == 65, bytes.first == 4 {
            if (try? P256.Signing.PublicKey(x963Representation: bytes)) != nil { return "the point of a key" }
        }
        return nil
    }

    private static func isModulus(_ number: Data) -> Bool {
        [128, 256, 384, 512, 1_024].contains(number.count) && (number.first ?? 0) & 0x80 != 0
            && (number.last ?? 0) & 1 != 0
    }

    /// Whether bytes that begin with a byte order mark are text: valid UTF-8, or UTF-16 that is mostly ASCII.
    private static func isText(_ bytes: Data) -> Bool {
        if bytes.first == 0xEF { return String(validating: bytes, as: UTF8.self) != nil }
        return bytes.count % 2 == 0 && bytes.count { $0 == 0 } >= bytes.count / 3
    }

    /// Decodes hexadecimal digits, with or without colons, line breaks and "0x" at the beginning.
    private static func hex(_ text: String) -> Data? {
        let digits = (text.hasPrefix("0x") ? text.dropFirst(2) : text[...]).utf8
            .filter { !": \t\r\n".utf8.contains($0) }
        guard digits.count >= 2, digits.count % 2 == 0 else { return nil }
        var bytes = Data(capacity: digits.count / 2)
        var high: UInt8?
        for digit in digits {
            guard let value = Character(UnicodeScalar(digit)).hexDigitValue.map(UInt8.init) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return bytes
    }

    /// Decodes base64 of either alphabet, with or without padding and line breaks.
    private static func base64(_ text: Substring.UTF8View) -> Data? {
        let dropped = Set("\"' \t\r\n=".utf8)
        return JSONWebToken.decode(
            text.lazy.filter { !dropped.contains($0) }.map { byte in
                switch byte {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: byte
                }
            }
        )
    }

    /// Whether the bytes are exactly one DER SEQUENCE (X.690, section 8.1), as all keys and certificates are. The
    /// SEQUENCE must begin with another SEQUENCE or an INTEGER, and its elements must fill it. A line break may follow.
    private static func isDER(_ bytes: Data) -> Bool {
        let bytes = Array(bytes)
        guard bytes.first == 0x30, let whole = element(at: 0, of: bytes),
            (0...2).contains(bytes.count - whole.upperBound)
        else { return false }
        var place = whole.lowerBound
        guard place < whole.upperBound, [0x02, 0x30].contains(bytes[place]) else { return false }
        while place < whole.upperBound {
            guard let next = element(at: place, of: bytes), next.upperBound <= whole.upperBound else { return false }
            place = next.upperBound
        }
        return true
    }

    /// Returns the range of the content of the DER element that begins at `place`.
    private static func element(at place: Int, of bytes: [UInt8]) -> Range<Int>? {
        guard place + 2 <= bytes.count else { return nil }
        var start = place + 2
        var length = Int(bytes[place + 1])
        if length >= 0x80 {
            let count = length & 0x7F
            guard (1...3).contains(count), start + count <= bytes.count else { return nil }
            length = bytes[start..<start + count].reduce(0) { $0 << 8 | Int($1) }
            start += count
        }
        guard start + length <= bytes.count else { return nil }
        return start..<start + length
    }
}
