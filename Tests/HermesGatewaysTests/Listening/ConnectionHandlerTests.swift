// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HermesGateways

/// The handler on a channel without a socket, with a clock that the test advances.
@Suite(.inTurns) struct ConnectionHandlerTests {
    /// Records its events.
    final class RecordingConnection: GatewayConnection {
        typealias Decoder = IMPBFrameDecoder

        let connection: Connection
        var frames: [IMPBFrame] = []
        var farewells: [String] = []
        var marks: [UInt64] = []
        var isClosed = false
        var authenticates = false
        var holds = false
        var isGoneAtTheFarewell = false

        init(_ connection: Connection) { self.connection = connection }

        func received(_ frame: IMPBFrame) {
            frames.append(frame)
            if authenticates { connection.authenticated() }
            if holds { connection.hold() }
        }

        func farewell(_ reason: CloseReason) {
            farewells.append(reason.label)
            connection.write { $0.writeString("bye") }
            if isGoneAtTheFarewell { connection.context?.close(promise: nil) }
        }

        func accessChanged() {}
        func written(_ mark: UInt64) { marks.append(mark) }
        func closed() { isClosed = true }
    }

    struct Fixture {
        let channel = EmbeddedChannel()
        let connection: Connection
        let session: RecordingConnection

        init(
            _ limits: ConnectionLimits = ConnectionLimits(),
            idle: Duration = .seconds(60),
            maxFrameBytes: Int = 60_000,
            isWebSocket: Bool = false
        ) throws {
            let loops = LoopContexts(channel.embeddedEventLoop)
            let loop = try #require(loops[channel.eventLoop])
            let state = ListenerState(
                name: "test",
                limits: limits,
                idleTimeout: idle,
                maxFrameBytes: maxFrameBytes,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            connection = Connection(loop: loop, listener: state, requiresAuthentication: true)
            session = RecordingConnection(connection)
            let handler = ConnectionHandler<RecordingConnection>(connection: connection, side: session)
            if isWebSocket {
                let webSocket = WebSocketHandler(WebSocketInput()) { WebSocketMessage(bytes: $0.readableBytes) }
                try channel.pipeline.syncOperations.addHandler(webSocket)
            }
            try channel.pipeline.syncOperations.addHandler(handler)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        }

        /// Sets whether the peer reads.
        func setWritable(_ isWritable: Bool) {
            channel.isWritable = isWritable
            channel.pipeline.fireChannelWritabilityChanged()
        }

        /// Returns the output since the last call.
        func output() throws -> [String] {
            channel.embeddedEventLoop.run()
            var output: [String] = []
            while let bytes = try channel.readOutbound(as: ByteBuffer.self) {
                if bytes.readableBytes > 0 { output.append(String(buffer: bytes)) }
            }
            return output
        }
    }

    private func ping(_ seq: UInt32, bodyBytes: Int = 0) throws -> ByteBuffer {
        var bytes = ByteBuffer()
        try IMPBFrame(seq: seq, type: .ping, body: ByteBuffer(repeating: 7, count: bodyBytes)).write(into: &bytes)
        return bytes
    }

    @Test func `slices of work let the loop turn in between`() throws {
        let fixture = try Fixture()
        var slices: [Range<Int>] = []
        var others = 0
        var isDone = false
        fixture.connection.inSlices(10, of: 4) {
            slices.append($0)
        } then: {
            isDone = true
        }
        #expect(slices == [0..<4] && !isDone)
        // Another connection gets its turn between two slices.
        fixture.channel.eventLoop.assumeIsolated().execute {
            others = slices.count
            #expect(!isDone)
        }
        try fixture.channel.writeInbound(ping(1))
        #expect(fixture.session.frames.isEmpty, "nothing is read meanwhile")
        fixture.channel.embeddedEventLoop.run()
        #expect(slices == [0..<4], "the loop has no task left and can serve its connections")
        fixture.channel.embeddedEventLoop.advanceTime(by: .milliseconds(10))
        #expect(others < 3 && slices == [0..<4, 4..<8, 8..<10] && isDone)
        #expect(fixture.session.frames.count == 1)
        var small: [Range<Int>] = []
        fixture.connection.inSlices(4, of: 4) {
            small.append($0)
        } then: {
            small.append(0..<0)
        }
        #expect(small == [0..<4, 0..<0], "little is done at once")
    }

