// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import HermesWire
import NIOCore

/// `hermes-bench room`: measures a room with one sender and many viewers.
struct RoomBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room",
        abstract: "Fan-out of a LiveRoom: one sender, many viewers.",
        discussion: """
            A closed loop: at most --window texts are under way; the next is sent when all viewers have the oldest. \
            Every viewer checks every text for order and loss.

            Examples:
              hermes-bench room --viewers 1000 --pid 4711
              taskset -c 1 hermes-bench room --viewers 1000 --window 16 --json
            """
    )

    @Option(help: ArgumentHelp("How many viewers, besides the sender.", valueName: "n"))
    var viewers = 1000

    @Option(help: ArgumentHelp("How many texts may be on their way at once.", valueName: "n"))
    var window = 8

    @Option(help: ArgumentHelp("The length of a text.", valueName: "bytes"))
    var bytes = 64

    @Option(help: ArgumentHelp("The room; without it, the port's own.", valueName: "room"))
    var room: String?

    @OptionGroup(title: "Measuring") var options: BenchOptions

    func validate() throws {
        guard (1...100_000).contains(viewers) else { throw ValidationError("--viewers \(viewers): 1 to 100000") }
        guard (1...100_000).contains(window) else { throw ValidationError("--window \(window): 1 to 100000") }
        guard (18...4096).contains(bytes) else { throw ValidationError("--bytes \(bytes): 18 to 4096") }
    }

    func run() async throws {
        let address = options.address(defaultPort: 9898)
        try await reportingFailures(server: address) { try await measure(BenchTransport(address)) }
    }

    private func measure(_ transport: BenchTransport) async throws {
        let probe = options.pid.flatMap { ServerProbe(pid: $0) }
        let (receivers, window, bytes, room) = (viewers + 1, window, bytes, room)
        let run = try await BenchRun(on: transport.loop) {
            try RoomRun(receivers: receivers, window: window, textBytes: bytes)
        }
        let memory = probe?.residentBytes()
        options.progress("connecting \(viewers) viewers")
        let channels = try await transport.connect(0..<receivers) { _ in
            RoomBenchHandler(run: run.bound.value, room: room)
        }
        options.progress("waiting until all are in the room")
        try await Self.gather(run)
        let memoryConnected = probe?.residentBytes()
        try await run.on { $0.start() }
        options.progress("warming up for \(options.warmup) s, measuring for \(options.seconds) s")
        try await Task.sleep(for: .seconds(options.warmup))
        try await run.on { $0.beginMeasuring() }
        let use = try await ServerUse.during(probe) {
            try await Task.sleep(for: .seconds(options.seconds))
            try await run.on { $0.endMeasuring() }
        }
        // Wait for the texts that have not arrived yet.
        _ = try await run.wait(seconds: 5) { $0.isDrained }
        let result = try await run.on { $0.result }
        for channel in channels { channel.close(promise: nil) }
        var report = BenchReport("room")
        report.add("viewers", "viewers", viewers)
        report.add("window", "texts on their way", window)
        report.add("bytes", "text", bytes, "bytes")
        report.add("seconds", "measured for", result.seconds, digits: 2, "s")
        report.add("deliveries", "deliveries", result.deliveries)
        report.add(
            "deliveries_per_second",
            "rate",
            Double(result.deliveries) / result.seconds,
            digits: 0,
            "deliveries/s"
        )
        report.add("lost", "lost", result.lost)
        report.add("out_of_order", "out of order", result.disorders)
        report.add("disconnected", "viewers disconnected", result.disconnected)
        report.add("latency", "latency", latencies: result.latencies)
        use?.add(to: &report, per: "delivery", count: result.deliveries)
        if let memory, let memoryConnected {
            let each = Double(memoryConnected - memory) / Double(receivers)
            report.add("server_bytes_per_connection", "server memory", each, digits: 0, "bytes per connection")
        }
        if let now = probe?.residentBytes() {
            report.add("server_resident_bytes", "server memory in all", now, "bytes")
        }
        report.print(asJSON: options.json)
        if result.lost > 0 || result.disorders > 0 || result.disconnected > 0 { throw ExitCode(1) }
    }

    /// Sends a text periodically until each viewer has received a text. A connection may be open before the server has
    /// accepted it.
    private static func gather(_ run: BenchRun<RoomRun>) async throws {
        for _ in 0..<600 {
            try await run.on { $0.call() }
            try await Task.sleep(for: .milliseconds(50))
            if try await run.on({ $0.isComplete }) { return }
        }
        throw BenchFailure("after 30 s, not all viewers receive the room's texts")
    }
}

/// The state that the handlers of a room benchmark share. All handlers run on one event loop.
final class RoomRun {
    struct Result: Sendable {
        var seconds: Double
        var deliveries: Int
        var lost: Int
        var disorders: Int
        var disconnected: Int
        var latencies: LatencyHistogram
    }

    private let receivers: Int
    private let window: Int
    let textBytes: Int
    /// The bytes of a frame before its text.
    let head: ByteBuffer
    private var sender: ChannelHandlerContext?
    private var present = 0
    private var isRunning = false
    /// The number of the first text that counts. Texts with lower numbers only checked which viewers are present.
    private(set) var firstNumber: UInt64 = 0
    private var sent = 0
    /// The number of texts that were delivered or lost, summed over all viewers.
    private var settled = 0
    private var deliveries = 0
    private var lost = 0
    private var disorders = 0
    private var disconnected = 0
    private var latencies = LatencyHistogram()
    private var isMeasuring = false
    private var measuredFrom: UInt64 = 0
    private var measuredTo: UInt64 = 0
    private var deliveriesBefore = 0
    private var deliveriesMeasured = 0

