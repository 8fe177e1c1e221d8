// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesTestKit
import Testing

/// Two people send messages at the same time, over networks that cut and delay connections, drop their state, become
/// silent, and lose and repeat single events. They send through their outboxes, even while they are offline. In every
/// second seed, one of them waits for each receipt instead. In two thirds of the seeds, the app of the other person
/// ends and starts again. A failure message contains its seed and carrier.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct FaultyNetworkTests {
    /// The seeds. HERMES_FAULT_SEEDS sets their number (Interop/schedules). It may also be a range: for example, 7...7
    /// repeats one seed.
    static let seeds: ClosedRange<UInt64> = {
        let bounds = (ProcessInfo.processInfo.environment["HERMES_FAULT_SEEDS"] ?? "1...8").split(separator: "...")
        let numbers = bounds.compactMap { UInt64($0) }
        guard let first = numbers.first, let last = numbers.last else { return 1...8 }
        return numbers.count == 1 ? 1...max(1, last) : min(first, last)...last
    }()

    /// The carriers. HERMES_FAULT_CARRIERS selects some of them, for example "mqtt webSocket".
    static let carriers: [Carrier] = {
        let named = (ProcessInfo.processInfo.environment["HERMES_FAULT_CARRIERS"] ?? "").split(separator: " ")
        return named.isEmpty ? Carrier.allCases : Carrier.allCases.filter { named.contains("\($0)"[...]) }
    }()

    static let messages = 60
    /// The number of messages that are sent before the app may end. Half of them are sent offline.
    static let firstMessages = 40

    /// The carriers run in parallel, because a run mostly waits.
    @Test(.serialized, arguments: seeds)
    func `every message comes once and in order, or its loss is told`(seed: UInt64) async throws {
        try #require(!Self.carriers.isEmpty, "HERMES_FAULT_CARRIERS names no carrier")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for carrier in Self.carriers {
                group.addTask { try await Self.talk(seed: seed, over: carrier) }
            }
            try await group.waitForAll()
        }
    }

    private static func talk(seed: UInt64, over carrier: Carrier) async throws {
        try await FileLocalStoreTests.withPath { path in
            try await withServer { server in
                let ann = try await FaultyPerson(
                    "ann",
                    seed: seed &* 2,
                    server: server,
                    over: carrier,
                    path: path + ".ann"
                )
                let bob = try await FaultyPerson(
                    "bob",
                    seed: seed &* 2 &+ 1,
                    server: server,
                    over: carrier,
                    path: path + ".bob",
                    usesOutbox: seed.isMultiple(of: 2)
                )
                // In one third of the seeds both apps continue, in one third ann's app is killed, and in one third it
                // is closed.
                let end = FaultyPerson.End.allCases[Int(seed % 3)]
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await ann.live(with: bob.uid, ending: end) }
                    group.addTask { try await bob.live(with: ann.uid, ending: .never) }
                    try await group.waitForAll()
                }
                try await ann.finish()
                try await bob.finish()
            }
        }
    }
}

/// One of the two people, with the app that this person uses. Only one task may use it.
private final class FaultyPerson: Sendable {
    enum End: CaseIterable, Sendable {
        case never
        /// The app is killed. The next app continues with the state of the file at this moment.
        case killed
        case closed
    }

    let uid: UserID
    private let name: String
    private let seed: UInt64
    private let token: String
    private let server: TestServer
    private let carrier: Carrier
    private let path: String
    /// Whether messages are sent through the outbox. If not, each message's receipt is awaited before the next message
    /// is sent.
    private let usesOutbox: Bool
    /// The runs of the app.
    private let runs = Log<Run>()

    /// One run of the app, with its own network.
    private struct Run: Sendable {
        let client: HermesClient
        let network: FaultyProxy
        let conditions: DeviceConditions
    }

    /// The texts that the app has received so far.
    private struct Inbox: Sendable {
        var next = 0
        /// The number of messages that may be missing, because their loss was reported.
        var missed = 0
        /// Whether the app was killed while it handled the message before `next`. If so, this message arrives again.
        var repeatsLast = false
    }

    init(
        _ name: String,
        seed: UInt64,
        server: TestServer,
        over carrier: Carrier,
        path: String,
        usesOutbox: Bool = true
    ) async throws {
        self.name = name
        self.seed = seed
        self.server = server
        self.carrier = carrier
        self.path = path
        self.usesOutbox = usesOutbox
        (uid, token) = try await HermesClient.withClient(
            Self.configuration(name, carrier.address(of: server)),
            .register(nickName: name, password: "secret")
        ) { _, session in (session.uid, session.token) }
    }

