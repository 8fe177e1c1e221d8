// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Keys of the HTTP API.
extension MemoryState {
    mutating func create(_ new: NewAPIKey, now: Timestamp) throws(HermesError) -> APIKey {
        try checkRoom(for: 0)
        let made = apiKeys.insert(new.hash, named: new.name) { id in
            APIKey(id: id, name: new.name, scopes: new.scopes, createdAt: now)
        }
        guard let made else {
            throw StoreRefusals.keyNameTaken
        }
        return made
    }

    mutating func used(_ key: APIKey, at now: Timestamp) {
        guard let hash = apiKeys.hash(where: { $0.id == key.id }) else { return }
        apiKeys.change(hash) { old in
            APIKey(id: old.id, name: old.name, scopes: old.scopes, createdAt: old.createdAt, lastUsedAt: now)
        }
    }

    mutating func revoke(apiKeyNamed name: String) throws(HermesError) {
        guard apiKeys.remove(named: name) else { throw StoreRefusals.noSuchKey }
    }
}

extension MemoryStore: APIKeyStore {
    package func create(_ key: NewAPIKey, now: Timestamp) async throws(HermesError) -> APIKey {
        try write { (state) throws(HermesError) in try state.create(key, now: now) }
    }

    package func apiKeys() async throws(HermesError) -> [APIKey] {
        try read { (state) throws(HermesError) in state.apiKeys.all }
    }

    package func apiKey(_ hash: TokenHash) async throws(HermesError) -> APIKey? {
        try read { (state) throws(HermesError) in state.apiKeys[hash] }
    }

    package func used(_ key: APIKey, at now: Timestamp) async throws(HermesError) {
        try write { (state) throws(HermesError) in state.used(key, at: now) }
    }

    package func revoke(apiKeyNamed name: String) async throws(HermesError) {
        try write { (state) throws(HermesError) in try state.revoke(apiKeyNamed: name) }
    }
}