    init(receivers: Int, window: Int, textBytes: Int) throws {
        self.receivers = receivers
        self.window = window
        self.textBytes = textBytes
        var message = LiveRoom_ChatMessage()
        message.user.level = 1
        message.user.name = "bench"
        message.user.iconURL = ""
        message.text = String(repeating: ".", count: textBytes)
        var frame = ByteBuffer()
        try LiveRoomFrame.write(message, type: .text, into: &frame)
        // The text is the message's last field.
        head = frame.getSlice(at: frame.readerIndex, length: frame.readableBytes - textBytes) ?? ByteBuffer()
    }

    func joined(_ context: ChannelHandlerContext) {
        if sender == nil { sender = context }
    }

    func left(_ context: ChannelHandlerContext) {
        guard isRunning || sent > 0 else { return }
        disconnected += 1
    }

    /// Sends one text, to check which viewers are present.
    func call() {
        var buffer = ByteBuffer()
        writeText(firstNumber, at: BenchStamp.now, into: &buffer)
        firstNumber += 1
        sender?.writeAndFlush(NIOAny(buffer), promise: nil)
    }

    /// Counts a viewer that has received its first text.
    func found() { present += 1 }

    /// Whether every viewer is in the room.
    var isComplete: Bool { present >= receivers }

    func start() {
        isRunning = true
        pump()
    }

    func beginMeasuring() {
        latencies.reset()
        deliveriesBefore = deliveries
        measuredFrom = BenchStamp.now
        isMeasuring = true
    }

    func endMeasuring() {
        measuredTo = BenchStamp.now
        deliveriesMeasured = deliveries - deliveriesBefore
        isMeasuring = false
        isRunning = false
    }

    var isDrained: Bool { settled >= sent * receivers }

    var result: Result {
        Result(
            seconds: Double(measuredTo - measuredFrom) / 1e9,
            deliveries: deliveriesMeasured,
            lost: lost + max(0, sent * receivers - settled),
            disorders: disorders,
            disconnected: disconnected,
            latencies: latencies
        )
    }

    /// Counts a text that a viewer has received; `expected` is the number of the text that the viewer expected.
    @inline(__always)
    func delivered(_ number: UInt64, expected: UInt64, sentAt: UInt64, now: UInt64) {
        deliveries += 1
        settled += 1
        if number != expected {
            if number > expected {
                let gap = Int(clamping: number - expected)
                lost += gap
                settled += gap
            } else {
                disorders += 1
            }
        }
        if isMeasuring { latencies.record(now > sentAt ? now - sentAt : 1) }
    }

    /// Sends as many texts as the window allows, in one write.
    func pump() {
        guard isRunning, let sender else { return }
        var buffer = ByteBuffer()
        let now = BenchStamp.now
        while settled >= (sent - window + 1) * receivers {
            writeText(firstNumber + UInt64(sent), at: now, into: &buffer)
            sent += 1
        }
        guard buffer.readableBytes > 0 else { return }
        sender.writeAndFlush(NIOAny(buffer), promise: nil)
    }

    private func writeText(_ number: UInt64, at now: UInt64, into buffer: inout ByteBuffer) {
        buffer.writeImmutableBuffer(head)
        BenchStamp.write(number, at: now, bytes: textBytes, into: &buffer)
    }
}

/// The connection of a viewer; the first viewer is also the sender. The handler recognizes the benchmark's frames by
/// their length, so it parses no protobuf.
final class RoomBenchHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let run: RoomRun
    private let room: String?
    private var inbox = BenchInbox()
    private var expected: UInt64 = 0
    private var heartbeat: RepeatedTask?

    init(run: RoomRun, room: String?) {
        self.run = run
        self.room = room
    }

    func channelActive(context: ChannelHandlerContext) {
        if let room {
            var enter = LiveRoom_Enter()
            enter.room = room
            var buffer = ByteBuffer()
            try? LiveRoomFrame.write(enter, type: .enter, into: &buffer)
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        }
        run.joined(context)
        let channel = context.channel
        // A random delay keeps a thousand viewers from sending heartbeats at once.
        let delay = TimeAmount.milliseconds(.random(in: 0..<8000))
        heartbeat = context.eventLoop.scheduleRepeatedTask(initialDelay: delay, delay: .seconds(8)) { _ in
            var buffer = ByteBuffer()
            try? LiveRoomFrame.writeHeader(type: .heartbeat, bodyBytes: 0, into: &buffer)
            channel.writeAndFlush(buffer, promise: nil)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        heartbeat?.cancel()
        run.left(context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        inbox.add(unwrapInboundIn(data)) { scan($0) }
    }

    func channelReadComplete(context: ChannelHandlerContext) { run.pump() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// - Returns: the number of bytes in complete frames.
    private func scan(_ bytes: UnsafeRawBufferPointer) -> Int {
        let now = BenchStamp.now
        let wanted = run.head.readableBytes - LiveRoomFrame.headerBytes + run.textBytes
        var position = 0
        while bytes.count - position >= LiveRoomFrame.headerBytes {
            let length = Int(bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self).littleEndian)
            let end = position + LiveRoomFrame.headerBytes + length
            guard end <= bytes.count else { break }
            let type = bytes.loadUnaligned(fromByteOffset: position + 4, as: UInt16.self).littleEndian
            if type == LiveRoomFrameType.text.rawValue, length == wanted,
                let stamp = BenchStamp.read(UnsafeRawBufferPointer(rebasing: bytes[(end - run.textBytes)..<end]))
            {
                if stamp.number >= run.firstNumber {
                    let wanted = max(expected, run.firstNumber)
                    run.delivered(stamp.number, expected: wanted, sentAt: stamp.nanoseconds, now: now)
                } else if expected == 0 {
                    run.found()
                }
                expected = max(expected, stamp.number + 1)
            }
            position = end
        }
        return position
    }
}
