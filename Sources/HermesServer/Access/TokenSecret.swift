// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Distinguishes a secret from a public key in an unsupported form. Public keys are no secret: if one were used as the
/// secret of HS256, everybody could sign.
enum TokenSecret {
    /// Returns the kind of key that the bytes look like, human-readable; nil: they may be a secret.
    static func mistake(in bytes: Data) -> String? {
        if isDER(bytes) { return "a key in DER; write it as PEM: openssl pkey -pubin -inform DER -in FILE" }
        let marks: [[UInt8]] = [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]]
        if marks.contains(where: { bytes.starts(with: $0) }) {
            return "a text with a byte order mark; write it as UTF-8 without one"
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        if text.contains("--- BEGIN ") || text.contains("-----BEGIN") { return "a key that is not PEM" }
        let begin = text.drop { $0.isWhitespace || $0 == "\"" || $0 == "'" }
        if ["ssh-", "ecdsa-sha2-", "sk-ssh-"].contains(where: begin.hasPrefix) {
            return "a key of SSH; write it as PEM: ssh-keygen -e -m PKCS8 -f FILE"
        }
        if ["http://", "https://"].contains(where: begin.lowercased().hasPrefix) {
            return "an address; store what is there in the file"
        }
        if begin.hasPrefix("<") || begin.hasPrefix("{") || begin.hasPrefix("[") { return "XML or JSON that is no JWKS" }
        if let inner = base64(begin.utf8), isDER(inner) {
            return "a key in base64 without the lines of PEM around it"
        }
        return nil
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

    /// Whether the bytes are exactly one SEQUENCE of DER (X.690, section 8.1), as all keys and certificates are. A line
    /// break may follow.
    private static func isDER(_ bytes: Data) -> Bool {
        let bytes = Array(bytes)
        guard bytes.count > 2, bytes[0] == 0x30 else { return false }
        var header = 2
        var length = Int(bytes[1])
        if length >= 0x80 {
            header += length & 0x7F
            guard (3...5).contains(header), bytes.count > header else { return false }
            length = bytes[2..<header].reduce(0) { $0 << 8 | Int($1) }
        }
        return (0...2).contains(bytes.count - header - length)
    }
}
