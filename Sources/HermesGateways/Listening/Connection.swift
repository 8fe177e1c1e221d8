// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import Logging
package import NIOCore

/// One accepted connection, whatever its protocol: output, deadlines, limits, the end.
///
/// State: confined to its event loop; what other threads do with it is to hand it to its loop's mailbox.
/// Idle connections hold no buffers, timers or tasks.
package final class Connection: @unchecked Sendable, DeadlineWheelEntry {  // Confined to its loop, see above.
    package let loop: LoopContext
    package let listener: ListenerState
    let tally: ConnectionTally
    /// Who is behind the connection, where a proxy told.
    private let peer: SocketAddress?
    private let carrier: Carrier
    private let countedAs: ConnectionCounter.Address?
    /// The common name of the peer's certificate, where the listener takes that for its user name.
    package internal(set) var certificateName: String?
    /// The peer's certificate, where that may be taken back.
    var certificate: CertificateNames?
    /// Nil before it is in a pipeline and after it is closed.
    var context: ChannelHandlerContext?
    /// The session; nil after the end.
    var events: (any ConnectionEvents)?
    /// Reads on when nothing keeps it from it.
    var reader: (any ConnectionReader)?

    // Output: see Connection+Output.swift. Unchecked, here and below: all access is on one loop, and for each frame.
    @exclusivity(unchecked)
    var pending = ByteBuffer()
    @exclusivity(unchecked)
    var queue = OutboundQueue()
    @exclusivity(unchecked)
    var isWritable = true
    @exclusivity(unchecked)
    var isDirty = false
    @exclusivity(unchecked)
    var hasUnflushedWrites = false
    /// What is reported once all that was written so far has gone.
    var writtenMark: UInt64?

    // Input.
    @exclusivity(unchecked)
    private(set) var pauses: Pause = []
    private var holds = 0
    private var unanswered = 0
    // Costs: see Connection+Costs.swift.
    var bucket: TokenBucket
    /// What was charged and is not told to the budgets of account and address yet.
    var unsettled = 0
    /// Since when the connection is slowed down again and again; and when it last was.
    var throttledSince: Duration?
    var lastThrottledAt: Duration?
    /// The end of the pause in reading.
    var throttledUntil = NIODeadline.uptimeNanoseconds(0)
    /// Who the connection acts as; nil for strangers and anonymous clients. For budgets alone.
    package var account: UserID?
    private(set) lazy var budgetAddress = countedAs ?? ConnectionCounter.Address(remoteAddress)

    // Memory: see Connection+Memory.swift.
    /// As it was told to the loop.
    var heldBytes = 0
    var unreadBytes = 0
    var sessionBytes = 0
    private(set) var unansweredBytes = 0

    /// What it has sent while it was not authenticated.
    private var loginShare: LoginBudget.Share?

    // Life.
    package private(set) var isAuthenticated: Bool
    @exclusivity(unchecked)
    private(set) var phase: Phase = .open
    private let openedAt: UInt32
    /// After this long without a sign of life the connection is closed.
    private var idleTicks: UInt32
    @exclusivity(unchecked)
    private var lastLifeAt: UInt32
    private var endsAt: UInt32 = 0
    /// When the session wants to be called; `.max`: not at all.
    private var wakesAt = UInt32.max
    /// Since when the peer takes nothing of what is written to it; nil while it does.
    private var stuckSince: UInt32?
    /// When a read last brought so much that more was waiting behind it.
    private var backloggedAt: UInt32?
    package var wheelPosition: DeadlineWheelPosition?
    var indexInLoop: Int?

    /// Why a connection is not read from.
    struct Pause: OptionSet {
        let rawValue: UInt8
        static let output = Pause(rawValue: 1)
        static let unanswered = Pause(rawValue: 2)
        static let held = Pause(rawValue: 4)
        static let throttled = Pause(rawValue: 8)
    }

    enum Phase {
        case open
        /// Farewell was said; what is written goes out, what comes is ignored.
        case ending
        case closed
    }

    /// How a connection comes into being.
    package struct Opening {
        package let loop: LoopContext
        /// Who is behind it, where that is not its remote address.
        package var peer: SocketAddress?
        /// What the connection is counted as until it is closed; nil: somebody else sees to that.
        package var countedAs: ConnectionCounter.Address?
        /// What lies between the socket and the handler.
        package var carrier: Carrier

        package init(
            loop: LoopContext,
            peer: SocketAddress? = nil,
            countedAs: ConnectionCounter.Address? = nil,
            carrier: Carrier = .plain
        ) {
            self.loop = loop
            self.peer = peer
            self.countedAs = countedAs
            self.carrier = carrier
        }
    }

    /// What carries a connection's bytes.
    package enum Carrier: Sendable {
        case plain
        /// The handshake is still to come.
        case tls
        case webSocket
    }

    /// - Parameter requiresAuthentication: whether the deadline for authentication holds.
    package convenience init(loop: LoopContext, listener: ListenerState, requiresAuthentication: Bool) {
        self.init(Opening(loop: loop), listener: listener, requiresAuthentication: requiresAuthentication)
    }

    init(_ opening: Opening, listener: ListenerState, requiresAuthentication: Bool) {
        loop = opening.loop
        peer = opening.peer
        carrier = opening.carrier
        countedAs = opening.countedAs
        self.listener = listener
        tally = loop.tally(for: listener)
        isAuthenticated = !requiresAuthentication
        bucket = TokenBucket(burst: listener.limits.requestsPerSecond, now: loop.uptime)
        openedAt = loop.now
        idleTicks = listener.idleTicks
        lastLifeAt = openedAt
    }

    /// The peer's address, the one behind a proxy if that told; nil if it is not known any more.
    package var remoteAddress: SocketAddress? { peer ?? context?.remoteAddress }

    /// The peer's address without port, as the core wants it for its limits.
    package var remoteHost: String? { remoteAddress?.ipAddress }

    /// Whether the session may still write.
    package var isOpen: Bool { phase == .open }

    // MARK: Life

    /// The peer gave a sign of life.
    package func touch() { lastLifeAt = loop.coarseNow }

    /// A read brought as much as it could: what the peer sent since, signs of life among it, may still be on its way.
    func inputIsBacklogged() { backloggedAt = loop.coarseNow }

    private var isInputBacklogged: Bool {
        guard let backloggedAt else { return false }
        return loop.coarseNow &- backloggedAt <= 2
    }

    /// The peer takes what is written to it, or has stopped to.
    func stuckChanged(_ isStuck: Bool) {
        guard isStuck != (stuckSince != nil) else { return }
        stuckSince = isStuck ? loop.coarseNow : nil
        if isStuck, phase == .open { loop.schedule(self, due: due) }
    }

    /// The peer is known: the larger frame limit and the idle deadline hold from now on.
    package func authenticated() {
        isAuthenticated = true
        releaseLoginShare()
        lastLifeAt = loop.coarseNow
        if phase == .open { loop.schedule(self, due: due) }
    }

    /// The peer has said how long it may be silent.
    ///
    /// - Parameter timeout: nil: for ever; then a peer that is lost is found when something is sent to it.
    package func keepAlive(_ timeout: Duration?) {
        idleTicks = timeout.map(LoopContext.ticks) ?? .max / 4
        if phase == .open { loop.schedule(self, due: due) }
    }

    /// Has ``ConnectionEvents/woken()`` called once after that time, at the next tick of ``LoopContext/tick``; a later call
    /// takes the place of the one before.
    ///
    /// - Parameter time: nil: not at all.
    package func wake(in time: Duration?) {
        guard time != nil || wakesAt != .max else { return }
        wakesAt = time.map { loop.now &+ LoopContext.ticks($0) } ?? .max
        if phase == .open { loop.schedule(self, due: due) }
    }

    private var due: UInt32 {
        switch phase {
        case .closed: .max
        case .ending: endsAt
        case .open: min(lifeDue, wakesAt, stuckSince.map { $0 &+ listener.stuckTicks } ?? .max)
        }
    }

    private var lifeDue: UInt32 {
        isAuthenticated ? lastLifeAt &+ idleTicks : openedAt &+ listener.authenticationTicks
    }

    /// The wheel came round: look whether it is really time.
    func deadlineReached() {
        let due = due
        guard due <= loop.coarseNow else { return loop.schedule(self, due: due) }
        switch phase {
        case .closed: break
        case .ending: context?.close(promise: nil)
        case .open where wakesAt <= loop.coarseNow:
            wakesAt = .max
            // What else is due has its turn at the next tick.
            loop.schedule(self, due: self.due)
            events?.woken()
        case .open where lifeDue > loop.coarseNow:
            end(.slowReader)
        case .open where pauses.contains(.held) || isAuthenticated && (isInputBacklogged || isThrottled):
            // Our own delay is not the peer's fault.
            loop.schedule(self, due: loop.coarseNow &+ 2)
        case .open: end(isAuthenticated ? .idle : .notAuthenticated)
        }
    }

    /// The connection is in its pipeline.
    func start(_ context: ChannelHandlerContext) {
        self.context = context
        tally.opened += 1
        listener.opened()
        loop.add(self)
        loop.schedule(self, due: due)
    }

    /// Ends the connection: farewell, flush, close, with some grace for the peer to read it all. Does nothing if it is
    /// ending already.
    package func end(_ reason: CloseReason) {
        guard phase == .open, let context else { return }
        listener.metrics.ended(reason)
        listener.logger.debug("connection ended", metadata: ["reason": "\(reason.label)"])
        if case .slowReader = reason {
            phase = .ending
            return context.close(promise: nil)
        }
        // What waits is whole frames: without them the peer still understands the last words.
        if case .memory = reason { queue.removeAll() }
        events?.farewell(reason)
        // Writing to a peer that is gone closes the channel at once: then nothing is left to end.
        guard phase == .open else { return }
        phase = .ending
        measureMemory()
        if case .goodbye = reason, carrier == .plain, hasNothingToWrite {
            return context.close(promise: nil)
        }
        endsAt = loop.now &+ listener.graceTicks
        loop.schedule(self, due: endsAt)
        writeOutForGood()
        resumeForGood()
    }

    /// The peer has closed, and it is this connection's turn.
    func closeAfterPeer() { context?.close(promise: nil) }

    /// The channel is gone.
    func closed() {
        guard phase != .closed else { return }
        phase = .closed
        measureMemory()
        tally.closed += 1
        loop.remove(self)
        listener.closed()
        if let countedAs { listener.counter?.remove(countedAs) }
        releaseLoginShare()
        events?.closed()
        events = nil
        reader = nil
        context = nil
        pending = ByteBuffer()
        queue.removeAll()
    }

    // MARK: Before authentication

    /// Bytes came. While the peer is not known they count against what all strangers together may send, which may end this
    /// connection or another.
    func chargeLogin(_ bytes: Int) {
        guard !isAuthenticated, phase == .open, let budget = listener.loginBudget else { return }
        let share =
            loginShare
            ?? budget.share { [weak self] in
                guard let self else { return }
                loop.post(.run { self.end(.loginBudget) })
            }
        loginShare = share
        budget.charge(bytes, to: share)
    }

    private func releaseLoginShare() {
        guard let share = loginShare else { return }
        loginShare = nil
        listener.loginBudget?.release(share)
    }

    // MARK: Reading

    /// Whether frames are cut and given to the session now.
    var takesFrames: Bool { pauses.isEmpty && phase == .open }

    /// Whether the channel may be read. What arrives while the connection ends is ignored, but its end must be seen.
    var mayRead: Bool { pauses.isEmpty || phase != .open }

    func pause(_ reason: Pause) { pauses.insert(reason) }

    func resume(_ reason: Pause) {
        guard pauses.contains(reason) else { return }
        pauses.remove(reason)
        if pauses.isEmpty { reader?.readOn() }
    }

    private func resumeForGood() {
        pauses = []
        reader?.readOn()
    }

    /// A request that takes its time has begun: nothing is read until ``release()``, so that answers keep their order
    /// and a peer cannot start many at once. Calls nest.
    package func hold() {
        holds += 1
        pause(.held)
    }

    /// The request is answered. Each ``hold()`` needs one.
    package func release() {
        guard holds > 0 else { return assertionFailure("release without hold") }
        holds -= 1
        if holds == 0 { resume(.held) }
    }

    // MARK: Sending messages

    /// Gives a message to the core; the answer comes as ``ConnectionEvents/sent(_:_:)`` on the loop, in the order of
    /// the calls. While too many are unanswered the connection is not read from.
    ///
    /// - Parameter correlation: the session's own, comes back with the answer.
    package func send(_ draft: MessageDraft, from principal: Principal, correlation: UInt64, messages: MessageService) {
        let bytes = draft.content.bytes.count
        requestStarted(bytes: bytes)
        charge(.bytes(bytes))
        messages.send(draft, from: principal) { result in
            self.loop.post(.sent(self, correlation: correlation, result, bytes: bytes))
        }
    }

    func sendCompleted(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>, bytes: Int) {
        if case .success(let receipt) = result, phase == .open { charge(.recipients(receipt.recipientCount - 2)) }
        events?.sent(correlation, result)
        requestAnswered(bytes: bytes)
    }

    /// A request was given away that is answered later, without a hold. While too many are, or those that are hold too much,
    /// the connection is not read from.
    ///
    /// - Parameter bytes: what it holds in memory until then, about.
    package func requestStarted(bytes: Int = 0) {
        unanswered += 1
        unansweredBytes += bytes
        if hasTooMuchUnanswered { pause(.unanswered) }
        measureMemory()
    }

    /// Such a request was answered.
    package func requestAnswered(bytes: Int = 0) {
        unanswered -= 1
        unansweredBytes -= bytes
        if !hasTooMuchUnanswered { resume(.unanswered) }
        measureMemory()
    }

    private var hasTooMuchUnanswered: Bool {
        unanswered >= ListenerState.maxUnanswered || unansweredBytes >= ListenerState.maxUnansweredBytes
    }

    var isThrottled: Bool { pauses.contains(.throttled) }
}

/// The part of the handler that a connection calls.
protocol ConnectionReader: AnyObject {
    /// Cuts frames from what is there already, then reads.
    func readOn()
}
