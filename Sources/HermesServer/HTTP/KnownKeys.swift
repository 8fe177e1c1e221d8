// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOHTTP1
import Synchronization

/// The keys of the HTTP API that were good a moment ago, so that the port can tell their owners from those who only guess.
///
/// It holds hashes whose seed is drawn by the process, of so many keys at most as ``maxKeys`` says.
///
/// State: one `Mutex`.
final class KnownKeys: Sendable {
    static let maxKeys = 4096

    private let hashes = Mutex<Set<Int>>([])

    /// Whether a request shows one.
    func contains(_ headers: HTTPHeaders) -> Bool {
        let fields = headers["authorization"]
        guard fields.count == 1 else { return false }
        let hash = fields[0].hashValue
        return hashes.withLock { $0.contains(hash) }
    }

    /// The key of a field `Authorization` was good.
    func accepted(_ field: String) {
        let hash = field.hashValue
        hashes.withLock { hashes in
            if hashes.count >= Self.maxKeys, !hashes.contains(hash), let any = hashes.first { hashes.remove(any) }
            hashes.insert(hash)
        }
    }

    /// The key is unknown, or was revoked.
    func refused(_ field: String) {
        let hash = field.hashValue
        _ = hashes.withLock { $0.remove(hash) }
    }
}