    /// Sends all messages, and receives all messages of the other person.
    func live(with peer: UserID, ending end: End) async throws {
        var inbox = Inbox()
        let first = try await start(path, seed: seed)
        let before = end == .never ? FaultyNetworkTests.messages + 1 : 5 + Int(seed % 30)
        inbox = try await withThrowingTaskGroup(of: Inbox.self) { [inbox] group in
            group.addTask {
                try await self.send(0..<FaultyNetworkTests.firstMessages / 2, to: peer, by: first)
                // Now the app is certainly offline.
                if self.usesOutbox { first.conditions.appState = .suspended }
                try await self.send(
                    FaultyNetworkTests.firstMessages / 2..<FaultyNetworkTests.firstMessages,
                    to: peer,
                    by: first
                )
                first.conditions.appState = .foreground
                if end == .never { try await self.sendRest(to: peer, by: first) }
                return inbox
            }
            group.addTask { await self.receive(inbox, until: before, by: first) }
            return try await group.reduce(inbox) { $0.next > $1.next ? $0 : $1 }
        }
        guard end != .never else { return }
        if end == .closed {
            await first.client.close()
        } else {
            try await first.network.stop()
            inbox.repeatsLast = true
        }
        try FileManager.default.copyItem(atPath: path, toPath: path + ".next")
        let second = try await start(path + ".next", seed: seed &+ 0x1_0000)
        try await withThrowingTaskGroup(of: Void.self) { [inbox] group in
            group.addTask { try await self.sendRest(to: peer, by: second) }
            group.addTask { _ = await self.receive(inbox, until: FaultyNetworkTests.messages + 1, by: second) }
            try await group.waitForAll()
        }
    }

    /// Waits until all sent messages are confirmed, and ends.
    func finish() async throws {
        guard let last = runs.all.last else { return }
        let changes = last.client.outbox.changes
        if await !last.client.outbox.entries.isEmpty {
            for await entry in changes {
                if case .failed(let error) = entry.status {
                    Issue.record("\(error), seed \(seed), \(carrier), \(name)")
                }
                if await last.client.outbox.entries.isEmpty { break }
            }
        }
        // With only one connection, nothing would be tested.
        #expect(runs.all.map(\.network.connectionCount).reduce(0, +) > 1)
        for run in runs.all {
            await run.client.close()
            try? await run.network.stop()
        }
    }

    private func start(_ path: String, seed: UInt64) async throws -> Run {
        let schedule = FaultSchedule(seed: seed, faultyConnections: 10)
        let events = carrier.eventFaults(entry: { schedule.verdict(onEntry: $0) })
        let network = try await FaultyProxy(to: server.port(carrier.listener), events: events) { schedule.fault($0) }
        var configuration = Self.configuration(name, carrier.address(port: network.port))
        configuration.store = try FileLocalStore(path: path)
        let run = Run(
            client: try HermesClient(configuration),
            network: network,
            conditions: configuration.conditions
        )
        runs.append(run)
        _ = try await run.client.logIn(.token(token))
        return run
    }

    private func sendRest(to peer: UserID, by run: Run) async throws {
        try await send(FaultyNetworkTests.firstMessages..<FaultyNetworkTests.messages + 1, to: peer, by: run)
    }

    private func send(_ numbers: Range<Int>, to peer: UserID, by run: Run) async throws {
        for number in numbers {
            if usesOutbox {
                try await run.client.send("\(number)", to: .user(peer))
            } else {
                try await run.client.sendDirectly(.text("\(number)"), to: .user(peer))
            }
        }
    }

    /// Receives messages until `count` messages have arrived. Each message must be the next one, except after reported
    /// losses.
    private func receive(_ inbox: Inbox, until count: Int, by run: Run) async -> Inbox {
        var inbox = inbox
        for await event in run.client.events {
            if let gap = event.gap {
                inbox.missed += gap.count
            } else if let message = event.message {
                let number = Int(message.text ?? "") ?? -1
                if inbox.repeatsLast {
                    inbox.repeatsLast = false
                    #expect(number == inbox.next - 1, "after a restart, seed \(seed), \(carrier), \(name)")
                    continue
                }
                let isNext = number == inbox.next || (number > inbox.next && number - inbox.next <= inbox.missed)
                #expect(isNext, "\(number) in place of \(inbox.next), seed \(seed), \(carrier), \(name)")
                inbox.missed -= max(0, number - inbox.next)
                inbox.next = number + 1
                if inbox.next >= count { return inbox }
            }
        }
        var state = ConnectionState.idle
        for await present in run.client.states {
            state = present
            break
        }
        Issue.record("the events of \(name) ended at \(inbox.next), seed \(seed), \(carrier): \(state)")
        return inbox
    }

    private static func configuration(_ name: String, _ address: ServerAddress) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: address,
            device: DeviceDescription(id: "\(name)-phone")
        )
        configuration.conditions = DeviceConditions()
        configuration.heartbeat = HeartbeatPolicy(
            interval: .milliseconds(40),
            answerTimeout: .milliseconds(250),
            tries: 2
        )
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(10)], maxAdvisedWindow: .zero)
        // This is longer than a server needs that shares its cores with other tests, and shorter than a test may take.
        configuration.loginTimeout = .milliseconds(400)
        return configuration
    }
}
