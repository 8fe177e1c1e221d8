// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import Synchronization

/// `hermes-bench heartbeat`: measures how long a connection to a server may be silent before the network ends it.
struct HeartbeatBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "heartbeat",
        abstract: "Keep one connection with only heartbeats, at a fixed or an adaptive interval.",
        discussion: """
            Reports how often the connection died and, with --longest, the interval that the client found.

            Examples:
              hermes-bench heartbeat --interval 120 --seconds 600 --accounts bench.accounts
              hermes-bench heartbeat --interval 30 --shortest 25 --longest 580 --seconds 7200 --accounts bench.accounts
            """
    )

    @Option(help: ArgumentHelp("The interval of heartbeats, or the first guess.", valueName: "seconds"))
    var interval: Double = 120

    @Option(help: ArgumentHelp("Adapt the interval, and not below this.", valueName: "seconds"))
    var shortest: Double = 25

    @Option(help: ArgumentHelp("Adapt the interval, and not above this.", valueName: "seconds"))
    var longest: Double?

    @Option(help: ArgumentHelp("Lengthen the interval by this.", valueName: "seconds"))
    var step: Double = 60

    @Option(help: ArgumentHelp("Shorten the interval by this.", valueName: "seconds"))
    var retreat: Double = 80

    @Option(help: ArgumentHelp("Lengthen the interval after so many answers.", valueName: "n"))
    var successes = 5

    @Option(help: ArgumentHelp("How long to wait for an answer.", valueName: "seconds"))
    var answer: Double = 8

    @OptionGroup var accounts: BenchAccountOptions
    @OptionGroup(title: "Measuring") var options: BenchOptions

    func validate() throws {
        guard (1...3600).contains(interval) else { throw ValidationError("--interval \(interval): 1 to 3600") }
        guard (1...3600).contains(shortest), shortest <= longest ?? 3600 else {
            throw ValidationError("--shortest \(shortest): 1 to 3600, and no more than --longest")
        }
        guard (0.1...60).contains(answer) else { throw ValidationError("--answer \(answer): 0.1 to 60") }
    }

    func run() async throws {
        let address = options.address(defaultPort: 9000)
        try await reportingFailures(server: address) {
            let book = BenchAccounts(file: accounts.file, options: options, registration: address)
            guard let account = try await book.get(1).first else { return }
            try await measure(account, address)
        }
    }

    private func measure(_ account: BenchAccount, _ address: ServerAddress) async throws {
        var heartbeat = HeartbeatPolicy(interval: .seconds(interval), answerTimeout: .seconds(answer), tries: 2)
        heartbeat.adaptation = longest.map { longest in
            HeartbeatAdaptation(
                shortest: .seconds(shortest),
                longest: .seconds(longest),
                step: .seconds(step),
                retreat: .seconds(retreat),
                successesBeforeStep: successes
            )
        }
        let conditions = DeviceConditions()
        // In the foreground, the interval would never grow beyond its initial value.
        conditions.appState = .background
        var configuration = HermesClient.Configuration(server: address, device: DeviceDescription(id: account.device))
        configuration.heartbeat = heartbeat
        configuration.conditions = conditions
        configuration.statisticsInterval = nil
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.seconds(0.5)])
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token(account.token))
        let seconds = options.seconds
        let watch = HeartbeatWatch()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await watch.follow(client) }
            group.addTask { try await Task.sleep(for: .seconds(seconds)) }
            try await group.next()
            group.cancelAll()
        }
        let isLive = await client.states.first { _ in true } == .live
        await client.close()
        let learned = conditions.heartbeatStore.learned(of: conditions.networkPath.label)
        var report = BenchReport("heartbeat")
        report.add("seconds", "measured for", seconds, digits: 1, "s")
        report.add("deaths", "connections that died", watch.deaths)
        report.add("is_live", "connected at the end", isLive ? "yes" : "no")
        report.add(
            "interval_seconds",
            "interval",
            (learned?.interval ?? .seconds(interval)) / .seconds(1),
            digits: 1,
            "s"
        )
        report.add("is_stable", "settled", learned?.isStable == true ? "yes" : "no")
        report.print(asJSON: options.json)
    }
}

/// Counts the ended connections of a client, and reports why they ended.
///
/// State: the count, in a `Mutex`.
private final class HeartbeatWatch: Sendable {
    private let count = Mutex(0)

    var deaths: Int { count.withLock { $0 } }

    func follow(_ client: HermesClient) async {
        let start = ContinuousClock.now
        var isLive = false
        for await state in client.states {
            switch state {
            case .live:
                isLive = true
            case .lost(let error), .waiting(let error, _), .paused(let error):
                guard isLive else { continue }
                isLive = false
                count.withLock { $0 += 1 }
                let seconds = Int((ContinuousClock.now - start) / .seconds(1))
                BenchFailure.tell("after \(seconds) s: \(error.message)")
            case .idle, .connecting, .authenticating, .stopped:
                continue
            }
        }
    }
}
