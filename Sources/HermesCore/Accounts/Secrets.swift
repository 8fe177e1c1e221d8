// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation

/// The SHA-256 of an access token: 32 bytes. The token itself is not stored.
package struct TokenHash: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }

    /// Hashes a token in the form in which a client sent it.
    ///
    /// - Returns: nil if the text is empty or too long for a token.
    package init?(ofToken text: String) {
        guard (1...AccessToken.maxBytes).contains(text.utf8.count) else { return nil }
        bytes = Array(SHA256.hash(data: Array(text.utf8)))
    }
}

/// A new access token in the clear: 256 random bits as base64url, 43 characters.
package struct AccessToken: Sendable {
    package let text: String
    package let hash: TokenHash

    /// The longest text that is examined, in bytes.
    package static let maxBytes = 128
    /// The length of a token's text, in bytes.
    package static let bytes = 43

    /// Creates a token from the system's secure random numbers.
    package init() {
        text = Data(randomBytes(32)).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        hash = TokenHash(bytes: Array(SHA256.hash(data: Array(text.utf8))))
    }
}

/// A password hash with its parameters.
///
/// The format is the format of PHC strings (`$scrypt-sha256$ln=14,r=8,p=1$salt$hash`), so that parameters can be raised
/// later.
package struct PasswordHash: Sendable, Hashable {
    package let phc: String

    package init(phc: String) { self.phc = phc }
}

/// Returns bytes from the system's secure random number generator.
func randomBytes(_ count: Int) -> [UInt8] {
    var generator = SystemRandomNumberGenerator()
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    while bytes.count < count {
        let word = generator.next()
        for shift in stride(from: 0, to: 64, by: 8) where bytes.count < count {
            bytes.append(UInt8(truncatingIfNeeded: word >> shift))
        }
    }
    return bytes
}

/// Whether the bytes are equal. The time of the comparison does not depend on where the bytes differ. The length is not
/// secret.
func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for (one, other) in zip(left, right) { difference |= one ^ other }
    return difference == 0
}
