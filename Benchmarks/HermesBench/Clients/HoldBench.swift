// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import HermesProtocols

/// `hermes-bench hold`: keeps idle connections of the SDK, which another program can measure.
struct HoldBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Keep idle connections of the SDK, to measure this process.",
        discussion: """
            Reports on stderr when all are logged in. Interop/idle compares the memory and the bytes on the wire with \
            those of other clients.

            Examples:
              hermes-bench hold --protocol delimited --connections 100 --seconds 600 --accounts bench.accounts
              hermes-bench hold --protocol mqtt --heartbeat 60 --seconds 600
            """
    )

    /// The protocol, which determines the client of the SDK.
    enum Kind: String, CaseIterable, ExpressibleByArgument {
        case delimited, websocket, impb, mqtt, qsiop, liveroom

        var defaultPort: Int {
            switch self {
            case .delimited: 9000
            case .websocket: 8080
            case .impb: 6969
            case .mqtt: 1883
            case .qsiop: 7979
            case .liveroom: 9898
            }
        }

        /// Whether each connection needs an account.
        var needsAccount: Bool {
            switch self {
            case .delimited, .websocket, .impb, .qsiop: true
            case .mqtt, .liveroom: false
            }
        }
    }

    @Option(help: ArgumentHelp("The protocol.", valueName: "protocol"))
    var `protocol`: Kind

    @Option(help: ArgumentHelp("How many connections.", valueName: "n"))
    var connections = 1

    @Option(help: ArgumentHelp("The heartbeat interval; by default the SDK's in that protocol.", valueName: "seconds"))
    var heartbeat: Double?

    @Option(help: ArgumentHelp("The server's Delimited port, to register accounts.", valueName: "port"))
    var registrationPort = 9000

    @OptionGroup var accounts: BenchAccountOptions
    @OptionGroup(title: "Measuring") var options: BenchOptions

    func validate() throws {
        guard (1...100_000).contains(connections) else {
            throw ValidationError("--connections \(connections): 1 to 100000")
        }
        if let heartbeat, !(0.1...3_600).contains(heartbeat) {
            throw ValidationError("--heartbeat \(heartbeat): 0.1 to 3600")
        }
    }

    func run() async throws {
        let address = options.address(defaultPort: `protocol`.defaultPort)
        try await reportingFailures(server: address) {
            var registration = address
            registration.port = registrationPort
            let book = BenchAccounts(file: accounts.file, options: options, registration: registration)
            let people = `protocol`.needsAccount ? try await book.get(connections) : []
            var held: [HeldConnection] = []
            for index in 0..<connections {
                let account = people.indices.contains(index) ? people[index] : nil
                held.append(try await open(address, account, index))
            }
            options.progress("holding \(held.count) connections")
            try await Task.sleep(for: .seconds(options.seconds))
            for connection in held { await connection.close() }
        }
    }

    private func policy(_ own: HeartbeatPolicy) -> HeartbeatPolicy {
        var policy = own
        if let heartbeat { policy.interval = .seconds(heartbeat) }
        return policy
    }

    private func open(_ address: ServerAddress, _ account: BenchAccount?, _ index: Int) async throws -> HeldConnection {
        let device = DeviceDescription(id: account?.device ?? "bench")
        let token = account?.token ?? ""
        switch `protocol` {
        case .delimited, .websocket:
            var configuration = HermesClient.Configuration(server: address, device: device)
            if `protocol` == .websocket { configuration.server.webSocketPath = "/ws" }
            configuration.heartbeat = policy(.delimited)
            let client = try HermesClient(configuration)
            _ = try await client.logIn(.token(token))
            return HeldConnection { await client.close() }
        case .impb:
            var configuration = IMPBClient.Configuration(server: address, device: device)
            configuration.heartbeat = policy(.impb)
            let client = try IMPBClient(configuration)
            _ = try await client.logIn(.token(token))
            return HeldConnection { await client.close() }
        case .qsiop:
            let identity = QSIOPClient.Identity(
                uid: UserID(rawValue: account?.uid ?? 0),
                token: token,
                device: device.id
            )
            var configuration = QSIOPClient.Configuration(server: address, identity: identity)
            configuration.heartbeat = policy(.qsiop)
            let client = try QSIOPClient(configuration)
            try await client.connect()
            return HeldConnection { await client.close() }
        case .liveroom:
            var configuration = LiveRoomClient.Configuration(server: address, user: nil)
            configuration.heartbeat = policy(.liveRoom)
            let client = try LiveRoomClient(configuration)
            try await client.join()
            return HeldConnection { await client.close() }
        case .mqtt:
            var configuration = MQTTClient.Configuration(server: address)
            configuration.heartbeat = policy(.mqtt)
            let client = try MQTTClient(configuration)
            try await client.connect()
            try await client.subscribe(to: "idle/\(index)")
            return HeldConnection { await client.close() }
        }
    }
}

/// An open connection of a client of any type.
private struct HeldConnection: Sendable {
    let close: @Sendable () async -> Void
}
