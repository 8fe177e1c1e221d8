// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("Deletions in several parts", .inTurns)
struct DeletionInPartsTests {
    @Test
    func `nothing is stored for an account between two parts of its deletion`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 201)
        let user = world[0].user
        for person in 1...200 {
            _ = try world.commit(.contact(.request, by: world[person], peer: user, message: ""))
        }
        func deletePart() throws -> Bool {
            guard case .deleted(_, let isDone) = try world.commit(.deleteAccount(user)) else {
                throw ConformanceFailure(description: "refused")
            }
            return isDone
        }
        #expect(try deletePart() == false)
        try await store.note([.network(NetworkMark(of: user, at: "192.0.2.1"), of: user, at: StoreWorld.now)])
        _ = try await store.appendWebhooks([], marks: [user: 5], limit: 10)
        while try !deletePart() {}
        for table in ["known_network", "webhook_mark"] {
            let left = try await store.pool.read { db in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table) WHERE user = ?", arguments: [user.rawValue])
            }
            #expect(left == 0, "\(table)")
        }
        try store.close()
    }
}
