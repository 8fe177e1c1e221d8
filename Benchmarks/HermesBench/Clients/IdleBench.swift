// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import NIOCore

/// `hermes-bench idle`: measures the cost of idle connections with heartbeats.
struct IdleBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "idle",
        abstract: "Idle logged-in connections: memory of each, CPU for all.",
        discussion: """
            Each connection is a device of its own, so each needs an account. Registering 10,000 takes the server some \
            minutes once; --accounts keeps them. The server must allow this many connections from one address, and \
            both processes need this many open files:

              ulimit -n 25000
              hermes serve --limits.connectionsPerAddress 20000

            Examples:
              hermes-bench idle --connections 1000 --accounts idle.accounts --pid 4711
              hermes-bench idle --connections 10000 --heartbeat 120 --seconds 120 --accounts idle.accounts --pid 4711
            """
    )

    @Option(help: ArgumentHelp("How many connections.", valueName: "n"))
    var connections = 1000

    @Option(help: ArgumentHelp("The heartbeat interval of each connection.", valueName: "seconds"))
    var heartbeat: Double = 120

    @Option(help: ArgumentHelp("The protocol: delimited or impb.", valueName: "protocol"))
    var `protocol` = "delimited"

    @Option(help: ArgumentHelp("The server's Delimited port, to register accounts.", valueName: "port"))
    var registrationPort = 9000

    @OptionGroup var accounts: BenchAccountOptions
    @OptionGroup(title: "Measuring") var options: BenchOptions

    func validate() throws {
        guard (1...100_000).contains(connections) else {
            throw ValidationError("--connections \(connections): 1 to 100000")
        }
        guard (0.1...3_600).contains(heartbeat) else { throw ValidationError("--heartbeat \(heartbeat): 0.1 to 3600") }
        guard BenchDialect(rawValue: `protocol`) != nil else {
            throw ValidationError("--protocol \(`protocol`): delimited or impb")
        }
    }

    func run() async throws {
        guard let dialect = BenchDialect(rawValue: `protocol`) else { return }
        let address = options.address(defaultPort: dialect.defaultPort)
        try await reportingFailures(server: address) {
            var registration = address
            if dialect != .delimited { registration.port = registrationPort }
            let book = BenchAccounts(file: accounts.file, options: options, registration: registration)
            try await measure(dialect, BenchTransport(address), try await book.get(connections))
        }
    }

    private func measure(
        _ dialect: BenchDialect,
        _ transport: BenchTransport,
        _ accounts: [BenchAccount]
    ) async throws {
        let probe = options.pid.flatMap { ServerProbe(pid: $0) }
        let interval = TimeAmount(.seconds(heartbeat))
        let run = try await BenchRun(on: transport.loop) { IdleRun(dialect: dialect) }
        let memory = probe?.residentBytes()
        let channels = try await transport.connect(0..<accounts.count) { count in
            try await Self.waitForLogins(count, run)
            if count.isMultiple(of: 1000) { options.progress("\(count) connections logged in") }
        } _: { index in
            IdleHandler(run: run.bound.value, account: accounts[index], interval: interval)
        }
        options.progress("settling for \(options.warmup) s, measuring for \(options.seconds) s")
        try await Task.sleep(for: .seconds(options.warmup))
        let memoryConnected = probe?.residentBytes()
        let before = try await run.on { $0.pongs }
        let use = try await ServerUse.during(probe) { try await Task.sleep(for: .seconds(options.seconds)) }
        let (pongs, lost) = try await run.on { ($0.pongs - before, $0.lost) }
        for channel in channels { channel.close(promise: nil) }
        var report = BenchReport("idle")
        report.add("protocol", "protocol", dialect.rawValue)
        report.add("connections", "connections", channels.count)
        report.add("heartbeat_seconds", "heartbeat every", heartbeat, digits: 1, "s")
        report.add("seconds", "measured for", options.seconds, digits: 2, "s")
        report.add("heartbeats", "heartbeats answered", pongs)
        report.add("disconnected", "connections lost", lost)
        use?.add(to: &report, per: "heartbeat", count: pongs)
        if let memory, let memoryConnected {
            let each = Double(memoryConnected - memory) / Double(max(1, channels.count))
            report.add("server_bytes_per_connection", "server memory", each, digits: 0, "bytes per connection")
            report.add("server_resident_bytes", "server memory in all", memoryConnected, "bytes")
        }
        report.print(asJSON: options.json)
        if lost > 0 { throw ExitCode(1) }
    }

    private static func waitForLogins(_ count: Int, _ run: BenchRun<IdleRun>) async throws {
        let isDone = try await run.wait(seconds: 30, every: .milliseconds(10)) {
            $0.loggedIn >= count || !$0.firstFailure.isEmpty
        }
        let failure = try await run.on { $0.firstFailure }
        if !failure.isEmpty {
            throw BenchFailure("a login failed: \(failure); accounts of another server? remove the --accounts file")
        }
        guard isDone else { throw BenchFailure("the server did not answer a login within 30 s") }
    }
}

/// The state that the handlers of an idle benchmark share. All handlers run on one event loop.
final class IdleRun {
    let dialect: BenchDialect
    var loggedIn = 0
    var pongs = 0
    var lost = 0
    var firstFailure = ""

    init(dialect: BenchDialect) { self.dialect = dialect }
}

/// A connection that logs in and sends heartbeats.
final class IdleHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let run: IdleRun
    private let account: BenchAccount
    private let interval: TimeAmount
    private var inbox = BenchInbox()
    private var isLoggedIn = false
    private var heartbeat: RepeatedTask?

    init(run: IdleRun, account: BenchAccount, interval: TimeAmount) {
        self.run = run
        self.account = account
        self.interval = interval
    }

    func channelActive(context: ChannelHandlerContext) {
        var buffer = ByteBuffer()
        try? run.dialect.writeLogin(account, into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        heartbeat?.cancel()
        if !isLoggedIn, run.firstFailure.isEmpty { run.firstFailure = "the server closed the connection" }
        run.lost += 1
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        inbox.add(unwrapInboundIn(data)) { bytes in
            run.dialect.scan(bytes) { incoming in
                switch incoming {
                case .loggedIn: loggedIn(context)
                case .failure(_, let reason), .kicked(let reason):
                    if run.firstFailure.isEmpty { run.firstFailure = reason }
                case .other: run.pongs += 1
                case .receipt, .message: break
                }
            }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func loggedIn(_ context: ChannelHandlerContext) {
        isLoggedIn = true
        run.loggedIn += 1
        let channel = context.channel
        let dialect = run.dialect
        let first = TimeAmount.nanoseconds(.random(in: 0..<max(1, interval.nanoseconds)))
        heartbeat = context.eventLoop.scheduleRepeatedTask(initialDelay: first, delay: interval) { _ in
            var buffer = ByteBuffer()
            try? dialect.writeHeartbeat(into: &buffer)
            channel.writeAndFlush(buffer, promise: nil)
        }
    }
}
