// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import HermesServer

/// The command `hermes stats`.
struct StatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show the figures of a running server: now, and the mean and the maximum of a period.",
        discussion: """
            The figures are those of the console; docs/console.md explains them. Rates are per second, and sizes are \
            in bytes. With --deliveries, the command shows the reports of clients, by app version and network.

            Examples:
              hermes stats
              hermes stats --period month --json
              hermes stats --deliveries
              hermes stats --deliveries --period day --app-version 2.1
            """
    )

    enum Period: String, ExpressibleByArgument, CaseIterable {
        case hour, day, month

        var text: String {
            switch self {
            case .hour: "1 h"
            case .day: "24 h"
            case .month: "30 days"
            }
        }
    }

    @Flag(help: "Show deliveries, heartbeats and ends of connections as clients report them.")
    var deliveries = false

    @Option(help: "The period to show, up to now; a month has 30 days.")
    var period = Period.hour

    @Option(
        help: "With --deliveries: show only this version of the app; an empty text selects reports without a version."
    )
    var appVersion: String?

    @Option(
        help: "With --deliveries: show only this kind of network; an empty text selects reports without a network."
    )
    var network: String?

    @Flag(help: "Print JSON.")
    var json = false

    @OptionGroup var data: DataOptions

    func validate() throws {
        guard deliveries || (appVersion == nil && network == nil) else {
            throw ValidationError("--app-version and --network need --deliveries")
        }
    }

    func run() async throws {
        guard deliveries else {
            let answer = try await Administrator(data).ask(.stats(period: period.rawValue))
            guard case .stats(let stats) = answer else { return }
            return try CommandOutput.print(json ? ViewFormat.json(stats) : ViewFormat.text(stats, period))
        }
        let answer = try await Administrator(data).ask(.deliveries(period: period.rawValue))
        guard case .deliveries(let all) = answer else { return }
        let wanted = all.filter {
            (appVersion ?? $0.appVersion) == $0.appVersion && (network ?? $0.network) == $0.network
        }
        try CommandOutput.print(json ? ViewFormat.json(wanted) : ViewFormat.text(wanted, period))
    }
}

extension ViewFormat {
    static func text(_ stats: ControlStats, _ period: StatsCommand.Period) -> String {
        var lines = [
            "hermes \(stats.version), up for \(Duration.seconds(stats.uptimeSeconds).formatted()), "
                + "\(stats.online) devices online",
            stats.listeners.map { "\($0.name) \($0.host):\($0.port)" }.joined(separator: ", "), "",
        ]
        guard !stats.figures.isEmpty else { return (lines + ["no figures yet"]).joined(separator: "\n") }
        let rows = stats.figures.map { [$0.name, number($0.now), number($0.mean), number($0.maximum)] }
        let titles = ["figure", "now", "mean of \(period.text)", "maximum of \(period.text)"]
        lines.append(table([titles] + rows, rightAligned: [1, 2, 3]))
        return lines.joined(separator: "\n")
    }

    static func text(_ all: [ControlDeliveries], _ period: StatsCommand.Period) -> String {
        guard !all.isEmpty else { return "no client has reported in the last \(period.text)" }
        func part(_ title: String, _ columns: [(title: String, figure: String)]) -> String {
            let rows = all.map { group in
                [name(group.appVersion), name(group.network)]
                    + columns.map { group.counts[$0.figure].map(String.init) ?? "-" }
            }
            let titles = ["app version", "network"] + columns.map(\.title)
            return "\(title)\n\(table([titles] + rows, rightAligned: Set(2..<2 + columns.count)))\n"
        }
        let deliveries = [
            ("reports", "reports"), ("received", "received"), ("in 1 s", "within_1s"), ("in 10 s", "within_10s"),
            ("later", "later"), ("never", "never"), ("repeated", "duplicates"), ("gaps", "gaps"),
            ("repaired", "repaired"), ("topics missed", "topic_missed"),
        ]
        let heartbeats = [
            ("30 s", "heartbeat_30s"), ("60 s", "heartbeat_60s"), ("120 s", "heartbeat_120s"),
            ("300 s", "heartbeat_300s"), ("600 s", "heartbeat_600s"), ("longer", "heartbeat_longer"),
        ]
        let ends = [
            ("by the server", "ended_closed"), ("broken", "ended_reset"), ("heartbeat", "ended_heartbeat"),
            ("network changed", "ended_network"),
        ]
        let titled = Set((deliveries + heartbeats + ends).map(\.1))
        let others = Set(all.flatMap(\.counts.keys)).subtracting(titled).sorted().map { ($0, $0) }
        return [
            part("deliveries of \(period.text), as clients report them", deliveries + others),
            part("reports by heartbeat interval", heartbeats),
            part("ends of connections", ends),
        ].joined(separator: "\n")
    }

    /// Returns the name of an app version or network for the table. Clients choose these names. The server accepts
    /// only printable names.
    private static func name(_ text: String) -> String { text.isEmpty ? "-" : printable(text) }
}
