// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `hermes-bench topics`: measures how fast topics are matched and publications are delivered, without any network.
struct TopicBench: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics",
        abstract: "Measure subscriptions, matching and fan-out inside one process.",
        discussion: """
            Needs no server. Figures are processor time. scripts/bench-topics runs it with a counter of allocations.
            """
    )

    @Option(help: "How many subscriptions there are, most with wildcards.")
    var subscriptions: Int = 1_000_000

    @Option(help: "How many event loops know of the subscriptions.")
    var loops: Int = 1

    @Option(help: "How many operations of each kind are measured.")
    var operations: Int = 1_000_000

    func validate() throws {
        guard (1...100_000_000).contains(subscriptions) else {
            throw ValidationError("--subscriptions \(subscriptions): from 1")
        }
        guard (1...256).contains(loops) else { throw ValidationError("--loops \(loops): from 1 to 256") }
        guard (1...1_000_000_000).contains(operations) else {
            throw ValidationError("--operations \(operations): from 1")
        }
    }

    func run() {
        print(TopicMeasurement(subscriptions: subscriptions, loops: loops, operations: operations).run())
    }
}
