// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import NIOCore

/// `hermes-bench delimited`: measures 1:1 messages over the native protocol.
struct DelimitedBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delimited",
        abstract: "1:1 messages over Delimited: acknowledged (committed) messages per second.",
        discussion: MessageBenchOptions.discussion("delimited")
    )

    @OptionGroup(title: "Load") var load: MessageBenchOptions
    @OptionGroup(title: "Measuring") var options: BenchOptions

    func run() async throws { try await load.run(.delimited, options) }
}

/// `hermes-bench impb`: measures 1:1 messages over IMPB.
struct IMPBBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "impb",
        abstract: "1:1 messages over IMPB: acknowledged (committed) messages per second.",
        discussion: MessageBenchOptions.discussion("impb")
    )

    @OptionGroup(title: "Load") var load: MessageBenchOptions
    @OptionGroup(title: "Measuring") var options: BenchOptions

    func run() async throws { try await load.run(.impb, options) }
}

/// The load of a message benchmark: pairs of accounts, one of which sends to the other.
struct MessageBenchOptions: ParsableArguments {
    static func discussion(_ name: String) -> String {
        """
        In each pair one account sends and one receives. A sender has --window messages under way; a receipt, which
        confirms the commit, releases the next. Receivers check order, loss and duplicates by the messages' numbers and
        by the inbox seqs; both sides acknowledge what they get.

        Examples:
          hermes-bench \(name) --pairs 20 --window 32 --accounts bench.accounts --pid 4711
          hermes-bench \(name) --pairs 1 --window 1 --json
        """
    }

    @Option(help: ArgumentHelp("How many pairs.", valueName: "n"))
    var pairs = 20

    @Option(help: ArgumentHelp("How many unacknowledged messages a sender may have.", valueName: "n"))
    var window = 32

    @Option(help: ArgumentHelp("The length of a text.", valueName: "bytes"))
    var bytes = 64

    @Option(help: ArgumentHelp("The server's Delimited port, to register accounts.", valueName: "port"))
    var registrationPort = 9000

    @OptionGroup var accounts: BenchAccountOptions

    func validate() throws {
        guard (1...10_000).contains(pairs) else { throw ValidationError("--pairs \(pairs): 1 to 10000") }
        guard (1...10_000).contains(window) else { throw ValidationError("--window \(window): 1 to 10000") }
        guard (18...32_768).contains(bytes) else { throw ValidationError("--bytes \(bytes): 18 to 32768") }
    }

    func run(_ dialect: BenchDialect, _ options: BenchOptions) async throws {
        let address = options.address(defaultPort: dialect.defaultPort)
        try await reportingFailures(server: address) {
            var registration = address
            if dialect != .delimited { registration.port = registrationPort }
            let book = BenchAccounts(file: accounts.file, options: options, registration: registration)
            try await measure(dialect, options, BenchTransport(address), try await book.get(2 * pairs))
        }
    }

    private func measure(
        _ dialect: BenchDialect,
        _ options: BenchOptions,
        _ transport: BenchTransport,
        _ accounts: [BenchAccount]
    ) async throws {
        let probe = options.pid.flatMap { ServerProbe(pid: $0) }
        let (window, bytes) = (window, bytes)
        let run = try await BenchRun(on: transport.loop) {
            MessageRun(dialect: dialect, window: window, textBytes: bytes)
        }
        options.progress("logging \(accounts.count) connections in")
        // Connections with even numbers are receivers. Connections with odd numbers are senders.
        let channels = try await transport.connect(0..<accounts.count) { index in
            let (sender, receiver) = (accounts[index / 2 * 2], accounts[index / 2 * 2 + 1])
            return index.isMultiple(of: 2)
                ? PairHandler(run: run.bound.value, account: receiver, peer: nil)
                : PairHandler(run: run.bound.value, account: sender, peer: receiver.uid)
        }
        _ = try await run.wait(seconds: 15) { $0.loggedIn == accounts.count || $0.failures > 0 }
        let failure = try await run.on { $0.firstFailure }
        if !failure.isEmpty {
            throw BenchFailure("a login failed: \(failure); accounts of another server? remove the --accounts file")
        }
        // Inbox entries that remain from an earlier run arrive now. They are not counted.
        try await Task.sleep(for: .milliseconds(300))
        try await run.on { $0.start() }
        options.progress("warming up for \(options.warmup) s, measuring for \(options.seconds) s")
        try await Task.sleep(for: .seconds(options.warmup))
        try await run.on { $0.beginMeasuring() }
        let use = try await ServerUse.during(probe) {
            try await Task.sleep(for: .seconds(options.seconds))
            try await run.on { $0.endMeasuring() }
        }
        _ = try await run.wait(seconds: 15) { $0.isDrained }
        let result = try await run.on { $0.result }
        // Give the last acknowledgements time to be sent.
        try await Task.sleep(for: .milliseconds(120))
        for channel in channels { channel.close(promise: nil) }
        var report = BenchReport(dialect.rawValue)
        report.add("pairs", "pairs", pairs)
        report.add("window", "messages on their way, per pair", window)
        report.add("bytes", "text", bytes, "bytes")
        report.add("seconds", "measured for", result.seconds, digits: 2, "s")
        report.add("acknowledged", "acknowledged", result.acknowledged)
        let rate = Double(result.acknowledged) / result.seconds
        report.add("acknowledged_per_second", "rate", rate, digits: 0, "messages/s")
        report.add("delivered", "delivered", result.delivered)
        report.add("lost", "lost", result.lost)
        report.add("duplicates", "duplicates", result.duplicates)
        report.add("out_of_order", "out of order", result.disorders)
        report.add("seq_holes", "holes in inbox seqs", result.holes)
        report.add("refused", "refused", result.failures)
        if !result.firstFailure.isEmpty { report.add("first_failure", "first refusal", result.firstFailure) }
        report.add("acknowledge_latency", "to the receipt", latencies: result.roundTrip)
        report.add("delivery_latency", "to the receiver", latencies: result.endToEnd)
        use?.add(to: &report, per: "message", count: result.acknowledged)
        report.print(asJSON: options.json)
        let isGood =
            result.lost == 0 && result.duplicates == 0 && result.disorders == 0 && result.holes == 0
            && result.failures == 0
        if !isGood { throw ExitCode(1) }
    }
}
