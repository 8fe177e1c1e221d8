// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import HermesWire
import NIOCore

/// `hermes-bench push`: measures pushes to many connected devices.
struct PushBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Push to many connected users with one call of the HTTP API: latency, and duplicates.",
        discussion: """
            Each connection is an account of its own, over Delimited. Registering many takes the server some minutes \
            once; --accounts keeps them. The API key comes from --key-file or HERMES_API_KEY. The server must allow \
            this many connections from one address:

              ulimit -n 25000
              hermes serve --limits.connectionsPerAddress 20000

            Examples:
              hermes-bench push --users 2000 --accounts push.accounts --key-file shop.key
              hermes-bench push --users 10000 --everyone --accounts push.accounts --key-file shop.key --json
            """
    )

    @Option(help: ArgumentHelp("How many users are connected.", valueName: "n"))
    var users = 1_000

    @Option(help: ArgumentHelp("How many pushes, one after the other.", valueName: "n"))
    var pushes = 5

    @Flag(help: "Push to everyone instead of naming the users.")
    var everyone = false

    @Option(help: ArgumentHelp("The server's HTTP port.", valueName: "url"))
    var http = "http://127.0.0.1:8080"

    @Option(help: ArgumentHelp("Read the API key from this file.", valueName: "file"))
    var keyFile: String?

    @OptionGroup var accounts: BenchAccountOptions
    @OptionGroup(title: "Measuring") var options: BenchOptions

    func validate() throws {
        guard (1...10_000).contains(users) else { throw ValidationError("--users \(users): 1 to 10000") }
        guard (1...10_000).contains(pushes) else { throw ValidationError("--pushes \(pushes): 1 to 10000") }
    }

    func run() async throws {
        let address = options.address(defaultPort: BenchDialect.delimited.defaultPort)
        try await reportingFailures(server: address) {
            let endpoint = try PushEndpoint(http, keyFile: keyFile)
            let book = BenchAccounts(file: accounts.file, options: options, registration: address)
            try await measure(endpoint, BenchTransport(address), try await book.get(users))
        }
    }

    private func measure(_ endpoint: PushEndpoint, _ transport: BenchTransport, _ accounts: [BenchAccount]) async throws
    {
        let name = "bench-" + String(UInt32.random(in: 0...UInt32.max), radix: 36)
        let run = try await BenchRun(on: transport.loop) { PushRun(name: name) }
        let channels = try await transport.connect(0..<accounts.count) { count in
            _ = try await run.wait(seconds: 30, every: .milliseconds(10)) {
                $0.loggedIn >= count || !$0.firstFailure.isEmpty
            }
            let failure = try await run.on { $0.firstFailure }
            guard failure.isEmpty else { throw BenchFailure("a login failed: \(failure)") }
            if count.isMultiple(of: 1_000) { options.progress("\(count) users connected") }
        } _: { index in
            PushHandler(run: run.bound.value, account: accounts[index])
        }
        let uids = accounts.map { String($0.uid) }.joined(separator: ",")
        let target = everyone ? "{\"everyone\":true}" : "{\"users\":[\(uids)]}"
        let probe = options.pid.flatMap { ServerProbe(pid: $0) }
        var accepted = LatencyHistogram()
        let use = try await ServerUse.during(probe) {
            for number in 1...pushes {
                let body = "{\"to\":\(target),\"title\":\"\(name) \(number)\",\"body\":\"A push of a benchmark\"}"
                let began = try await run.on { run -> UInt64 in
                    run.begin()
                    return run.beganAt
                }
                try await endpoint.post(body)
                accepted.record(BenchStamp.now - began)
                let wanted = number * accounts.count
                _ = try await run.wait(seconds: 60, every: .milliseconds(5)) { $0.received >= wanted }
            }
        }
        // Wait for duplicates, which would arrive soon.
        try await Task.sleep(for: .seconds(options.warmup))
        let (received, doubles, latencies) = try await run.on { ($0.received, $0.doubles, $0.latencies) }
        for channel in channels { channel.close(promise: nil) }
        var report = BenchReport("push")
        report.add("users", "users", accounts.count)
        report.add("pushes", "pushes", pushes)
        report.add("to", "to", everyone ? "everyone" : "named users")
        report.add("delivered", "delivered", received)
        report.add("missing", "missing", pushes * accounts.count - received)
        report.add("twice", "twice", doubles)
        report.add("accepted", "accepted", latencies: accepted)
        report.add("delivered", "delivered", latencies: latencies)
        use?.add(to: &report, per: "delivery", count: received)
        report.print(asJSON: options.json)
        if received != pushes * accounts.count || doubles > 0 { throw ExitCode(1) }
    }
}

/// The state that the handlers of a push benchmark share. All handlers run on one event loop.
final class PushRun {
    /// The prefix of this run's titles.
    let name: String
    var loggedIn = 0
    var received = 0
    var doubles = 0
    var firstFailure = ""
    private(set) var beganAt: UInt64 = 0
    private(set) var latencies = LatencyHistogram()

    init(name: String) { self.name = name }

    func begin() { beganAt = BenchStamp.now }

    func arrived() {
        received += 1
        latencies.record(BenchStamp.now - beganAt)
    }
}

/// A connection that logs in, counts the run's pushes and acknowledges everything.
final class PushHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let run: PushRun
    private let account: BenchAccount
    private var inbox = BenchInbox()
    private var seen: Set<String> = []

    init(run: PushRun, account: BenchAccount) {
        self.run = run
        self.account = account
    }

    func channelActive(context: ChannelHandlerContext) {
        var buffer = ByteBuffer()
        try? BenchDialect.delimited.writeLogin(account, into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var taken: UInt64 = 0
        inbox.add(unwrapInboundIn(data)) { bytes in
            var position = 0
            while let (start, end) = BenchDialect.delimited.frame(bytes, at: position) {
                if let packet = try? Hermes_V1_Packet(wire: Array(bytes[start..<end])) {
                    taken = max(taken, take(packet))
                }
                position = end
            }
            return position
        }
        guard taken > 0 else { return }
        var buffer = ByteBuffer()
        try? BenchDialect.delimited.writeAcknowledgement(upTo: taken, into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if run.firstFailure.isEmpty { run.firstFailure = "the server closed a connection" }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// - Returns: the seq to acknowledge; 0 if there is none.
    private func take(_ packet: Hermes_V1_Packet) -> UInt64 {
        switch packet.body {
        case .event(let event):
            if event.push.title.hasPrefix(run.name) {
                if seen.insert(event.push.id).inserted { run.arrived() } else { run.doubles += 1 }
            }
            return max(event.seq, event.expired.toSeq)
        case .result(let result):
            if packet.id == BenchDialect.loginID {
                if result.hasError {
                    if run.firstFailure.isEmpty { run.firstFailure = result.error.message }
                } else {
                    run.loggedIn += 1
                }
            }
            return 0
        default:
            return 0
        }
    }
}
