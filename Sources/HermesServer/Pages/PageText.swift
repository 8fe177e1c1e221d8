// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Crypto
import HermesCore
import NIOCore

/// A page that the server writes itself, prepared once: its text, its compressed form, and its tag.
struct PageText: Sendable {
    let plain: ByteBuffer
    /// The compressed text; nil if it cannot be compressed.
    let packed: ByteBuffer?
    /// The entity tag, which changes with the content.
    let tag: String

    init(_ text: String) {
        let bytes = Array(text.utf8)
        plain = ByteBuffer(bytes: bytes)
        packed = Gzip.packed(bytes).map { ByteBuffer(bytes: $0) }
        // The tag is as long as the tags that scripts/embed-web gives to files.
        tag = SHA256.hash(data: bytes).prefix(16).hexDigits
    }
}
#endif
