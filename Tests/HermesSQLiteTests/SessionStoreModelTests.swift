// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

@Suite("The stores keep the same sessions", .inTurns)
struct SessionStoreModelTests {
    @Test(arguments: [1, 2, 3, 4])
    func `after any operations, in any batches, with restarts in between`(_ seed: UInt64) async throws {
        var generator = Generator(random: SplitMix(state: seed))
        let settings = StoreSettings(maxQueuedMessages: 12, maxQueuedBytes: 3000)
        let directory = try TemporaryDirectory()
        var sqlite = try directory.openStore(settings: settings)
        let memory = MemoryStore(settings: settings)
        var now = StoreWorld.now
        for round in 0..<120 {
            let batch = (0..<Int.random(in: 1...25, using: &generator.random)).map { _ in generator.operation(at: now) }
            let expected = try memory.commit(batch, now: now).map(summary)
            #expect(try sqlite.commit(batch, now: now).map(summary) == expected)
            if round % 10 == 9 {
                now = now.advanced(by: .seconds(1))
                for store in [memory, sqlite] as [any Store] {
                    try await SessionWorld(store).purge(at: now, limit: 1 + round % 7)
                }
            }
            if round % 40 == 39 {
                try sqlite.close()
                sqlite = try directory.openStore(settings: settings)
            }
            guard round % 5 == 4 else { continue }
            let found = try await everything(in: sqlite, at: now)
            let wanted = try await everything(in: memory, at: now)
            #expect(found == wanted)
        }
    }

    /// All data that can be read from a store, as text.
    private func everything(in store: any Store, at now: Timestamp) async throws -> [String] {
        let world = SessionWorld(store)
        var lines: [String] = []
        for session in try await store.sessions().sorted(by: { $0.id < $1.id }) {
            lines.append(describe(session))
            lines += try await world.queue(session.id).map { "  \($0)" }
        }
        return lines + (try await world.retainedTexts())
    }

    private func describe(_ session: StoredSession) -> String {
        let subscriptions = session.subscriptions.map { "\($0.filter) \($0.options)" }.sorted()
        let partial = session.partial.sorted { $0.key < $1.key }
            .map { key, partial in
                let shares = partial.shares.map(\.rawValue).sorted()
                return "\(key) \(partial.parts) \(partial.sessions.sorted()) \(shares)"
            }
        return """
            \(session.id) \(session.key) \(subscriptions) \(String(describing: session.expiry)) \(session.isOnline) \
            \(String(describing: session.expiresAt)) \(session.head) \(session.sentUpTo) \(session.queuedCount) \
            \(session.queuedBytes) \(session.released) \(session.received) \(partial)
            """
    }

    private func summary(_ outcome: SessionOutcome) -> String {
        switch outcome {
        case .opened(let session): "\(session.wasPresent) " + describe(session)
        case .published(let seqs): "\(seqs)"
        case .moved(let outcomes, let hasEnded): "\(outcomes) \(hasEnded)"
        case .completed(let count): "completed \(count)"
        case .done: "done"
        case .refused(let error): "\(error.code)"
        }
    }
}

/// Generates operations that affect one another.
private struct Generator {
    var random: SplitMix

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    private mutating func session() -> DurableSessionID { DurableSessionID(rawValue: Int64(number(1...8))) }

    mutating func operation(at now: Timestamp) -> SessionOperation {
        let id = session()
        switch number(0...22) {
        case 0:
            let key = SessionKey(owner: .anonymous, clientID: "c\(number(1...4))")
            return .open(key, clean: number(0...5) == 0, expiry: number(0...2) == 0 ? nil : .seconds(number(1...9)))
        case 1:
            return .close(id, sentUpTo: UInt64(number(0...40)), expiresAt: number(0...2) == 0 ? nil : now)
        case 2:
            return number(0...4) == 0 ? .remove(id) : .receivedReleased(id, UInt16(number(1...4)))
        case 3:
            let options = SubscriptionOptions(qos: .atLeastOnce, identifiers: number(0...1) == 0 ? [] : [7])
            return .subscribe(id, [DurableSubscription(filter: "f\(number(1...3))", options: options)])
        case 4: return .unsubscribe(id, ["f\(number(1...3))"])
        case 5: return .retain(publication(at: now))
        case 6...8: return .released(id, UInt64(number(1...60)))
        case 9...12: return .completed(id, (0..<number(1...5)).map { _ in UInt64(number(1...60)) })
        case 13, 14: return .move(move(of: id, at: now))
        default:
            var targets: [PublicationTarget] = []
            for number in 1...number(1...4) {
                let target = DurableSessionID(rawValue: (id.rawValue + Int64(number)) % 8 + 1)
                let share = self.number(0...1) == 0 ? nil : "$share/g/f"
                targets.append(PublicationTarget(session: target, qos: .exactlyOnce, share: share))
            }
            let extents: [ReceivedMark.Extent] = [
                .whole, .last, .part(number: number(0...2), content: Int64(number(1...2))),
                .rest(number: number(0...2), content: Int64(number(1...2))),
            ]
            let extent = extents[number(0...3)]
            let received = ReceivedMark(session: session(), id: UInt16(number(1...4)), extent: extent)
            return .publish(
                publication(at: now),
                targets: targets,
                received: number(0...2) == 0 ? received : nil,
                retains: number(0...3) == 0
            )
        }
    }

    private mutating func move(of id: DurableSessionID, at now: Timestamp) -> QueueMove {
        let items = (0..<number(0...3)).map { _ in
            let queued = QueuedPublication(
                seq: UInt64(number(1...60)),
                qos: .exactlyOnce,
                identifiers: [],
                retain: false,
                publication: publication(at: now)
            )
            let heir = PublicationTarget(session: session(), qos: .atLeastOnce, identifiers: [7], share: "$share/g/f")
            return QueueMove.Item(queued, to: number(0...3) == 0 ? nil : heir)
        }
        return QueueMove(
            from: id,
            items,
            condition: number(0...1) == 0 ? .isOffline : .none,
            endsBehind: number(0...3) == 0 ? UInt64(number(0...60)) : nil
        )
    }

    private mutating func publication(at now: Timestamp) -> StoredPublication {
        let expiry = number(0...3) == 0 ? PublicationDetails(expiresAt: now.advanced(by: .seconds(number(0...2)))) : nil
        let padding = String(repeating: "x", count: number(0...9) == 0 ? 800 : 0)
        let text = number(0...6) == 0 ? "" : "\(number(0...999))" + padding
        return SessionWorld.publication(text, topic: "t\(number(1...4))", expiry)
    }
}
