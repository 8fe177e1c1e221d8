// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct HeartbeatStoreTests {
    @Test func `a file keeps what was learned, and a broken one is an empty one`() throws {
        let path = NSTemporaryDirectory() + "/hermes-heartbeats-\(UUID()).json"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let learned = LearnedHeartbeat(interval: .milliseconds(160_500), isStable: true, failures: 1, changedAt: 77)
        let store = FileHeartbeatStore(path: path)
        #expect(store.learned(of: "wifi") == nil)
        store.remember(learned, of: "wifi \"é\n")
        store.flush()
        #expect(FileHeartbeatStore(path: path).learned(of: "wifi \"é\n") == learned)
        try Data("{".utf8).write(to: URL(filePath: path))
        #expect(FileHeartbeatStore(path: path).learned(of: "wifi \"é\n") == nil)
    }

    @Test func `of many networks the newest are kept`() {
        let store = MemoryHeartbeatStore()
        for number in 1...30 {
            store.remember(LearnedHeartbeat(interval: .seconds(60), changedAt: Int64(number)), of: "\(number)")
        }
        #expect(Set(store.all.keys) == Set((11...30).map(String.init)))
        // An entry that was never changed is kept at least until the next entry is added.
        store.remember(LearnedHeartbeat(interval: .seconds(60)), of: "new")
        #expect(store.learned(of: "new") != nil)
    }

    @Test func `a client keeps what it learns`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .ping: connection.send(.pong(Hermes_V1_Pong()), id: packet.id)
            default: break
            }
        }
        let conditions = DeviceConditions()
        conditions.appState = .background
        conditions.networkPath = NetworkPath(label: "wifi")
        conditions.heartbeatStore = Keeping(LearnedHeartbeat(interval: .seconds(1), successes: 4, changedAt: 1))
        var configuration = HermesClient.Configuration.fake(server)
        configuration.conditions = conditions
        configuration.heartbeat = HeartbeatPolicy(
            interval: .seconds(100),
            adaptation: HeartbeatAdaptation(shortest: .seconds(1), longest: .seconds(50))
        )
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let store = try #require(conditions.heartbeatStore as? Keeping)
        for await (network, learned) in store.remembered {
            #expect(network == "wifi")
            #expect(learned.interval == .seconds(50))
            #expect(learned.changedAt > 1_700_000_000)
            break
        }
        await client.close()
        try await server.stop()
    }

    /// A store that returns the same entry for every network, and reports the entries to remember.
    final class Keeping: HeartbeatStore {
        let remembered: AsyncStream<(String, LearnedHeartbeat)>
        private let continuation: AsyncStream<(String, LearnedHeartbeat)>.Continuation
        private let known: LearnedHeartbeat

        init(_ known: LearnedHeartbeat) {
            self.known = known
            (remembered, continuation) = AsyncStream.makeStream()
        }

        func learned(of network: String) -> LearnedHeartbeat? { known }
        func remember(_ learned: LearnedHeartbeat, of network: String) { continuation.yield((network, learned)) }
    }
}

extension FileHeartbeatStore {
    /// Waits until everything is in the file.
    fileprivate func flush() { queue.sync {} }
}
