// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

@Suite(.inTurns) struct StoredTextTests {
    @Test func `after a restart, each session belongs to its owner, even if a name begins with a combining mark`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let before = SessionWorld(store)
        let names = ["bob", "\u{301}bob", "\u{1F3FB}bob"]
        let ids = try names.map { try before.open("lamp", owner: .subject($0), expiry: nil).id }
        #expect(Set(ids).count == names.count)
        try store.close()

        let world = SessionWorld(try directory.openStore())
        let sessions = try await world.store.sessions().sorted { $0.id < $1.id }
        #expect(sessions.map(\.id) == ids)
        #expect(sessions.map { Array($0.key.owner.stored.utf8) } == names.map { Array("s\($0)".utf8) })
        #expect(sessions.map { Array($0.payer.stored.utf8) } == names.map { Array("s\($0)".utf8) })
        for (name, id) in zip(names, ids) {
            let again = try world.open("lamp", owner: .subject(name))
            #expect(again.wasPresent && again.id == id)
        }
    }
}
