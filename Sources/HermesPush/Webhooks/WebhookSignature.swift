// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Crypto
import Foundation
package import HermesCore

/// Proves to the receiver that an event comes from this server, and when it was posted: `t=<seconds>,v1=<HMAC-SHA256 in
/// hex>` over `<seconds>.<body>`.
package enum WebhookSignature {
    /// The header's name.
    package static let header = "hermes-signature"
    /// The smallest length of a secret, in bytes.
    package static let minSecretBytes = 16

    /// The header's value.
    package static func value(_ body: [UInt8], secret: SymmetricKey, now: Timestamp) -> String {
        let seconds = now.rawValue / 1000
        var code = HMAC<SHA256>(key: secret)
        code.update(data: Data("\(seconds).".utf8))
        code.update(data: Data(body))
        return "t=\(seconds),v1=\(code.finalize().hexDigits)"
    }
}
