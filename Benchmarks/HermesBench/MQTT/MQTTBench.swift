// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import HermesWire
import NIOCore

/// `hermes-bench mqtt`: measures any MQTT broker under load.
struct MQTTBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mqtt",
        abstract: "Any MQTT broker: rate, latency, loss, duplicates, order, and the cost of a delivery.",
        discussion: """
            Shapes:
              fanout   -P publishers, one topic, -S subscribers (a chat room)
              fanin    -P publishers on a topic each, -S subscribers by a wildcard
              pair     -P pairs, a topic each
              conn     -C idle connections with heartbeats
              churn    -C slots: connect, subscribe, publish, receive, disconnect, again
              offline  -S sessions disconnect, -P publishers send -M messages each, the sessions return

            A closed loop unless -r is given: a publisher has at most -w messages that are undelivered or \
            unacknowledged. With -r messages are due at fixed times, from which their latency counts. Every payload is \
            checked: a message that is lost, duplicate (other than at QoS 1), out of order or sent to the wrong client \
            ends the benchmark with exit code 1.

            Examples:
              hermes-bench mqtt fanout -S 1000 --pid 4711
              hermes-bench mqtt pair -P 20 -q 1 -V 5 -d 10
              hermes-bench mqtt fanin -P 100 -S 1 -r 20000 --json
              hermes-bench mqtt conn -C 5000 --pid 4711
              hermes-bench mqtt offline -S 10 -P 10 -M 1000 -q 2 --port 1884
            """
    )

    @Argument(help: "The shape: \(MQTTBenchShape.allCases.map(\.rawValue).joined(separator: ", ")).")
    var shape: MQTTBenchShape

    @Option(name: [.customShort("P"), .long], help: ArgumentHelp("Publishers, or pairs. Default: 1.", valueName: "n"))
    var publishers = 1

    @Option(
        name: [.customShort("S"), .long],
        help: ArgumentHelp("Subscribers. Default: 100; with fanin 1, with offline 10.", valueName: "n")
    )
    var subscribers: Int?

    @Option(
        name: [.customShort("C"), .long],
        help: ArgumentHelp("conn: connections. Default: 1000. churn: how many at once. Default: 64.", valueName: "n")
    )
    var connections: Int?

    @Option(
        name: [.customShort("M"), .long],
        help: ArgumentHelp("offline: messages of each publisher.", valueName: "n")
    )
    var messages = 1000

    @Option(
        name: [.short, .long],
        help: ArgumentHelp("QoS of publishing and subscribing: 0, 1 or 2.", valueName: "qos")
    )
    var qos: Int?

    @Option(name: [.customShort("s"), .long], help: ArgumentHelp("The length of a payload.", valueName: "bytes"))
    var bytes = 64

    @Option(name: [.short, .long], help: ArgumentHelp("Unfinished messages of a publisher.", valueName: "n"))
    var window = 64

    @Option(name: [.short, .long], help: ArgumentHelp("Publications per second in all.", valueName: "n"))
    var rate: Double?

    @Option(name: [.customShort("V"), .long], help: ArgumentHelp("MQTT 4 (3.1.1) or 5.", valueName: "version"))
    var level = 4

    @Option(
        name: [.customShort("k"), .long],
        help: ArgumentHelp("Keep-alive. Default: 60 for conn, else 0.", valueName: "seconds")
    )
    var keepalive: UInt16?

    @Option(name: [.customShort("u"), .long], help: ArgumentHelp("Who logs in.", valueName: "name"))
    var username: String?

    @Option(name: .customLong("pw"), help: ArgumentHelp("The password.", valueName: "password"))
    var password: String?

    @OptionGroup(title: "Measuring") var options: BenchOptions

    func validate() throws {
        guard (1...65_535).contains(publishers) else { throw ValidationError("-P \(publishers): 1 to 65535") }
        if let subscribers, !(1...100_000).contains(subscribers) {
            throw ValidationError("-S \(subscribers): 1 to 100000")
        }
        if let connections, !(1...1_000_000).contains(connections) {
            throw ValidationError("-C \(connections): 1 to 1000000")
        }
        guard (1...100_000_000).contains(messages) else { throw ValidationError("-M \(messages): from 1") }
        if let qos, !(0...2).contains(qos) { throw ValidationError("-q \(qos): 0, 1 or 2") }
        guard qos != 0 || shape != .offline else { throw ValidationError("offline: -q 1 or 2") }
        guard (BenchStamp.minBytes...1_048_576).contains(bytes) else {
            throw ValidationError("-s \(bytes): \(BenchStamp.minBytes) to 1048576")
        }
        guard (1...60_000).contains(window) else { throw ValidationError("-w \(window): 1 to 60000") }
        if let rate, !(0.001...1e8).contains(rate) { throw ValidationError("-r \(rate): above 0") }
        guard [4, 5].contains(level) else { throw ValidationError("-V \(level): must be 4 or 5") }
    }

    var plan: MQTTBenchPlan {
        var plan = MQTTBenchPlan(
            shape: shape,
            version: level == 5 ? .v5 : .v311,
            qos: MQTTQoS(rawValue: UInt8(clamping: qos ?? (shape == .offline ? 1 : 0))) ?? .atMostOnce,
            bytes: bytes,
            window: window,
            publishers: publishers,
            subscribers: subscribers ?? (shape == .fanin ? 1 : shape == .offline ? 10 : 100),
            messages: shape == .offline ? messages : nil,
            rate: shape == .offline ? nil : rate,
            keepAlive: keepalive ?? (shape == .conn ? 60 : 0),
            userName: username,
            password: password
        )
        if shape == .pair { plan.subscribers = publishers }
        return plan
    }

    func run() async throws {
        let address = options.address(defaultPort: 1883)
        try await reportingFailures(server: address) {
            let transport = BenchTransport(address)
            let plan = plan
            let run = try await BenchRun(on: transport.loop) { MQTTBenchRun(plan) }
            let probe = options.pid.flatMap { ServerProbe(pid: $0) }
            let measurement = MQTTMeasurement(
                plan: plan,
                run: run,
                transport: transport,
                probe: probe,
                options: options
            )
            switch shape {
            case .fanout, .fanin, .pair: try await measurement.flow()
            case .conn: try await measurement.idle(connections ?? 1000)
            case .churn: try await measurement.churn(connections ?? 64)
            case .offline: try await measurement.offline()
            }
        }
    }
}
