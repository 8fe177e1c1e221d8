// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOHTTP1
import Synchronization

/// The keys that the HTTP API accepted recently. With them, the port can distinguish owners of keys from guessers.
///
/// Keeps only the hashes of at most ``maxKeys`` keys. The hashes depend on a random seed of the process.
///
/// State: one `Mutex`.
final class KnownKeys: Sendable {
    static let maxKeys = 4096

    private let hashes = Mutex<Set<Int>>([])

    /// Returns the hash of the key of a request; nil if the key is not known.
    func key(of headers: HTTPHeaders) -> Int? {
        let fields = headers["authorization"]
        guard fields.count == 1 else { return nil }
        let hash = fields[0].hashValue
        return hashes.withLock { $0.contains(hash) } ? hash : nil
    }

    /// Adds the key of a field `Authorization`.
    func accepted(_ field: String) {
        let hash = field.hashValue
        hashes.withLock { hashes in
            if hashes.count >= Self.maxKeys, !hashes.contains(hash), let any = hashes.first { hashes.remove(any) }
            hashes.insert(hash)
        }
    }

    /// Removes a key that is unknown or was revoked.
    func refused(_ field: String) {
        let hash = field.hashValue
        _ = hashes.withLock { $0.remove(hash) }
    }
}