    @Test func `slices end with the connection`() throws {
        let fixture = try Fixture()
        var slices = 0
        var isDone = false
        fixture.connection.inSlices(10, of: 4) { _ in
            slices += 1
        } then: {
            isDone = true
        }
        fixture.connection.end(.finished)
        fixture.channel.embeddedEventLoop.advanceTime(by: .milliseconds(10))
        #expect(slices == 1 && !isDone)
    }

    /// Delivers a hundred frames in one read, on a loop whose clock advances 10 ms each time it is read.
    private func busy(_ fixture: Fixture) throws {
        var looks: Int64 = 0
        fixture.connection.loop.replacedTurnClock = {
            looks += 1
            return .uptimeNanoseconds(UInt64(looks) * 10_000_000)
        }
        fixture.connection.authenticated()
        var bytes = ByteBuffer()
        for seq in 1...100 { bytes.writeImmutableBuffer(try ping(UInt32(seq))) }
        try fixture.channel.writeInbound(bytes)
    }

    @Test func `much input takes turns with others`() throws {
        let fixture = try Fixture()
        try busy(fixture)
        let first = fixture.session.frames.count
        #expect((16..<100).contains(first), "the time of one turn is over")
        var others: Int?
        fixture.connection.loop.inTurn { others = fixture.session.frames.count }
        fixture.channel.embeddedEventLoop.run()
        #expect(fixture.session.frames.count == first, "the loop has no task left and can serve its connections")
        fixture.channel.embeddedEventLoop.advanceTime(by: .milliseconds(10))
        #expect(fixture.session.frames.map(\.seq) == Array(1...100))
        #expect(try #require(others) < 100, "others have their turn in between")
    }

    @Test func `input before the end is taken also if it waits for its turn`() throws {
        let fixture = try Fixture()
        try busy(fixture)
        #expect(fixture.session.frames.count < 100)
        fixture.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        fixture.channel.embeddedEventLoop.advanceTime(by: .milliseconds(10))
        #expect(fixture.session.frames.map(\.seq) == Array(1...100))
        #expect(fixture.session.isClosed)
    }

    @Test func `input before a reset takes the time of one turn at most`() throws {
        let fixture = try Fixture()
        try busy(fixture)
        let before = fixture.session.frames.count
        fixture.channel.pipeline.fireChannelInactive()
        let taken = fixture.session.frames.map(\.seq)
        #expect(taken.count > before && taken.count < 100, "\(taken.count)")
        #expect(taken == Array(1...UInt32(taken.count)))
        #expect(fixture.session.isClosed)
    }

    /// The frames are empty parts of a message that never ends, and pongs.
    @Test(arguments: [0x00, 0x8A] as [UInt8]) func `WebSocket frames that no message needs are charged`(
        _ first: UInt8
    ) throws {
        var limits = ConnectionLimits()
        limits.requestsPerSecond = 10
        let fixture = try Fixture(limits, isWebSocket: true)
        func send(_ frames: Int, _ first: UInt8) throws {
            var bytes = ByteBuffer()
            for _ in 0..<frames { bytes.writeBytes([first, 0x80, 1, 2, 3, 4]) }
            try fixture.channel.writeInbound(bytes)
        }
        try send(1, 0x02)
        var reads = 0
        while fixture.connection.mayRead, reads < 100 {
            try send(24, first)
            reads += 1
        }
        #expect((8...12).contains(reads), "\(reads) reads of 24 frames each at 10 units a second")
        #expect(fixture.connection.isOpen)
    }

