// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Keys of the HTTP API.
extension MemoryState {
    mutating func create(_ new: NewAPIKey, now: Timestamp) throws(HermesError) -> APIKey {
        try checkRoom(for: 0)
        guard !apiKeys.contains(where: { $0.key.name == new.name }) else {
            throw HermesError(.nameTaken, "There is a key of this name already. Choose another, or revoke that one.")
        }
        lastAPIKey += 1
        let key = APIKey(id: lastAPIKey, name: new.name, scopes: new.scopes, createdAt: now)
        apiKeys.append((new.hash, key))
        return key
    }

    mutating func used(_ key: APIKey, at now: Timestamp) {
        guard let index = apiKeys.firstIndex(where: { $0.key.id == key.id }) else { return }
        let old = apiKeys[index].key
        apiKeys[index].key = APIKey(
            id: old.id,
            name: old.name,
            scopes: old.scopes,
            createdAt: old.createdAt,
            lastUsedAt: now
        )
    }

    mutating func revoke(apiKeyNamed name: String) throws(HermesError) {
        guard let index = apiKeys.firstIndex(where: { $0.key.name == name }) else {
            throw HermesError(.notFound, "There is no key of this name.")
        }
        apiKeys.remove(at: index)
    }
}

extension MemoryStore: APIKeyStore {
    package func create(_ key: NewAPIKey, now: Timestamp) async throws(HermesError) -> APIKey {
        try run { (state) throws(HermesError) in try state.create(key, now: now) }
    }

    package func apiKeys() async throws(HermesError) -> [APIKey] {
        try run { (state) throws(HermesError) in state.apiKeys.map(\.key) }
    }

    package func apiKey(_ hash: TokenHash) async throws(HermesError) -> APIKey? {
        try run { (state) throws(HermesError) in state.apiKeys.first { $0.hash == hash }?.key }
    }

    package func used(_ key: APIKey, at now: Timestamp) async throws(HermesError) {
        try run { (state) throws(HermesError) in state.used(key, at: now) }
    }

    package func revoke(apiKeyNamed name: String) async throws(HermesError) {
        try run { (state) throws(HermesError) in try state.revoke(apiKeyNamed: name) }
    }
}
