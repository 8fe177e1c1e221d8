// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``APIKeyStore``.
package enum APIKeyStoreConformance {
    package static let cases = [
        ConformanceCase("A key is found by its hash until it is revoked") { makeStore in
            let store = try await makeStore(StoreSettings())
            let first = try await store.create(key("shop", 1, [.push, .usersRead]), now: StoreWorld.now)
            let second = try await store.create(key("ops", 2, [.statsRead]), now: StoreWorld.now)
            try expectEqual(try await store.apiKeys(), [first, second])
            try expectEqual(try await store.apiKey(hash(1)), first)
            try expectEqual(first.scopes, [.push, .usersRead])
            try expectEqual(first.lastUsedAt, nil)
            for other in ["shop\0x", "shop\0", "\0", "", "shop ", "Shop"] {
                try await expectError(.notFound) { try await store.revoke(apiKeyNamed: other) }
            }
            try expectEqual(try await store.apiKeys(), [first, second])
            try await store.revoke(apiKeyNamed: "shop")
            try expectEqual(try await store.apiKey(hash(1)), nil)
            try expectEqual(try await store.apiKeys(), [second])
            try await expectError(.notFound) { try await store.revoke(apiKeyNamed: "shop") }
        },
        ConformanceCase("No two keys have the same name") { makeStore in
            let store = try await makeStore(StoreSettings())
            _ = try await store.create(key("shop", 1, [.push]), now: StoreWorld.now)
            try await expectError(.nameTaken) { try await store.create(key("shop", 2, [.push]), now: StoreWorld.now) }
            try expectEqual(try await store.apiKeys().count, 1)
        },
        ConformanceCase("The last use of a key is noted") { makeStore in
            let store = try await makeStore(StoreSettings())
            let shop = try await store.create(key("shop", 1, [.push]), now: StoreWorld.now)
            try await store.used(shop, at: StoreWorld.later(.seconds(5)))
            try expectEqual(try await store.apiKey(hash(1))?.lastUsedAt, StoreWorld.later(.seconds(5)))
            try await store.revoke(apiKeyNamed: "shop")
            try await store.used(shop, at: StoreWorld.now)
            try expectEqual(try await store.apiKeys(), [])
        },
    ]

    private static func hash(_ number: UInt8) -> TokenHash {
        TokenHash(bytes: Array(repeating: number, count: 32))
    }

    private static func key(_ name: String, _ number: UInt8, _ scopes: Set<APIScope>) -> NewAPIKey {
        NewAPIKey(name: name, scopes: scopes, hash: hash(number))
    }
}