    @Test func `cuts frames however they arrive`() throws {
        let fixture = try Fixture()
        var stream = ByteBuffer()
        for seq in 1...20 { stream.writeImmutableBuffer(try ping(UInt32(seq), bodyBytes: seq * 10)) }
        let whole = stream
        while let byte = stream.readSlice(length: 1) { try fixture.channel.writeInbound(byte) }
        #expect(fixture.session.frames.map(\.seq) == Array(1...20))
        try fixture.channel.writeInbound(whole)
        #expect(fixture.session.frames.count == 40)
        #expect(fixture.session.frames[39].body == ByteBuffer(repeating: 7, count: 200))
    }

    @Test func `writes once a tick`() throws {
        let fixture = try Fixture()
        for number in 1...5 { fixture.connection.write { $0.writeString("\(number)") } }
        #expect(try fixture.channel.readOutbound(as: ByteBuffer.self) == nil)
        #expect(try fixture.output() == ["12345"])
        fixture.connection.write(frame: ByteBuffer(string: "a"))
        fixture.connection.write(frame: ByteBuffer(string: String(repeating: "L", count: 5_000)))
        fixture.connection.write(frame: ByteBuffer(string: "b"))
        #expect(try fixture.output().map(\.utf8.count) == [1, 5_000, 1])
    }

    @Test func `an encoder that fails leaves nothing behind`() throws {
        struct Failure: Error {}
        let fixture = try Fixture()
        fixture.connection.write { $0.writeString("whole") }
        fixture.connection.write {
            $0.writeString("half")
            throw Failure()
        }
        #expect(try fixture.output() == ["whole"])
    }

    @Test func `strangers have limited time`() throws {
        let fixture = try Fixture()
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(9))
        #expect(fixture.session.farewells.isEmpty)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(2))
        #expect(fixture.session.farewells == ["not_authenticated"])
        #expect(try fixture.output() == ["bye"])
        // The peer does not close the connection. After some time, the server closes it.
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(fixture.session.isClosed)
        #expect(!fixture.channel.isActive)
    }

