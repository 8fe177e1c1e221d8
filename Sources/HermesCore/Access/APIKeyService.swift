// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Creates, checks and revokes the keys of the HTTP API. Thread-safe.
///
/// A key has 256 random bits, so it cannot be guessed, and its hash needs no salt. Every request looks up its key in
/// the store, so a revoked key stops working at once.
///
/// State: a `Mutex` around the times of recorded uses; nothing is called while it is locked.
package final class APIKeyService: Sendable {
    /// The prefix of every key, by which people and scanners recognize it.
    package static let prefix = "hk_"
    /// The maximum length of a name, in characters.
    package static let maxNameCharacters = 64
    /// The shortest interval between two records of a key's use.
    private static let noteInterval = Duration.seconds(60)

    private let store: any APIKeyStore
    private let time: any TimeSource
    /// The gate for reads. Checks take turns by the client's address, because a client may show a secret that belongs
    /// to no key.
    let reads = ReadGate(maxRunning: 1, maxWaiting: .max)
    /// For each key, the time at which its use was last recorded.
    private let noted = Mutex<[Int64: Duration]>([:])
    /// Called with the name of a key that was revoked.
    package let revoked = Hook<String>()

    package init(store: any APIKeyStore, time: any TimeSource) {
        self.store = store
        self.time = time
    }

    /// Creates a key.
    ///
    /// - Returns: the key, and its secret, which cannot be shown again.
    /// - Throws: `.invalidArgument`, `.tooLarge`, `.nameTaken`, `.storageUnavailable`.
    package func create(name: String, scopes: Set<APIScope>) async throws(HermesError) -> (key: APIKey, secret: String)
    {
        let isPlain = name.unicodeScalars.allSatisfy { (0x21...0x7E).contains($0.value) }
        guard (1...Self.maxNameCharacters).contains(name.utf8.count), isPlain else {
            throw HermesError(
                .ofValue(name.utf8.count, atMost: Self.maxNameCharacters),
                "The name of a key is 1 to \(Self.maxNameCharacters) characters of printable ASCII without blanks."
            )
        }
        guard !scopes.isEmpty else { throw HermesError(.invalidArgument, "A key needs at least one scope.") }
        let secret = Self.prefix + AccessToken().text
        guard let hash = TokenHash(ofToken: secret) else {
            throw HermesError(.internalError, "The key could not be created.")
        }
        let key = try await store.create(NewAPIKey(name: name, scopes: scopes, hash: hash), now: time.now())
        return (key, secret)
    }

    /// Returns all keys, with the oldest key first.
    package func keys() async throws(HermesError) -> [APIKey] {
        try await reads.turn(of: .server) { () async throws(HermesError) in try await store.apiKeys() }
    }

    /// Revokes a key at once.
    /// - Throws: `.notFound`, `.storageUnavailable`.
    package func revoke(name: String) async throws(HermesError) {
        try await store.revoke(apiKeyNamed: name)
        revoked(name)
    }

    /// Finds the key of a secret and records its use.
    ///
    /// - Parameter source: the address of the client that shows the secret. The check waits for a turn of this address
    ///   (``ReadGate``).
    /// - Throws: `.invalidToken`, `.storageUnavailable`.
    package func check(_ secret: String, from source: CommitSource = .server) async throws(HermesError) -> APIKey {
        let unknown = HermesError(.invalidToken, "The API key is unknown or revoked.")
        guard secret.hasPrefix(Self.prefix), let hash = TokenHash(ofToken: secret) else { throw unknown }
        let found = try await reads.turn(of: source) { () async throws(HermesError) in try await store.apiKey(hash) }
        guard let key = found else { throw unknown }
        let uptime = time.uptime()
        let isDue = noted.withLock { noted in
            if let last = noted[key.id], uptime - last < Self.noteInterval { return false }
            noted[key.id] = uptime
            return true
        }
        // If the use cannot be recorded, the request is still answered.
        if isDue { try? await store.used(key, at: time.now()) }
        return key
    }
}
