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

/// Budgets across connections, for memory and for the cost of requests.
@Suite(.inTurns) struct BudgetTests {
    typealias Session = ConnectionHandlerTests.RecordingConnection

    /// Connections on one event loop with a stopped clock.
    final class Fixture {
        let loop = EmbeddedEventLoop()
        let memory: MemoryBudget
        let rates: SharedRates
        let context: LoopContext
        private let state: ListenerState

        init(_ limits: ConnectionLimits = ConnectionLimits(), memory bytes: Int = .max) throws {
            memory = MemoryBudget(limit: bytes)
            rates = SharedRates(
                perAccount: limits.requestsPerSecondPerAccount,
                perAddress: limits.requestsPerSecondPerAddress
            )
            context = try #require(LoopContexts(loop, memory: memory)[loop])
            state = ListenerState(
                name: "test",
                limits: limits,
                idleTimeout: .seconds(3_600),
                maxFrameBytes: 60_000,
                rates: rates,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        }

        func connect(_ address: String = "127.0.0.1") throws -> (session: Session, channel: EmbeddedChannel) {
            let peer = try SocketAddress(ipAddress: address, port: 1)
            let connection = Connection(
                Connection.Opening(loop: context, peer: peer),
                listener: state,
                requiresAuthentication: false
            )
            let session = Session(connection)
            let channel = EmbeddedChannel(
                handler: ConnectionHandler<Session>(connection: connection, side: session),
                loop: loop
            )
            try channel.connect(to: peer).wait()
            return (session, channel)
        }

        /// Makes the peer stop reading.
        func stop(_ channel: EmbeddedChannel) {
            channel.isWritable = false
            channel.pipeline.fireChannelWritabilityChanged()
        }
    }

    private let chunk = ByteBuffer(repeating: 1, count: 50_000)

    private func ping(_ count: Int) throws -> ByteBuffer {
        var bytes = ByteBuffer()
        for seq in 1...count { try IMPBFrame(seq: UInt32(seq), type: .ping, body: ByteBuffer()).write(into: &bytes) }
        return bytes
    }

    // MARK: Memory

    @Test func `what waits is counted to the byte, and nothing is left of it at the end`() throws {
        let fixture = try Fixture()
        let (session, channel) = try fixture.connect()
        fixture.stop(channel)
        for _ in 1...4 { session.connection.write(.text, frame: chunk) }
        #expect(session.connection.heldBytes == 4 * (50_000 + Connection.frameOverhead))
        session.connection.sessionHolds(1_000)
        try channel.writeInbound(ByteBuffer(bytes: Array(try ping(1).readableBytesView.prefix(3))))
        #expect(session.connection.heldBytes > 4 * 50_000 + 1_000)
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(fixture.memory.used == session.connection.heldBytes)
        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
        session.connection.sessionHolds(0)
        try channel.writeInbound(ByteBuffer(bytes: Array(try ping(1).readableBytesView.dropFirst(3))))
        #expect(session.connection.heldBytes == 0)
        fixture.stop(channel)
        session.connection.write(.control, frame: chunk)
        _ = try channel.finish(acceptAlreadyClosed: true)
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(fixture.memory.used == 0)
    }

    /// Passes no output to the system, as if the system's buffers for the peer were full.
    private final class Dam: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        var writes = 0
        var isOpen = false

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            writes += 1
            context.write(data, promise: promise)
        }

