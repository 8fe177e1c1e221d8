// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesGateways
import HermesTestKit
import Testing

@testable import HermesServer

/// A network loses and repeats single events. Over each carrier, the client's statistics report exactly these events.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct InjectedFaultsTests {
    /// In each burst, the events after a lost event are available at once, so the client notices the loss.
    private static let burst = 12
    private static let bursts = 3

    private static func configuration(_ address: ServerAddress, device: String) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: address,
            device: DeviceDescription(id: device, appVersion: "7.1")
        )
        configuration.conditions = DeviceConditions()
        // The upload must not happen before everything has arrived.
        configuration.statisticsInterval = .seconds(3600)
        return configuration
    }

    /// Returns the same faults for the same seed. The last event of a burst is never lost, because nothing would show
    /// its loss.
    private static func entryVerdict(_ seed: UInt64) -> @Sendable (UInt64) -> EventFaults.Verdict {
        { seq in
            var random = SplitMix(state: seed &* 0x2545_F491_4F6C_DD1D &+ seq)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3 where !seq.isMultiple(of: UInt64(burst)): return .lose
            case 3..<6: return .twice
            default: return .pass
            }
        }
    }

    @Test(
        arguments: 1...3 as ClosedRange<UInt64>,
        Carrier.allCases
    )
    func `lost and repeated inbox entries are what the statistics report`(seed: UInt64, carrier: Carrier) async throws {
        try await withServer { server in
            let faults = carrier.eventFaults(burst: Self.burst, entry: Self.entryVerdict(seed))
            let network = try await FaultyProxy(to: server.port(carrier.listener), events: faults)
            var configuration = Self.configuration(carrier.address(port: network.port), device: "ann")
            configuration.localStore = MemoryLocalStore()
            let ann = try HermesClient(configuration)
            let session = try await ann.logIn(.register(nickName: "ann", password: "secret"))
            let bob = try HermesClient(Self.configuration(carrier.address(of: server), device: "bob"))
            _ = try await bob.logIn(.register(nickName: "bob", password: "secret"))
            var texts: [String] = []
            for burst in 0..<Self.bursts {
                for number in 0..<Self.burst {
                    try await bob.send("\(burst * Self.burst + number)", to: .user(session.uid))
                }
                for await event in ann.events {
                    texts.append(event.message?.text ?? "\(event.kind)")
                    if texts.count == (burst + 1) * Self.burst { break }
                }
            }
            #expect(texts == (0..<Self.bursts * Self.burst).map { "\($0)" })
            await bob.close()
            let reported = try await Self.report(of: ann, configuration, session, at: carrier, of: server) {
                $0.received >= Self.bursts * Self.burst
            }
            let injected = faults.counts
            #expect(!injected.lost.isEmpty && injected.repeated > 0, "seed \(seed) tests nothing")
            #expect(reported.received == Self.bursts * Self.burst)
            #expect(reported.gaps == injected.lost.count && reported.repaired == injected.lost.count)
            #expect(reported.duplicates == injected.repeated)
            #expect(reported.lost == 0)
            try await network.stop()
        }
    }

    @Test(arguments: Carrier.allCases)
    func `lost pushes to a room are what the statistics report`(carrier: Carrier) async throws {
        try await withServer { server in
            let lost: Set<UInt64> = [2, 5, 6, 9]
            let faults = carrier.eventFaults(entry: { _ in .pass }, push: { lost.contains($0) ? .lose : .pass })
            let network = try await FaultyProxy(to: server.port(carrier.listener), events: faults)
            var configuration = Self.configuration(carrier.address(port: network.port), device: "ann")
            configuration.localStore = MemoryLocalStore()
            let ann = try HermesClient(configuration)
            let session = try await ann.logIn(.register(nickName: "ann", password: "secret"))
            let core = try server.assembly().core
            let room = try #require(RoomName("lobby"))
            var missed: Set<UInt64> = []
            try await ann.enterRoom("lobby", as: RoomUser(name: "Ann")) { events in
                for seq in 1...10 {
                    let notice = try RoomAnnouncement.notice(
                        "\(seq)",
                        to: room,
                        at: core.messenger.time.now(),
                        place: TopicNumbers.Place(epoch: 7, seq: UInt64(seq))
                    )
                    #expect(core.topics.publish(notice))
                }
                for await event in events {
                    if case .missedPushes(_, let numbers) = event.kind { missed.formUnion(numbers) }
                    if case .notice("10") = event.room?.kind { break }
                }
            }
            #expect(missed == lost && faults.counts.lostPushes == lost)
            let reported = try await Self.report(of: ann, configuration, session, at: carrier, of: server) {
                $0.missedPushes > 0
            }
            #expect(reported.missedPushes == lost.count)
            try await network.stop()
        }
    }

    /// Ends a client, and returns the report of its next run, which uses a network without faults.
    private static func report(
        of client: HermesClient,
        _ configuration: HermesClient.Configuration,
        _ session: Session,
        at carrier: Carrier,
        of server: TestServer,
        isComplete: (ReportedDelivery) -> Bool
    ) async throws -> ReportedDelivery {
        await client.close()
        var configuration = configuration
        configuration.server = carrier.address(of: server)
        configuration.statisticsInterval = .milliseconds(20)
        let next = try HermesClient(configuration)
        _ = try await next.logIn(.token(session.token))
        let clock = ContinuousClock()
        let deadline = clock.now + .seconds(20)
        var reported = try server.reported(appVersion: "7.1")
        while !isComplete(reported), clock.now < deadline {
            try await clock.sleep(for: .milliseconds(10))
            reported = try server.reported(appVersion: "7.1")
        }
        await next.close()
        return reported
    }
}
