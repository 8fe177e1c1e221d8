// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import HermesServer
import NIOCore
import NIOPosix

/// The program `hermes-bench`, which measures how fast a server is.
@main
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hermes-bench",
        abstract: "Measure a running server, or a part of it without any network.",
        discussion: """
            Everything runs on one event loop of this process; on a small machine, pin client and server to different \
            cores (taskset). With --pid the server's CPU time and memory are measured too, which says more than the \
            rate if both share the cores.

            store, sessions, logins and topics need no server.

            Examples:
              hermes-bench room --viewers 1000 --pid "$(pgrep -f 'hermes serve')"
              hermes-bench mqtt fanout -S 1000 --pid "$(pgrep mosquitto)"
              hermes-bench delimited --pairs 20 --accounts bench.accounts
              hermes-bench impb --pairs 20 --accounts bench.accounts --json
              hermes-bench push --users 1000 --accounts bench.accounts --key-file shop.key
              hermes-bench idle --connections 1000 --accounts bench.accounts
              hermes-bench store --directory /var/lib
            """,
        version: HermesVersion.current,
        subcommands: [
            RoomBench.self, MQTTBench.self, DelimitedBench.self, IMPBBench.self, PushBench.self, IdleBench.self,
            StoreBench.self, SessionsBench.self, LoginsBench.self, TopicBench.self, ReconnectBench.self,
            HeartbeatBench.self,
            HoldBench.self,
        ]
    )
}

/// The options of all benchmarks.
struct BenchOptions: ParsableArguments {
    @Option(name: [.customShort("d"), .long], help: ArgumentHelp("Measure for this long.", valueName: "seconds"))
    var seconds: Double = 5

    @Option(
        name: [.customShort("W"), .long],
        help: ArgumentHelp("Run for this long before measuring.", valueName: "seconds")
    )
    var warmup: Double = 1

    @Option(help: ArgumentHelp("The server's process, on this machine: measures its CPU and memory.", valueName: "pid"))
    var pid: Int32?

    @Flag(help: "Print one JSON object.")
    var json = false

    @Option(help: ArgumentHelp("The server's name or address.", valueName: "host"))
    var host = "127.0.0.1"

    @Option(help: ArgumentHelp("The server's port; each protocol has its own default.", valueName: "port"))
    var port: Int?

    func validate() throws {
        guard (0.1...86_400).contains(seconds) else { throw ValidationError("--seconds \(seconds): from 0.1") }
        guard (0...3_600).contains(warmup) else { throw ValidationError("--warmup \(warmup): from 0") }
        if let port, !(1...65_535).contains(port) {
            throw ValidationError("--port \(port): a port is a number from 1 to 65535")
        }
        if host.isEmpty { throw ValidationError("--host: a name or an address is needed, for example 127.0.0.1") }
        if let pid, ServerProbe(pid: pid) == nil {
            throw ValidationError("--pid \(pid): there is no such process on this machine, or it cannot be read")
        }
    }

    /// Returns the server's address. Benchmarks connect without TLS, even if the server is on another machine.
    func address(defaultPort: Int) -> ServerAddress {
        ServerAddress(host: host, port: port ?? defaultPort, security: .clearText)
    }

    /// Reports a benchmark's progress on stderr.
    func progress(_ text: String) { BenchFailure.tell(text) }
}

/// Opens unencrypted connections to the server, all on one event loop.
struct BenchTransport: Sendable {
    let address: ServerAddress
    let loop: any EventLoop

    init(_ address: ServerAddress) {
        self.address = address
        loop = MultiThreadedEventLoopGroup.singleton.next()
    }

    /// Opens a channel. The handler is created on the event loop.
    ///
    /// - Parameter number: the channel's number. On Linux, if the server's address is a loopback address, the number
    ///   selects one of 64 local addresses for the channel. So there are enough ports.
    func connect(
        number: Int = 0,
        _ makeHandler: @escaping @Sendable () -> any ChannelHandler
    ) async throws -> any Channel {
        do {
            var bootstrap = ClientBootstrap(group: loop)
                .channelOption(ChannelOptions.tcpOption(.tcp_nodelay), value: 1)
                .connectTimeout(.seconds(10))
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(makeHandler())
                    }
                }
            #if os(Linux)
            if address.host.hasPrefix("127.") {
                bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: "127.0.0.\(2 + number % 64)", port: 0))
            }
            #endif
            return try await bootstrap.connect(host: address.host, port: address.port).get()
        } catch {
            throw BenchFailure(
                "cannot connect to \(address.host):\(address.port): \(error); is the server running, and do "
                    + "limits.connectionsPerAddress and ulimit -n allow so many?",
                exitCode: ExitCode(69)
            )
        }
    }
}
