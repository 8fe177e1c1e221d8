// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto

/// One-time codes from a shared secret and the time (TOTP, RFC 6238). The codes use SHA-1, time steps of 30 s, and six
/// digits. Every authenticator app supports this choice. Does no I/O; the time is passed in.
package enum TimeCode {
    /// The length of a secret, in bytes. RFC 4226, section 4, recommends 160 bits.
    package static let secretBytes = 20
    /// The length of a time step, in seconds (RFC 6238, section 5.2).
    package static let stepSeconds: Int64 = 30
    package static let digits = 6
    /// The number of steps on either side of the current step whose codes are also accepted, because clocks differ.
    static let window: Int64 = 1

    /// Returns the code of a time step (RFC 4226, section 5.3).
    package static func code(of step: Int64, secret: [UInt8]) -> String {
        let counter = withUnsafeBytes(of: UInt64(bitPattern: step).bigEndian) { Array($0) }
        let mac = Array(
            HMAC<Insecure.SHA1>.authenticationCode(for: counter, using: SymmetricKey(data: secret))
        )
        let offset = Int(mac[mac.count - 1] & 0x0F)
        let word = mac[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let text = String(word % 1_000_000)
        return String(repeating: "0", count: digits - text.count) + text
    }

    /// Returns the time step that a time belongs to.
    package static func step(at time: Timestamp) -> Int64 { time.rawValue / 1000 / stepSeconds }

    /// Returns the time step of a code. Returns nil if no step near the current time has this code, or if that step is
    /// not later than the last used step. So a code is accepted only once (RFC 6238, section 5.2).
    package static func step(of code: String, secret: [UInt8], now: Timestamp, after used: Int64) -> Int64? {
        let current = step(at: now)
        let given = Array(code.utf8)
        var found: Int64?
        // All candidates are compared, so that the duration reveals nothing about the right code.
        for candidate in current - window...current + window {
            let isEqual = equalInConstantTime(Array(Self.code(of: candidate, secret: secret).utf8), given)
            if isEqual, candidate > used { found = found ?? candidate }
        }
        return found
    }

    /// Returns the `otpauth` address that authenticator apps read, often from a QR code.
    package static func address(of name: AdministratorName, secret: [UInt8]) -> String {
        "otpauth://totp/Hermes:\(name.rawValue.replacing("@", with: "%40"))?secret=\(base32(secret))&issuer=Hermes"
    }

    /// Encodes bytes in base32 (RFC 4648, section 6), without padding.
    package static func base32(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
        var text = ""
        var bits = 0
        var word: UInt32 = 0
        for byte in bytes {
            word = word << 8 | UInt32(byte)
            bits += 8
            while bits >= 5 {
                bits -= 5
                text.append(alphabet[Int(word >> UInt32(bits)) & 31])
            }
            word &= (1 << UInt32(bits)) - 1
        }
        if bits > 0 { text.append(alphabet[Int(word << UInt32(5 - bits)) & 31]) }
        return text
    }
}
