// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

/// The memory store is the specification. Both stores must give the same answers to the same operations.
@Suite("The SQLite store and the memory store cannot be told apart", .inTurns)
struct SQLiteStoreModelTests {
    @Test(arguments: 0..<4)
    func `random operations`(seed: Int) async throws {
        var random = SplitMix(state: UInt64(seed) &+ 1)
        let directory = try TemporaryDirectory()
        let settings = StoreSettings(
            historyPeriod: seed % 2 == 0 ? .zero : .seconds(400),
            recordPeriod: .seconds(300),
            eventPeriod: .seconds(200)
        )
        let devices = [StoreWorld.phone, StoreWorld.tablet]
        let model = try await StoreWorld(store: MemoryStore(settings: settings), people: 5, devices: devices)
        var store = try directory.openStore(settings: settings)
        var world = try await StoreWorld(store: store, people: 5, devices: devices)
        var sent: [(id: MessageID, conversation: ConversationID, sender: Int)] = []
        var now = StoreWorld.now

        for _ in 0..<150 {
            now = now.advanced(by: .seconds(Int.random(in: 0...10, using: &random)))
            var batch: [WriteOperation] = []
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                let one = Int.random(in: 0..<5, using: &random)
                let other = Int.random(in: 0..<5, using: &random)
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<5:
                    let clientID = Bool.random(using: &random) ? "c\(Int.random(in: 0..<40, using: &random))" : nil
                    let append = model.message(
                        "text \(Int.random(in: 0..<3, using: &random))",
                        from: one,
                        to: other,
                        clientID: clientID,
                        at: now,
                        lifetime: Int.random(in: 0..<3, using: &random) == 0 ? .seconds(50) : nil,
                        retention: .seconds(350)
                    )
                    sent.append((append.id, append.draft.conversation, one))
                    batch.append(.append(append))
                case 5:
                    let seq = UInt64.random(in: 0..<40, using: &random)
                    batch.append(.markRead(model.conversation(one, other), by: model[one].user, upTo: seq))
                case 6..<9:
                    let device = Bool.random(using: &random) ? StoreWorld.phone : StoreWorld.tablet
                    let seq = UInt64.random(in: 0..<200, using: &random)
                    batch.append(.acknowledge(model[one].user, device, upTo: seq))
                default:
                    guard let message = sent.randomElement(using: &random) else { continue }
                    let notBefore = Timestamp(rawValue: now.rawValue - 150_000)
                    batch.append(
                        .recall(message.id, message.conversation, by: model[message.sender].user, notBefore: notBefore)
                    )
                }
            }
            let expected = try model.store.commit(batch, now: now)
            let found = try store.commit(batch, now: now)
            #expect(found.map { describe($0) } == expected.map { describe($0) })

            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3:
                try await model.purge(at: now)
                try await world.purge(at: now, limit: Int.random(in: 1...40, using: &random))
            case 3:
                let user = model[Int.random(in: 0..<5, using: &random)].user
                for store in [model.store, store] as [any Store] {
                    try await store.revoke(.device(StoreWorld.tablet, of: user), now: now)
                }
            case 4:
                let user = model[Int.random(in: 0..<5, using: &random)].user
                var opened: [Device] = []
                for store in [model.store, store] as [any Store] {
                    let tablet = DeviceDescription(id: StoreWorld.tablet)
                    opened.append(try await store.open(tablet, of: user, token: nil, now: now))
                }
                #expect(opened[0] == opened[1])
            case 5:
                try store.close()
                world = StoreWorld(store: model.store, people: world.people)
                store = try reopened(&store, directory, settings)
                world = StoreWorld(store: store, people: world.people)
            default:
                break
            }
            try await compare(model, world, &random)
        }
    }

    /// Closes and reopens the store. The old store must be deallocated before the directory can be opened again.
    private func reopened(
        _ store: inout SQLiteStore,
        _ directory: TemporaryDirectory,
        _ settings: StoreSettings
    ) throws -> SQLiteStore {
        let other = try TemporaryDirectory()
        store = try other.openStore()
        return try directory.openStore(settings: settings)
    }

    private func compare(_ model: StoreWorld, _ world: StoreWorld, _ random: inout SplitMix) async throws {
        let after = UInt64.random(in: 0..<60, using: &random)
        let limit = Int.random(in: 1..<50, using: &random)
        for (index, person) in model.people.enumerated() {
            for (after, limit) in [(0, 1000), (after, limit)] {
                let expected = try await model.store.entries(of: person.user, after: after, limit: limit)
                let found = try await world.store.entries(of: person.user, after: after, limit: limit)
                try StoreWorld.checkContiguity(found, after: after)
                #expect(found.entries == expected.entries)
                #expect(found.position.head == expected.position.head)
                #expect(found.position.oldest == expected.position.oldest)
            }
            #expect(try await world.store.devices(of: person.user) == model.store.devices(of: person.user))
            let place = UserID(Int.random(in: 1...5, using: &random)).map(ConversationPlace.user)
            for (after, limit) in [(nil, 1000), (place, Int.random(in: 1...5, using: &random))] {
                let expected = try await model.store.conversations(of: person.user, after: after, limit: limit)
                let found = try await world.store.conversations(of: person.user, after: after, limit: limit)
                #expect(found == expected)
            }
            let conversation = model.conversation(index, (index + 1) % 5)
            let expected = try await model.store.history(of: conversation, before: after, limit: limit)
            #expect(try await world.store.history(of: conversation, before: after, limit: limit) == expected)
        }
    }

    private func describe(_ outcome: WriteOutcome) -> String {
        switch outcome {
        case .refused(let error): "refused \(error.code.rawValue)"
        default: "\(outcome)"
        }
    }
}
