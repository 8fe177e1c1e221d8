// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The SHA-256 of an access token: all that is stored of it. 32 bytes.
package struct TokenHash: Sendable, Hashable {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }
}

/// A hashed password with the parameters it was hashed with, in the PHC string format
/// (`$scrypt$ln=15,r=8,p=1$salt$hash`), so that parameters can be raised later.
package struct PasswordHash: Sendable, Hashable {
    package let phc: String

    package init(phc: String) { self.phc = phc }
}