    @Test func `signs of life move the idle deadline`() throws {
        let fixture = try Fixture(idle: .seconds(60))
        fixture.session.authenticates = true
        for _ in 1...10 {
            try fixture.channel.writeInbound(ping(1))
            fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(55))
        }
        #expect(fixture.session.farewells.isEmpty)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(fixture.session.farewells == ["idle"])
    }

    @Test func `strangers have small frames`() throws {
        var limits = ConnectionLimits()
        limits.maxLoginFrameBytes = 16_384
        let fixture = try Fixture(limits)
        fixture.session.authenticates = true
        try fixture.channel.writeInbound(ping(1, bodyBytes: 10_000))
        try fixture.channel.writeInbound(ping(2, bodyBytes: 50_000))
        #expect(fixture.session.frames.count == 2)

        let stranger = try Fixture(limits)
        try stranger.channel.writeInbound(ping(1, bodyBytes: 50_000))
        #expect(stranger.session.farewells == ["malformed"])
    }

    @Test func `a hold keeps frames until its release`() throws {
        let fixture = try Fixture()
        fixture.session.holds = true
        var stream = try ping(1)
        stream.writeImmutableBuffer(try ping(2))
        stream.writeImmutableBuffer(try ping(3))
        try fixture.channel.writeInbound(stream)
        #expect(fixture.session.frames.map(\.seq) == [1])
        fixture.connection.release()
        #expect(fixture.session.frames.map(\.seq) == [1, 2])
        fixture.session.holds = false
        fixture.connection.release()
        #expect(fixture.session.frames.map(\.seq) == [1, 2, 3])
    }

    @Test func `our own delay is not the peer's fault`() throws {
        let fixture = try Fixture()
        fixture.session.holds = true
        try fixture.channel.writeInbound(ping(1))
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(60))
        #expect(fixture.session.farewells.isEmpty)
        fixture.connection.release()
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(3))
        #expect(fixture.session.farewells == ["not_authenticated"])
    }

    @Test func `frames beyond the rate wait`() throws {
        var limits = ConnectionLimits()
        limits.requestsPerSecond = 10
        let fixture = try Fixture(limits)
        for seq in 1...14 { try fixture.channel.writeInbound(ping(UInt32(seq))) }
        #expect(fixture.session.frames.count == 10)
        fixture.channel.embeddedEventLoop.advanceTime(by: .milliseconds(220))
        #expect(fixture.session.frames.count == 12)
        fixture.channel.embeddedEventLoop.advanceTime(by: .milliseconds(500))
        #expect(fixture.session.frames.map(\.seq) == Array(1...14))
        #expect(fixture.session.farewells.isEmpty)
    }

    @Test func `flooding does not keep a stranger connected`() throws {
        var limits = ConnectionLimits()
        limits.requestsPerSecond = 1
        limits.timeToAuthenticate = .seconds(2)
        let fixture = try Fixture(limits)
        for seq in 1...100 { try fixture.channel.writeInbound(ping(UInt32(seq))) }
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(fixture.session.farewells == ["not_authenticated"])
    }

    @Test func `a peer that takes nothing is closed in the end`() throws {
        var limits = ConnectionLimits()
        limits.stuck = .seconds(5)
        let fixture = try Fixture(limits)
        fixture.connection.authenticated()
        fixture.setWritable(false)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        // The peer reads some output from time to time.
        fixture.setWritable(true)
        fixture.setWritable(false)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(!fixture.session.isClosed)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(3))
        #expect(fixture.session.isClosed)
        #expect(fixture.session.farewells.isEmpty)
    }

    @Test func `a peer that takes nothing is closed in the end, even if its request is under way`() throws {
        var limits = ConnectionLimits()
        limits.stuck = .seconds(5)
        let fixture = try Fixture(limits, idle: .seconds(1))
        fixture.connection.authenticated()
        fixture.connection.hold()
        fixture.setWritable(false)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(4))
        #expect(!fixture.session.isClosed)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(6))
        #expect(fixture.session.isClosed)
    }

    @Test func `what the server has not read yet is no silence`() throws {
        let fixture = try Fixture(idle: .seconds(10))
        fixture.connection.authenticated()
        // Frames that do not show that the peer is alive would be handled here. As in LiveRoom, the session does not
        // reset the idle timer.
        for _ in 0..<30 {
            fixture.connection.inputIsBacklogged()
            fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(1))
        }
        #expect(fixture.session.farewells.isEmpty)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(3))
        #expect(fixture.session.farewells == ["idle"])
    }

    @Test func `a peer that does not read loses text then the connection`() throws {
        var limits = ConnectionLimits()
        limits.outboundQueueBytes = 40
        let fixture = try Fixture(limits)
        fixture.setWritable(false)
        for number in 0...9 { fixture.connection.write(.text) { $0.writeString("text\(number)    ") } }
        fixture.connection.write(.control) { $0.writeString("important ") }
        #expect(try fixture.output().isEmpty)
        #expect(!fixture.connection.keepsUp)
        fixture.setWritable(true)
        #expect(try fixture.output().joined() == "text7    text8    text9    important ")

        fixture.setWritable(false)
        for _ in 0..<5 { fixture.connection.write(.control) { $0.writeString("important ") } }
        #expect(fixture.session.isClosed)
    }

    @Test func `a long answer waits for a peer that reads late, and the next request waits for the answer`() throws {
        var limits = ConnectionLimits()
        limits.outboundQueueBytes = 100
        let fixture = try Fixture(limits)
        fixture.setWritable(false)
        let entry = String(repeating: "e", count: 60)
        let answer = String(repeating: "a", count: 80)
        fixture.connection.write { $0.writeString(entry) }
        fixture.connection.ask { (done: @escaping @Sendable (Result<String, HermesError>) -> Void) in
            done(.success(answer))
        } reading: {
            $0.utf8.count
        } then: { result in
            if case .success(let text) = result { fixture.connection.write { $0.writeString(text) } }
        }
        fixture.channel.embeddedEventLoop.run()
        #expect(!fixture.session.isClosed)
        #expect(!fixture.connection.takesFrames)
        #expect(try fixture.output().isEmpty)

        fixture.setWritable(true)
        fixture.channel.embeddedEventLoop.run()
        #expect(try fixture.output().joined() == entry + answer)
        #expect(fixture.connection.takesFrames)
        #expect(!fixture.session.isClosed)
    }

    @Test func `an answer that waits ends with its connection`() throws {
        var limits = ConnectionLimits()
        limits.outboundQueueBytes = 100
        let fixture = try Fixture(limits)
        fixture.setWritable(false)
        fixture.connection.write { $0.writeString(String(repeating: "e", count: 60)) }
        var isWritten = false
        fixture.connection.ask { (done: @escaping @Sendable (Result<Int, HermesError>) -> Void) in
            done(.success(1))
        } then: { _ in
            isWritten = true
        }
        fixture.channel.embeddedEventLoop.run()
        _ = try fixture.channel.finish(acceptAlreadyClosed: true)
        #expect(!isWritten)
        #expect(fixture.connection.backlog?.waitingAnswers.isEmpty == true)
    }

    @Test func `tells when what was written has gone`() throws {
        let fixture = try Fixture()
        fixture.connection.write { $0.writeString("entry") }
        fixture.connection.reportWritten(5)
        #expect(fixture.session.marks.isEmpty)
        #expect(try fixture.output() == ["entry"])
        #expect(fixture.session.marks == [5])
    }

    @Test func `a connection that is gone is forgotten`() throws {
        let fixture = try Fixture()
        #expect(fixture.connection.loop.connectionCount == 1)
        _ = try fixture.channel.finish()
        #expect(fixture.session.isClosed)
        #expect(fixture.connection.loop.connectionCount == 0)
        // Late messages from the core have no recipient.
        fixture.connection.loop.post(.ended(fixture.connection, .revoked))
        fixture.channel.embeddedEventLoop.run()
        #expect(fixture.session.farewells.isEmpty)
    }

    @Test func `a peer that is gone at the farewell is counted once`() throws {
        let fixture = try Fixture()
        fixture.session.isGoneAtTheFarewell = true
        #expect(fixture.connection.listener.openCount == 1)
        fixture.connection.end(.shuttingDown)
        fixture.channel.embeddedEventLoop.advanceTime(by: .seconds(10))
        #expect(fixture.session.isClosed)
        #expect(fixture.connection.listener.openCount == 0)
        #expect(fixture.connection.loop.connectionCount == 0)
    }

    // MARK: Ends

    @Test func `a peer that closes is closed at the end of the tick, with what was written to it`() throws {
        let fixture = try Fixture()
        fixture.connection.write { $0.writeString("last") }
        fixture.channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(!fixture.session.isClosed)
        #expect(try fixture.output() == ["last"])
        #expect(fixture.session.isClosed)
        #expect(fixture.session.farewells.isEmpty)
    }

    @Test func `of many peers that close at once, each gets its turn and none keeps the loop`() throws {
        let group = EmbeddedEventLoop()
        let loop = try #require(LoopContexts(group)[group])
        let state = ListenerState(
            name: "test",
            limits: ConnectionLimits(),
            idleTimeout: .seconds(60),
            maxFrameBytes: 100,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        let count = LoopContext.maxClosesAtOnce * 2 + 1
        let channels = try (0..<count).map { _ in
            let connection = Connection(loop: loop, listener: state, requiresAuthentication: false)
            let handler = ConnectionHandler<RecordingConnection>(
                connection: connection,
                side: RecordingConnection(connection)
            )
            let channel = EmbeddedChannel(handler: handler, loop: group)
            try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            return channel
        }
        #expect(loop.connectionCount == count)
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        var open: [Int] = []
        for _ in 0..<4 {
            group.run()
            open.append(loop.connectionCount)
            group.advanceTime(by: .milliseconds(1))
        }
        #expect(open.first == count - LoopContext.maxClosesAtOnce)
        #expect(open.last == 0)
        for channel in channels { #expect(!channel.isActive) }
    }
}
