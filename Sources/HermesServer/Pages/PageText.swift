// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Crypto
import HermesCore
import NIOCore

/// A page that the server writes itself, prepared once: its text, its compressed form, and its tag.
struct PageText: Sendable {
    let plain: ByteBuffer
    /// Nil if it cannot be compressed.
    let packed: ByteBuffer?
    /// Changes with the content.
    let tag: String

    init(_ text: String) {
        let bytes = Array(text.utf8)
        plain = ByteBuffer(bytes: bytes)
        packed = Gzip.packed(bytes).map { ByteBuffer(bytes: $0) }
        // As long as the tags of files, which scripts/embed-web makes.
        tag = SHA256.hash(data: bytes).prefix(16).hexDigits
    }
}
#endif
