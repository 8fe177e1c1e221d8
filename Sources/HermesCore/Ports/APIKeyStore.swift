// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores the keys of the HTTP API. Each change is durable when the call returns.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `APIKeyStoreConformance` of HermesTestKit.
package protocol APIKeyStore: Sendable {
    /// - Throws: `.nameTaken`, `.storageUnavailable`.
    func create(_ key: NewAPIKey, now: Timestamp) async throws(HermesError) -> APIKey

    /// Returns all keys, the oldest first.
    func apiKeys() async throws(HermesError) -> [APIKey]

    /// Returns the key with this secret; nil if there is none, or if it was revoked.
    func apiKey(_ hash: TokenHash) async throws(HermesError) -> APIKey?

    /// Records the use of a key. Has no effect if the key is gone.
    func used(_ key: APIKey, at now: Timestamp) async throws(HermesError)

    /// - Throws: `.notFound`, `.storageUnavailable`.
    func revoke(apiKeyNamed name: String) async throws(HermesError)
}
