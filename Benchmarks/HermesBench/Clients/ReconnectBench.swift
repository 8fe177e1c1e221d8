// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes

/// `hermes-bench reconnect`: measures how SDK clients reconnect after a restart of their server.
struct ReconnectBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reconnect",
        abstract: "SDK clients come back after a restart of the server: spread over the window, with nothing lost.",
        discussion: """
            All clients log in by token and stay. Then the server is restarted, by --restart-command or by hand. While \
            it is away, one client's outbox takes a message to each of the others. The command fails unless all \
            clients come back, no second sees more than --limit times the even rate of logins, and each message \
            arrives once. With fewer than some hundred clients, chance alone can exceed the limit.

            Each client needs an account; --accounts keeps them for the next time. The server must keep its data and \
            allow this many connections from one address; both processes need this many open files:

              ulimit -n 25000
              hermes serve --limits.connectionsPerAddress 20000

            Examples:
              hermes-bench reconnect --clients 5000 --accounts idle.accounts
              hermes-bench reconnect --clients 1000 --accounts idle.accounts --restart-command 'systemctl restart hermes'
            """
    )

    @Option(help: ArgumentHelp("How many clients.", valueName: "n"))
    var clients = 1000

    @Option(help: ArgumentHelp("Restarts the server and returns; by default you do.", valueName: "command"))
    var restartCommand: String?

    @Option(help: ArgumentHelp("The server's window for coming back.", valueName: "seconds"))
    var window: Double = 15

    @Option(help: ArgumentHelp("How many times the even rate one second may see.", valueName: "factor"))
    var limit: Double = 1.5

    @Option(help: ArgumentHelp("Give up after this long.", valueName: "seconds"))
    var patience: Double = 180

    @OptionGroup var accounts: BenchAccountOptions
    @OptionGroup(title: "Measuring") var options: BenchOptions

    func validate() throws {
        guard (2...100_000).contains(clients) else { throw ValidationError("--clients \(clients): 2 to 100000") }
        guard (1...3600).contains(window) else { throw ValidationError("--window \(window): 1 to 3600") }
        guard (1...100).contains(limit) else { throw ValidationError("--limit \(limit): from 1") }
    }

    func run() async throws {
        let address = options.address(defaultPort: 9000)
        try await reportingFailures(server: address) {
            let book = BenchAccounts(file: accounts.file, options: options, registration: address)
            let accounts = try await book.get(clients)
            let fleet = try ReconnectFleet(accounts, server: address)
            do {
                try await measure(fleet)
                await fleet.close()
            } catch {
                await fleet.close()
                throw error
            }
        }
    }

    private func measure(_ fleet: ReconnectFleet) async throws {
        options.progress("logging \(clients) clients in")
        try await fleet.logIn()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await fleet.watch() }
            options.progress(
                restartCommand.map { "all are in; restarting: \($0)" } ?? "all are in; restart the server now"
            )
            if let restartCommand { try Self.start(restartCommand) }
            try await wait(for: "the server to go away", fleet) { $0.lost >= fleet.count }
            options.progress("all lost their connection; sending while the server is away")
            try await fleet.send()
            try await wait(for: "all clients to come back", fleet) { $0.back >= fleet.count }
            try await wait(for: "all messages to arrive", fleet) { $0.arrived >= fleet.count - 1 }
            group.cancelAll()
        }
        try report(fleet)
    }

    private func report(_ fleet: ReconnectFleet) throws {
        let record = fleet.record
        let even = Double(fleet.count) / window
        let peak = Double(record.peakPerSecond) / even
        var report = BenchReport("reconnect")
        report.add("clients", "clients", fleet.count)
        report.add("window_seconds", "window", window, digits: 1, "s")
        report.add("away_seconds", "first login after", record.firstSeconds, digits: 2, "s")
        report.add("back_seconds", "last login after", record.lastSeconds, digits: 2, "s")
        report.add("even_per_second", "even rate", even, digits: 1, "logins a second")
        report.add("peak_per_second", "busiest second", record.peakPerSecond, "logins")
        report.add("peak_ratio", "busiest to even", peak, digits: 2)
        report.add("messages", "messages arrived", record.arrived)
        report.add("duplicates", "arrived twice", record.duplicates)
        report.add("gaps", "told to be lost", record.gaps)
        report.print(asJSON: options.json)
        guard peak <= limit else {
            throw BenchFailure("the busiest second saw more than \(limit) times the even rate")
        }
        guard record.duplicates == 0, record.gaps == 0, record.arrived == fleet.count - 1 else {
            throw BenchFailure("messages were lost or duplicated")
        }
    }

    private func wait(
        for what: String,
        _ fleet: ReconnectFleet,
        _ isDone: (ReconnectFleet.Record) -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + .seconds(patience)
        while true {
            let record = fleet.record
            if isDone(record) { return }
            guard ContinuousClock.now < deadline else {
                let example = record.away.first.map { "; \(record.away.count) are away, for example \($0)" } ?? ""
                throw BenchFailure("waited \(Int(patience)) s for \(what) in vain\(example)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private static func start(_ command: String) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", command]
        process.standardOutput = FileHandle.standardError
        try process.run()
    }
}
