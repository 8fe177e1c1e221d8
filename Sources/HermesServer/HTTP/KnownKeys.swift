// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import NIOHTTP1
import Synchronization

/// The keys that the HTTP API accepted lately, so that the port can distinguish their owners from guessers.
///
/// Keeps only hashes, with a seed of the process, of at most ``maxKeys`` keys.
///
/// State: one `Mutex`.
final class KnownKeys: Sendable {
    static let maxKeys = 4096

    /// The requests with one key that pass in a second, and at once. This is above the rate that the API itself allows
    /// by default and tells keys of. It bounds what that rate does not see: paths without a scope or without a route,
    /// and keys that were revoked since they were known.
    static let (rate, burst) = (400, 800)

    private let buckets = Mutex<[Int: TokenBucket]>([:])

    /// Whether a request has a known key.
    func contains(_ headers: HTTPHeaders) -> Bool {
        guard let hash = Self.hash(headers) else { return false }
        return buckets.withLock { $0[hash] != nil }
    }

    /// Whether a request may pass for its key.
    ///
    /// - Returns: nil if it has no known key.
    func allows(_ headers: HTTPHeaders, now: Duration) -> Bool? {
        guard let hash = Self.hash(headers) else { return nil }
        return buckets.withLock { buckets in
            guard var bucket = buckets[hash] else { return nil }
            defer { buckets[hash] = bucket }
            guard bucket.hasToken(rate: Self.rate, burst: Self.burst, now: now) else { return false }
            bucket.take()
            return true
        }
    }

    private static func hash(_ headers: HTTPHeaders) -> Int? {
        let fields = headers["authorization"]
        return fields.count == 1 ? fields[0].hashValue : nil
    }

    /// Adds the key of a field `Authorization`.
    func accepted(_ field: String, now: Duration) {
        let hash = field.hashValue
        buckets.withLock { buckets in
            guard buckets[hash] == nil else { return }
            if buckets.count >= Self.maxKeys, let any = buckets.keys.first { buckets[any] = nil }
            buckets[hash] = TokenBucket(burst: Self.burst, now: now)
        }
    }

    /// Removes a key that is unknown or was revoked.
    func refused(_ field: String) {
        let hash = field.hashValue
        buckets.withLock { $0[hash] = nil }
    }
}
