// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The state that the handlers of a message benchmark share. All handlers run on one event loop.
final class MessageRun {
    struct Result: Sendable {
        var seconds: Double
        var acknowledged: Int
        var delivered: Int
        var lost: Int
        var duplicates: Int
        var disorders: Int
        var holes: Int
        var failures: Int
        var firstFailure: String
        var endToEnd: LatencyHistogram
        var roundTrip: LatencyHistogram
    }

    let dialect: BenchDialect
    let window: Int
    let textBytes: Int
    /// The prefix that distinguishes the client ids of this run from those of other runs.
    let name: String
    private(set) var isRunning = false
    private(set) var loggedIn = 0
    private var senders: [PairHandler] = []
    private var isMeasuring = false
    private var measuredFrom: UInt64 = 0
    private var measuredTo: UInt64 = 0
    private var acknowledgedBefore = 0
    private var deliveredBefore = 0
    private var measured = (acknowledged: 0, delivered: 0)
    private var endToEnd = LatencyHistogram()
    private var roundTrip = LatencyHistogram()

    var sent = 0
    var acknowledged = 0
    var delivered = 0
    var duplicates = 0
    var disorders = 0
    var holes = 0
    var failures = 0
    private(set) var firstFailure = ""

    init(dialect: BenchDialect, window: Int, textBytes: Int) {
        self.dialect = dialect
        self.window = window
        self.textBytes = textBytes
        name = String(UInt32.random(in: 0...UInt32.max), radix: 36)
    }

    func ready(_ handler: PairHandler) {
        loggedIn += 1
        if handler.peer != nil { senders.append(handler) }
    }

    func failed(_ reason: String) {
        failures += 1
        if firstFailure.isEmpty { firstFailure = reason }
    }

    func start() {
        isRunning = true
        for sender in senders { sender.fill() }
    }

    func beginMeasuring() {
        endToEnd.reset()
        roundTrip.reset()
        acknowledgedBefore = acknowledged
        deliveredBefore = delivered
        measuredFrom = BenchStamp.now
        isMeasuring = true
    }

    func endMeasuring() {
        measuredTo = BenchStamp.now
        measured = (acknowledged - acknowledgedBefore, delivered - deliveredBefore)
        isMeasuring = false
        isRunning = false
    }

    func record(endToEnd nanoseconds: UInt64) { if isMeasuring { endToEnd.record(nanoseconds) } }
    func record(roundTrip nanoseconds: UInt64) { if isMeasuring { roundTrip.record(nanoseconds) } }

    var isDrained: Bool { acknowledged + failures >= sent && delivered >= acknowledged }

    var result: Result {
        Result(
            seconds: Double(measuredTo - measuredFrom) / 1e9,
            acknowledged: measured.acknowledged,
            delivered: measured.delivered,
            lost: max(0, acknowledged - delivered),
            duplicates: duplicates,
            disorders: disorders,
            holes: holes,
            failures: failures,
            firstFailure: firstFailure,
            endToEnd: endToEnd,
            roundTrip: roundTrip
        )
    }
}

/// The connection of one account of a pair. The sender keeps the window full, and the receiver checks the messages that
/// arrive. Both acknowledge the entries of their inboxes.
final class PairHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let run: MessageRun
    private let account: BenchAccount
    /// The account to which this account sends; nil if this account only receives.
    let peer: UInt32?
    private var context: ChannelHandlerContext?
    private var inbox = BenchInbox()
    private var outbound = ByteBuffer()
    private var isLoggedIn = false
    /// The next number to send.
    private var nextNumber: UInt64 = 0
    /// The times at which the unacknowledged messages were sent, by their number modulo the window.
    private var sentAt: [UInt64]
    private var inFlight = 0
    /// The number that the next received message should have.
    private var expected: UInt64 = 0
    private var inboxSeq: UInt64 = 0
    private var isInboxKnown = false
    private var acknowledgedSeq: UInt64 = 0
    private var acknowledger: RepeatedTask?

    init(run: MessageRun, account: BenchAccount, peer: UInt32?) {
        self.run = run
        self.account = account
        self.peer = peer
        sentAt = Array(repeating: 0, count: max(1, run.window))
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        do {
            try run.dialect.writeLogin(account, into: &outbound)
        } catch {
            run.failed("\(error)")
        }
        flush()
        let this = NIOLoopBound(self, eventLoop: context.eventLoop)
        acknowledger = context.eventLoop.scheduleRepeatedTask(
            initialDelay: .milliseconds(50),
            delay: .milliseconds(50)
        ) { _ in
            this.value.acknowledge()
            this.value.flush()
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        acknowledger?.cancel()
        self.context = nil
        if run.isRunning || !isLoggedIn { run.failed("the server closed a connection") }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let now = BenchStamp.now
        inbox.add(unwrapInboundIn(data)) { bytes in
            run.dialect.scan(bytes) { received($0, now: now) }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if inboxSeq - acknowledgedSeq >= 64 { acknowledge() }
        fill()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    /// Sends until the window is full, in one write.
    func fill() {
        if run.isRunning, isLoggedIn, let peer {
            let now = BenchStamp.now
            while inFlight < run.window {
                run.dialect.writeSend(
                    id: 16 + nextNumber,
                    to: peer,
                    clientID: "\(run.name)-\(nextNumber)",
                    number: nextNumber,
                    now: now,
                    textBytes: run.textBytes,
                    into: &outbound
                )
                sentAt[Int(nextNumber % UInt64(sentAt.count))] = now
                nextNumber += 1
                inFlight += 1
                run.sent += 1
            }
        }
        flush()
    }

    private func received(_ incoming: BenchDialect.Incoming, now: UInt64) {
        switch incoming {
        case .loggedIn(let acknowledged):
            isLoggedIn = true
            inboxSeq = acknowledged
            acknowledgedSeq = acknowledged
            run.ready(self)
        case .receipt(let id, let seq):
            guard id >= 16 else { return }
            inFlight -= 1
            run.acknowledged += 1
            let at = sentAt[Int((id - 16) % UInt64(sentAt.count))]
            run.record(roundTrip: now > at ? now - at : 1)
            arrived(seq)
        case .message(let seq, let stamp):
            arrived(seq)
            guard let stamp, run.isRunning || run.sent > 0 else { return }
            if stamp.number < expected {
                run.duplicates += 1
                return
            }
            if stamp.number > expected { run.disorders += 1 }
            expected = stamp.number + 1
            run.delivered += 1
            run.record(endToEnd: now > stamp.nanoseconds ? now - stamp.nanoseconds : 1)
        case .failure(let id, let reason):
            if id >= 16 { inFlight -= 1 }
            run.failed(reason)
        case .kicked(let reason):
            run.failed("the server ended a connection: \(reason)")
        case .other:
            return
        }
    }

    /// Checks the seq of an inbox entry. Receipts and messages together make up the inbox, so their seqs must have no
    /// holes.
    private func arrived(_ seq: UInt64) {
        guard seq > 0 else { return }
        if seq > inboxSeq + 1, isInboxKnown { run.holes += 1 }
        isInboxKnown = true
        inboxSeq = max(inboxSeq, seq)
    }

    private func acknowledge() {
        guard isLoggedIn, inboxSeq > acknowledgedSeq else { return }
        acknowledgedSeq = inboxSeq
        try? run.dialect.writeAcknowledgement(upTo: inboxSeq, into: &outbound)
    }

    private func flush() {
        guard outbound.readableBytes > 0, let context else { return }
        context.writeAndFlush(wrapOutboundOut(outbound), promise: nil)
        outbound = ByteBuffer()
    }
}