        func flush(context: ChannelHandlerContext) { if isOpen { context.flush() } }
    }

    /// Each write keeps a buffer of 512 bytes or more, but NIO counts only the bytes to write.
    @Test func `small output for a peer that does not read is collected in few buffers, and counted`() throws {
        let fixture = try Fixture()
        let (session, channel) = try fixture.connect()
        let dam = Dam()
        try channel.pipeline.syncOperations.addHandler(dam, position: .first)
        var sent = ByteBuffer()
        for number in 0..<10_000 {
            let frame = ByteBuffer(string: "frame \(number);")
            sent.writeImmutableBuffer(frame)
            session.connection.write(.text, frame: frame)
            fixture.loop.run()
            // The first writes have not been counted yet.
            if number > 10 { #expect(session.connection.heldBytes >= sent.readableBytes) }
        }
        #expect(dam.writes < 20)
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(fixture.memory.used == session.connection.heldBytes)
        dam.isOpen = true
        channel.flush()
        fixture.loop.run()
        #expect(session.connection.heldBytes == 0)
        // Output is written at once again.
        session.connection.write(.text, frame: ByteBuffer(string: "last"))
        sent.writeString("last")
        fixture.loop.run()
        var received = ByteBuffer()
        while let part = try channel.readOutbound(as: ByteBuffer.self) { received.writeImmutableBuffer(part) }
        #expect(received == sent)
    }

    private final class Viewer: TopicSubscriber {
        private let connection: Connection

        init(_ connection: Connection) { self.connection = connection }

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
            connection.write(.text, frame: delivery.publication.payload)
        }
    }

    /// Records that a connection's output is written.
    private final class Noting: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        private let note: () -> Void

        init(_ note: @escaping () -> Void) { self.note = note }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            note()
            context.write(data, promise: promise)
        }
    }

    @Test func `other output goes out before that of a publication to very many`() throws {
        let fixture = try Fixture()
        var order: [Int] = []
        let topic = try #require(TopicName("crowd"))
        var viewers: [(Viewer, TopicSubscription)] = []
        let connections = try (0..<102).map { number in
            let (session, channel) = try fixture.connect()
            try channel.pipeline.syncOperations.addHandler(Noting { order.append(number) }, position: .first)
            if number < 101 {
                let viewer = Viewer(session.connection)
                viewers.append((viewer, fixture.context.topics.subscribe(viewer, to: topic)))
            }
            return session.connection
        }
        let text = Publication(topic: topic, payload: ByteBuffer(string: "text"), kind: .plain)
        #expect(fixture.context.topics.publish(text).localCount == 101)
        // One answer is for a viewer, and the other for another client.
        for number in [100, 101] { connections[number].write(.control, frame: ByteBuffer(string: "answer")) }
        fixture.loop.run()
        #expect(order == [100, 101] + (0..<100), "each once")
        order = []
        #expect(fixture.context.topics.publish(text).localCount == 101)
        fixture.loop.run()
        #expect(order == Array(0..<101))
        for (_, subscription) in viewers { fixture.context.topics.unsubscribe(subscription) }
    }

    @Test func `a publisher waits while a crowd is behind`() throws {
        let fixture = try Fixture()
        let topic = try #require(TopicName("crowd"))
        let topics = fixture.context.topics
        let crowd = try (0..<200).map { _ in try fixture.connect() }
        let viewers = crowd.map { Viewer($0.session.connection) }
        let subscriptions = viewers.map { topics.subscribe($0, to: topic) }
        let (publisher, publisherChannel) = try fixture.connect()
        fixture.loop.run()
        // The simulated clock lets a turn read the time twice.
        var looks: UInt64 = 0
        fixture.context.replacedTurnClock = {
            looks += 1
            return .uptimeNanoseconds(looks * 15_000_000)
        }
        func publish(_ text: String) -> CrowdTicket? {
            let outcome = topics.publish(
                Publication(topic: topic, payload: ByteBuffer(string: text), kind: .plain)
            )
            publisher.connection.keepPace(with: outcome)
            return outcome.ticket
        }
        // The loop has already written output.
        #expect(publish("x") == nil)
        fixture.loop.advanceTime(by: .milliseconds(10))
        let text = String(repeating: "x", count: 4_000)
        var count = 1
        var ticket: CrowdTicket?
        while ticket == nil, count < 200 {
            ticket = publish(text)
            count += 1
        }
        #expect(count > 70 && count < 100, "64 MiB for 200")
        let waiting = try #require(ticket)
        try publisherChannel.writeInbound(ping(1))
        #expect(publisher.frames.isEmpty && publisher.connection.heldBytes > text.utf8.count)
        fixture.loop.run()
        #expect(topics.isWaiting(waiting) && publisher.frames.isEmpty, "not all have got what came before")
        for _ in 0..<400 { fixture.loop.advanceTime(by: TurnQueue.pause) }
        fixture.loop.advanceTime(by: .milliseconds(2))
        #expect(publisher.frames.count == 1 && publisher.connection.heldBytes == 0)
        for (_, channel) in crowd {
            var bytes = 0
            while let part = try channel.readOutbound(as: ByteBuffer.self) { bytes += part.readableBytes }
            #expect(bytes == 1 + (count - 1) * text.utf8.count)
        }
        #expect(publish("x") == nil)
        for subscription in subscriptions { topics.unsubscribe(subscription) }
    }

    /// A subscriber that counts its publications and has no connection.
    private final class Silent: TopicSubscriber {
        var count = 0

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) { count += 1 }
    }

    @Test func `a crowd without output gets the rest, too`() throws {
        let fixture = try Fixture()
        let topic = try #require(TopicName("crowd"))
        let topics = fixture.context.topics
        let silent = (0..<100).map { _ in Silent() }
        let subscriptions = silent.map { topics.subscribe($0, to: topic) }
        // The loop has already written output.
        let (session, _) = try fixture.connect()
        session.connection.write(.control, frame: ByteBuffer(string: "x"))
        fixture.loop.run()
        let text = Publication(topic: topic, payload: ByteBuffer(repeating: 1, count: 4_000), kind: .plain)
        let tickets = (0..<400).compactMap { _ in topics.publish(text).ticket }
        #expect(tickets.count > 200 && silent[0].count == 400 - tickets.count)
        fixture.loop.advanceTime(by: .milliseconds(10))
        #expect(silent.allSatisfy { $0.count == 400 })
        for subscription in subscriptions { topics.unsubscribe(subscription) }
    }

    @Test func `a buffer that is still being written is replaced by a small one`() {
        var pool = BufferPool()
        var large = pool.take()
        large.writeRepeatingByte(1, count: 50_000)
        pool.giveBack(large)
        let next = pool.take()
        #expect(next.storageCapacity == BufferPool.newBufferBytes)
        withExtendedLifetime(large) {}
    }

    /// Holds frames without sending them, as TLS does while the peer does not read.
    private final class Holder: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer

        var promises: [EventLoopPromise<Void>] = []

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            if let promise { promises.append(promise) }
        }
    }

    @Test(arguments: [true, false])
    func `a large frame that TLS has copied is counted until the system has it`(_ isCopied: Bool) throws {
        let fixture = try Fixture()
        let (session, channel) = try fixture.connect()
        #expect(!session.connection.isOutputCopied)
        session.connection.isOutputCopied = isCopied
        let holder = Holder()
        try channel.pipeline.syncOperations.addHandler(holder, position: .first)
        for _ in 1...3 { session.connection.write(.control, frame: chunk) }
        #expect(session.connection.heldBytes == (isCopied ? 150_000 : 0))
        for promise in holder.promises { promise.succeed() }
        #expect(session.connection.heldBytes == 0)
        _ = try? channel.finish(acceptAlreadyClosed: true)
    }

    @Test func `the largest loses what may be left out, the others nothing`() throws {
        let fixture = try Fixture(memory: 500_000)
        let (large, largeChannel) = try fixture.connect("127.0.0.1")
        let (small, smallChannel) = try fixture.connect("127.0.0.2")
        for channel in [largeChannel, smallChannel] { fixture.stop(channel) }
        small.connection.write(.text, frame: chunk)
        for _ in 1...10 { large.connection.write(.text, frame: chunk) }
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(small.connection.heldBytes > 50_000)
        #expect(large.connection.heldBytes == 0)
        #expect(large.connection.isOpen && small.connection.isOpen)
        #expect(fixture.memory.used == small.connection.heldBytes)
        #expect(fixture.memory.reclaimedBytes > 400_000)
    }

    @Test func `the largest that holds what must not be left out is closed and told why`() throws {
        let fixture = try Fixture(memory: 500_000)
        let (large, largeChannel) = try fixture.connect("127.0.0.1")
        let (small, smallChannel) = try fixture.connect("127.0.0.2")
        for channel in [largeChannel, smallChannel] { fixture.stop(channel) }
        small.connection.write(.control, frame: chunk)
        large.connection.sessionHolds(490_000)
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(large.farewells == ["memory"])
        #expect(small.farewells.isEmpty)
        fixture.loop.advanceTime(by: .seconds(5))
        #expect(large.isClosed && !small.isClosed)
        #expect(fixture.memory.used == small.connection.heldBytes)
    }

    @Test(arguments: [true, false])
    func `one that does not take its output is closed at once, for memory and for silence`(isMemory: Bool) throws {
        let fixture = try Fixture(memory: isMemory ? 500_000 : .max)
        let (session, channel) = try fixture.connect()
        let holder = Holder()
        try channel.pipeline.syncOperations.addHandler(holder, position: .first)
        let frames = (1...12).map { _ in ByteBuffer(repeating: 1, count: 70_000) }
        for frame in frames { session.connection.write(.control, frame: frame) }
        if !isMemory {
            fixture.stop(channel)
            fixture.loop.advanceTime(by: .seconds(3_605))
        } else {
            #expect(session.connection.heldBytes == 12 * 70_000)
            fixture.loop.advanceTime(by: .seconds(1))
        }
        #expect(session.isClosed && session.farewells.isEmpty, "it would not read a farewell")
        for promise in holder.promises { promise.fail(ChannelError.ioOnClosedChannel) }
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(fixture.memory.used == 0)
    }

    @Test func `those who share a frame pay for their part of it`() throws {
        let fixture = try Fixture(memory: 500_000)
        let frame = ByteBuffer(repeating: 1, count: 200_000)
        let sharers = try (0..<50).map { _ in try fixture.connect("127.0.0.1") }
        for (session, channel) in sharers {
            try channel.pipeline.syncOperations.addHandler(Holder(), position: .first)
            session.connection.write(.control, frame: frame)
        }
        #expect(fixture.context.heldBytes == 200_000)
        let (alone, _) = try fixture.connect("127.0.0.2")
        alone.connection.sessionHolds(400_000)
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(alone.farewells == ["memory"], "the others hold 200,000 together")
        #expect(sharers.allSatisfy { !$0.session.isClosed })
    }

    @Test func `many connections of one address pay before one of another that holds more than each`() throws {
        let fixture = try Fixture(memory: 500_000)
        let many = try (0..<20).map { _ in try fixture.connect("127.0.0.1").session }
        let one = try fixture.connect("127.0.0.2").session
        one.connection.sessionHolds(60_000)
        for session in many { session.connection.sessionHolds(30_000) }
        fixture.loop.advanceTime(by: .seconds(1))
        #expect(one.farewells.isEmpty)
        #expect(many.count { $0.farewells == ["memory"] } > 3)
        #expect(many.contains { $0.farewells.isEmpty })
        fixture.loop.advanceTime(by: .seconds(5))
        #expect(fixture.memory.used < 500_000)
    }

    // MARK: Costs

    @Test func `a request that causes much pauses the reading of its connection alone`() throws {
        var limits = ConnectionLimits()
        limits.requestsPerSecond = 100
        let fixture = try Fixture(limits)
        let (session, channel) = try fixture.connect()
        let (other, otherChannel) = try fixture.connect()
        session.connection.charge(.filters(300, isKept: false))
        try channel.writeInbound(ping(1))
        try otherChannel.writeInbound(ping(1))
        #expect(session.frames.isEmpty && other.frames.count == 1)
        fixture.loop.advanceTime(by: .milliseconds(1_900))
        #expect(session.frames.isEmpty)
        fixture.loop.advanceTime(by: .milliseconds(300))
        #expect(session.frames.count == 1)
        #expect(session.farewells.isEmpty)
    }

    @Test(arguments: [(200_000, true), (8_000, false)])
    func `long output to a few takes turns with others, short output goes out at once`(
        bytes: Int,
        mayWait: Bool
    ) throws {
        let fixture = try Fixture()
        let channels = try (0..<20).map { _ in try fixture.connect() }
        fixture.loop.run()
        // The simulated clock lets a turn read the time twice.
        var looks: UInt64 = 0
        fixture.context.replacedTurnClock = {
            looks += 1
            return .uptimeNanoseconds(looks * 15_000_000)
        }
        let frame = ByteBuffer(repeating: 1, count: bytes)
        for (session, _) in channels { session.connection.write(.control, frame: frame) }
        func written() throws -> Int {
            try channels.reduce(0) { try $0 + ($1.channel.readOutbound(as: ByteBuffer.self)?.readableBytes ?? 0) }
        }
        fixture.loop.run()
        let first = try written()
        #expect(first == (mayWait ? 2 : 20) * bytes)
        // The other connections get their turns later. Between the turns, the loop serves its connections.
        var total = first
        for _ in 0..<40 {
            fixture.loop.advanceTime(by: TurnQueue.pause)
            let more = try written()
            #expect(more <= 2 * bytes)
            total += more
        }
        #expect(total == 20 * bytes)
    }

    @Test func `an address and an account have budgets over all their connections`() throws {
        var limits = ConnectionLimits()
        limits.requestsPerSecondPerAddress = 1_000
        limits.requestsPerSecondPerAccount = 500
        for isAccount in [false, true] {
            let fixture = try Fixture(limits)
            let sessions = try (1...10).map { try fixture.connect(isAccount ? "127.0.0.\($0)" : "127.0.0.1") }
            if isAccount { for (session, _) in sessions { session.connection.account = UserID(7) } }
            let bystander = try fixture.connect("127.0.0.99")
            for (_, channel) in sessions { try channel.writeInbound(ping(400)) }
            try bystander.channel.writeInbound(ping(400))
            let taken = sessions.reduce(0) { $0 + $1.session.frames.count }
            #expect((isAccount ? 500 : 1_000) <= taken && taken < (isAccount ? 1_200 : 1_700))
            #expect(bystander.session.frames.count == 400)
            // All frames are handled in the end.
            fixture.loop.advanceTime(by: .seconds(60))
            #expect(sessions.allSatisfy { $0.session.frames.count == 400 })
        }
    }

    @Test func `who never stops to ask for too much is closed in the end, who does is not`() throws {
        var limits = ConnectionLimits()
        limits.requestsPerSecond = 10
        limits.throttled = .seconds(60)
        let fixture = try Fixture(limits)
        let (abuser, abusing) = try fixture.connect()
        let (busy, working) = try fixture.connect()
        for second in 0..<80 {
            if abuser.connection.isOpen { try abusing.writeInbound(ping(30)) }
            // This connection sends bursts with pauses between them.
            if second % 40 == 0 { try working.writeInbound(ping(30)) }
            fixture.loop.advanceTime(by: .seconds(1))
        }
        #expect(abuser.farewells == ["rate_limited"])
        #expect(busy.farewells.isEmpty)
        #expect(busy.frames.count == 60)
    }

    @Test func `the table of budgets is bounded`() {
        let rates = SharedRates(perAccount: 10, perAddress: 10)
        for number in UInt32(1)...200_000 {
            _ = rates.charge(1_000, to: .address(.v4(number)), now: .seconds(1))
        }
        #expect(rates.count <= SharedRates.maxEntries)
    }

    @Test func `more bytes of requests than a connection may have in progress wait`() throws {
        let fixture = try Fixture()
        let (session, channel) = try fixture.connect()
        session.connection.requestStarted(bytes: ListenerState.maxUnansweredBytes)
        try channel.writeInbound(ping(1))
        #expect(session.frames.isEmpty)
        session.connection.requestAnswered(bytes: ListenerState.maxUnansweredBytes)
        #expect(session.frames.count == 1)
        #expect(session.connection.heldBytes == 0)
        #expect(ListenerState.maxUnanswered == 1_024)
        #expect(ListenerState.maxUnansweredBytes == 256 << 10)
    }
}
