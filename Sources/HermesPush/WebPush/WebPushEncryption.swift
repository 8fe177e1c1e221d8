// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Crypto
package import Foundation

/// Encrypts a message for a browser (RFC 8291), as one record of `aes128gcm` (RFC 8188).
package enum WebPushEncryption {
    /// The longest message, in bytes. Services accept bodies of 4,096 bytes (RFC 8030, section 7.2). The header takes
    /// 86 of these bytes, the tag 16 and the delimiter 1.
    package static let maxMessageBytes = 3_993
    /// The announced record size, in bytes.
    private static let recordBytes: UInt32 = 4_096

    /// Returns the encrypted body to post.
    ///
    /// - Parameters:
    ///   - message: at most ``maxMessageBytes``.
    ///   - receiver: the browser's public key, uncompressed.
    ///   - secret: the subscription's authentication secret.
    ///   - sender: a key that is used only for this message.
    ///   - salt: 16 random bytes.
    /// - Throws: if the browser's key is not a point of the curve.
    package static func encrypt(
        _ message: Data,
        for receiver: Data,
        secret: Data,
        sender: P256.KeyAgreement.PrivateKey = P256.KeyAgreement.PrivateKey(),
        salt: Data = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    ) throws -> Data {
        let peer = try P256.KeyAgreement.PublicKey(x963Representation: receiver)
        let shared = try sender.sharedSecretFromKeyAgreement(with: peer)
        let own = sender.publicKey.x963Representation
        // RFC 8291, section 3.4.
        let keyInfo = Data("WebPush: info".utf8) + [0] + receiver + own
        let material = shared.withUnsafeBytes { bytes in
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: SymmetricKey(data: bytes),
                salt: secret,
                info: keyInfo,
                outputByteCount: 32
            )
        }
        // RFC 8188, sections 2.2 and 2.3.
        func derive(_ label: String, _ count: Int) -> SymmetricKey {
            HKDF<SHA256>.deriveKey(
                inputKeyMaterial: material,
                salt: salt,
                info: Data("Content-Encoding: \(label)".utf8) + [0],
                outputByteCount: count
            )
        }
        let nonce = try derive("nonce", 12).withUnsafeBytes { try AES.GCM.Nonce(data: Data($0)) }
        // The last record ends with the delimiter 2 (RFC 8188, section 2).
        let box = try AES.GCM.seal(message + [2], using: derive("aes128gcm", 16), nonce: nonce)
        var body = salt
        withUnsafeBytes(of: recordBytes.bigEndian) { body.append(contentsOf: $0) }
        body.append(UInt8(own.count))
        return body + own + box.ciphertext + box.tag
    }
}
