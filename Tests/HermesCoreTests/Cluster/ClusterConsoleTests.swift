// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// The consoles and the statistics of several cores.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClusterConsoleTests {
    private static let password = "correct horse"

    private func services(_ world: ClusterWorld) -> [AdministratorService] {
        world.cores.map { core in
            AdministratorService(
                store: world.store,
                time: world.time,
                throttle: LoginThrottle.Limits(failuresPerSource: 3, failuresPerAddress: 5),
                passwordCost: PasswordTests.cheap,
                cluster: core.cluster
            )
        }
    }

    private func logIn(
        _ name: String,
        _ password: String = Self.password,
        to service: AdministratorService
    ) async throws -> TokenHash {
        let result = try await service.logIn(
            name: name,
            password: password,
            code: nil,
            address: "192.0.2.1",
            replacing: nil
        )
        guard case .session(let token, _) = result else { throw HermesError(.internalError, "a code is needed") }
        return token.hash
    }

    @Test
    func `the sessions of an administrator with other rights end on all cores`() async throws {
        let world = try await ClusterWorld(people: 1)
        let services = services(world)
        for name in ["ann", "bob"] {
            _ = try await services[0].create(name: name, role: .administrator, password: Self.password)
        }
        let ann = try await logIn("ann", to: services[1])
        let bob = try await logIn("bob", to: services[1])
        try await services[2].setRole(of: AdministratorName("ann"), to: .viewer)
        world.network.settle()
        #expect(services[1].session(ann, isUse: false) == nil)
        #expect(services[1].session(bob, isUse: false) != nil)
        await world.shutdown()
    }

    @Test(arguments: ["role", "password", "second factor", "removal"])
    func `a change whose message was lost is found in the record`(_ kind: String) async throws {
        let world = try await ClusterWorld(people: 1)
        let services = services(world)
        for name in ["ann", "bob"] {
            _ = try await services[0].create(name: name, role: .administrator, password: Self.password)
        }
        let ann = try await logIn("ann", to: services[1])
        let bob = try await logIn("bob", to: services[1])
        world.network.set(.init(lost: 100, repeated: 0, unanswered: 0, maxDelayMilliseconds: 0))
        let name = try AdministratorName("ann")
        switch kind {
        case "role": try await services[2].setRole(of: name, to: .viewer)
        case "password": try await services[2].setPassword(of: name, to: "another horse")
        case "second factor": _ = try await services[2].newSecondFactor(of: name)
        default: try await services[2].remove(name)
        }
        await world.pass()
        #expect(services[1].session(ann, isUse: false) != nil)
        world.network.set(.none)
        // Another task compares the sessions with the record.
        while services[1].session(ann, isUse: false) != nil {
            await world.pass()
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(services[1].session(bob, isUse: false) != nil)
        await world.shutdown()
    }

    @Test
    func `failed logins to one console count at the others`() async throws {
        let world = try await ClusterWorld(people: 1)
        let services = services(world)
        _ = try await services[0].create(name: "ann", role: .viewer, password: Self.password)
        for _ in 0..<3 {
            await #expect(throws: HermesError.self) { try await logIn("ann", "wrong", to: services[0]) }
        }
        world.network.settle()
        for service in services {
            let error = await #expect(throws: HermesError.self) { try await logIn("ann", to: service) }
            #expect(error?.code == .loginDelayed)
        }
        await world.shutdown()
    }

    @Test
    func `clients' reports count on all cores`() async throws {
        let world = try await ClusterWorld(people: 1)
        var counts = ReportCounts()
        counts[.received] = 1
        let network = try ClientReport.Network(
            label: "wifi",
            counts: counts,
            heartbeat: .seconds(240),
            isHeartbeatStable: true
        )
        let now = world.time.now()
        for (index, core) in world.cores.enumerated() {
            let report = try ClientReport(appVersion: "1.\(index)", networks: [network])
            let user = try user(1)
            _ = core.clientStatistics.add(report, of: user, learnsHeartbeats: true, now: now)
        }
        world.network.settle()
        for core in world.cores {
            let versions = core.clientStatistics.versions(.day, now: now).map(\.appVersion)
            #expect(versions.sorted() == ["1.0", "1.1", "1.2"])
        }
        await world.shutdown()
    }

    @Test
    func `the figures of all cores are added, but not those of a core that has gone`() async throws {
        let world = try await ClusterWorld(people: 1)
        func exchange() -> [Int] {
            let sums = world.living.map { index in
                var figures = BrokerFigures()
                figures.connected = [1, 10, 100][index]
                return world.cores[index].cluster?.exchange(figures).connected ?? 0
            }
            world.network.settle()
            return sums
        }
        _ = exchange()
        #expect(exchange() == [111, 111, 111])
        try world.vanish(1)
        for _ in 0..<12 { await world.pass() }
        #expect(exchange() == [101, 101])
        await world.shutdown()
    }
}
