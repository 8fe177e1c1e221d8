// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesClient
import HermesTestKit
import Testing

/// Two people talk at once through networks that cut, delay, forget and go silent. A failure names its seed.
@Suite(.timeLimit(.minutes(2)))
struct FaultyNetworkTests {
    /// HERMES_FAULT_SEEDS says how many; a range of them, for example 7...7, runs one again.
    static let seeds: ClosedRange<UInt64> = {
        let bounds = (ProcessInfo.processInfo.environment["HERMES_FAULT_SEEDS"] ?? "1...8").split(separator: "...")
        let numbers = bounds.compactMap { UInt64($0) }
        guard let first = numbers.first, let last = numbers.last else { return 1...8 }
        return numbers.count == 1 ? 1...max(1, last) : min(first, last)...last
    }()

    static let messages = 60

    @Test(.serialized, arguments: seeds)
    func `every message comes once and in order, or its loss is told`(seed: UInt64) async throws {
        try await withServer { server in
            let port = server.port("delimited")
            let uids = try await [Self.register("ann", port: port), Self.register("bob", port: port)]
            let first = FaultSchedule(seed: seed &* 2, faultyConnections: 10)
            let second = FaultSchedule(seed: seed &* 2 &+ 1, faultyConnections: 10)
            let annNetwork = try await FaultyProxy(to: port) { first.fault($0) }
            let bobNetwork = try await FaultyProxy(to: port) { second.fault($0) }
            let ann = try HermesClient(Self.configuration("ann", port: annNetwork.port))
            let bob = try HermesClient(Self.configuration("bob", port: bobNetwork.port))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (client, name, peer) in [(ann, "ann", uids[1]), (bob, "bob", uids[0])] {
                    group.addTask {
                        _ = try await client.logIn(.password(nickName: name, password: "secret"))
                        for number in 0...Self.messages { try await client.send("\(number)", to: .user(uid: peer)) }
                    }
                    group.addTask { await Self.check(client, name, seed: seed) }
                }
                try await group.waitForAll()
            }
            // Otherwise nothing was tested.
            #expect(annNetwork.connectionCount > 1 && bobNetwork.connectionCount > 1)
            await ann.close()
            await bob.close()
            try await annNetwork.stop()
            try await bobNetwork.stop()
        }
    }

    /// Takes messages until the last one: each is the next, but for those whose loss was told.
    private static func check(_ client: HermesClient, _ name: String, seed: UInt64) async {
        var next = 0
        var missed = 0
        for await event in client.events {
            switch event {
            case .gap(let from, let to):
                missed += Int(to - from) + 1
            case .message(let message):
                let number = Int(message.text ?? "") ?? -1
                #expect(number == next || (number > next && number - next <= missed), "seed \(seed), \(name)")
                missed -= max(0, number - next)
                next = number + 1
                if number == Self.messages { return }
            default:
                break
            }
        }
        Issue.record("the events of \(name) ended at \(next), seed \(seed)")
    }

    private static func register(_ name: String, port: Int) async throws -> UInt32 {
        try await HermesClient.withClient(
            configuration(name, port: port),
            .register(nickName: name, password: "secret")
        ) { _, session in session.uid }
    }

    private static func configuration(_ name: String, port: Int) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: ServerAddress(port: port),
            device: DeviceDescription(id: "\(name)-phone")
        )
        configuration.conditions = DeviceConditions()
        configuration.heartbeat = HeartbeatPolicy(
            interval: .milliseconds(40),
            answerTimeout: .milliseconds(250),
            tries: 2
        )
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(10)], maxAdvisedWindow: .zero)
        // Longer than a server that shares its cores with other tests needs, shorter than a test may take.
        configuration.loginTimeout = .milliseconds(400)
        return configuration
    }
}
