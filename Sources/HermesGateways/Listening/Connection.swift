// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import Logging
package import NIOCore

/// One accepted connection of any protocol: its output, its deadlines, its limits and its end.
///
/// State: confined to the connection's event loop. Other threads only pass the connection to the mailbox of that
/// loop. Idle connections hold no buffers, timers or tasks.
package final class Connection: @unchecked Sendable, DeadlineWheelEntry {  // Confined to its loop, see above.
    package let loop: LoopContext
    package let listener: ListenerState
    let tally: ConnectionTally
    /// The client's address that a proxy gave; nil if there is none.
    private let peer: SocketAddress?
    /// The address that pays for requests and memory; nil until it is needed, if the connection is not counted.
    var payer: ConnectionCounter.Address?
    /// Whether the connection is counted under `payer` until it is closed.
    private let isCounted: Bool
    /// Whether the remote address belongs to a proxy that did not give the client's address.
    private let isClientHidden: Bool
    private let carrier: Carrier
    /// Whether a WebSocket client expects text messages until it sends a binary message.
    let startsInText: Bool
    /// The parts of the peer's certificate that are kept; nil if nothing is kept.
    var certificate: KeptCertificate?
    /// The handler's context; nil before the connection is in a pipeline and after it is closed.
    var context: ChannelHandlerContext?
    /// The protocol's side of the connection; nil after the connection is closed.
    var events: (any ConnectionEvents)?
    /// The handler, which the connection calls to continue reading.
    var reader: (any ConnectionReader)?

    // Output: see Connection+Output.swift. Exclusivity is unchecked here and below, because all access is on one loop
    // and happens for each frame.
    @exclusivity(unchecked)
    var pending = ByteBuffer()
    @exclusivity(unchecked)
    var queue = OutboundQueue()
    /// The bytes that were flushed since the last check of how much output NIO holds. A small flush counts as
    /// ``shareAbove`` bytes.
    @exclusivity(unchecked)
    var bytesSinceLook = 0
    /// The state of a connection that is behind; nil until this state is needed.
    @exclusivity(unchecked)
    private(set) var backlog: Backlog?
    @exclusivity(unchecked)
    var isWritable = true
    @exclusivity(unchecked)
    var isDirty = false
    @exclusivity(unchecked)
    var hasUnflushedWrites = false
    /// Whether the connection waits to be flushed together with a crowd: the very many subscribers on this loop that
    /// get one publication.
    @exclusivity(unchecked)
    var isDirtyWithCrowd = false
    /// Whether the protocol's side is in the middle of a write.
    var isWriting = false
    /// Whether output must continue later, because the channel became writable in the middle of a write.
    var goesOnLater = false
    /// Whether TLS is in the pipeline and copies all output. Without TLS, connections share large frames until the
    /// operating system has taken them.
    var isOutputCopied = false
    /// Whether TLS is the next handler. If so, TLS gets large frames in pieces. Until the connection ends, TLS keeps
    /// a buffer of the largest size that it has ever needed, and the pieces limit this size. WebSocket frames are not
    /// cut.
    var isOutputCut = false
    /// The number of writes that wait until the operating system has taken earlier output. While any writes wait,
    /// further output is collected, because each write keeps a whole buffer.
    @exclusivity(unchecked)
    var heldWrites: Int32 = 0

    // Input.
    @exclusivity(unchecked)
    private(set) var pauses: Pause = []
    private var holds: Int32 = 0
    private var unanswered: Int32 = 0
    // Costs: see Connection+Costs.swift.
    var bucket: TokenBucket
    /// The units that have been charged to the connection, but not yet to its account and address.
    var unsettled = 0
    /// The number of bytes at the end of the present run of frames that must be decoded again
    /// (``giveBack(_:frames:)``).
    @exclusivity(unchecked)
    var givenBack = 0
    /// The sum of all units of work, charged or not. Only the difference of two values has a meaning.
    @exclusivity(unchecked)
    var spent = 0
    /// The connection's account; nil for unauthenticated and anonymous clients. It is used only for budgets.
    package var account: UserID?
    /// The place of the peer's last request for a device or a session in the order of all such requests.
    package private(set) var order = AttachmentOrder.next()
    /// The address of the peer. The address is charged where a limit for each account would have no effect, because
    /// anybody can create many accounts for free.
    private(set) lazy var address = CommitSource(host: remoteHost)

    // Memory: see Connection+Memory.swift.
    /// The memory that the connection holds, including bytes that it shares with other connections.
    var heldBytes = 0
    /// The memory that the connection holds alone, as last reported to the loop.
    var ownBytes = 0
    var unreadBytes = 0
    var sessionBytes = 0
    private(set) var unansweredBytes = 0

    /// The connection's share in the budget of bytes before the login; nil if it has none.
    private var loginShare: LoginBudget.Share?

    // Life.
    private let openedAt: UInt32
    /// The time without a sign of life after which the connection is closed.
    private var idleSteps: UInt32
    @exclusivity(unchecked)
    private var lastLifeAt: UInt32
    private var endsAt: UInt32 = 0
    /// The time at which the protocol's side wants to be called; `.max` if there is no such time.
    private var wakesAt = UInt32.max
    /// The time at which the peer stopped reading output; `.max` while the peer reads output.
    private var stuckSince = UInt32.max
    /// The time of the last read that was so large that it probably left further bytes waiting; `.max` if there was
    /// no such read.
    private var backloggedAt = UInt32.max
    package var wheelPosition: DeadlineWheelPosition?
    var indexInLoop: Int32?
    package private(set) var isAuthenticated: Bool
    @exclusivity(unchecked)
    private(set) var phase: Phase = .open

    /// The reasons for not reading from a connection.
    struct Pause: OptionSet {
        let rawValue: UInt8
        static let output = Pause(rawValue: 1)
        static let unanswered = Pause(rawValue: 2)
        static let held = Pause(rawValue: 4)
        static let throttled = Pause(rawValue: 8)
        static let turn = Pause(rawValue: 16)
        static let crowds = Pause(rawValue: 32)
    }

    enum Phase {
        case open
        /// The farewell was sent. The output is flushed, and input is ignored.
        case ending
        case closed
    }

    /// The origin of a new connection.
    package struct Opening {
        package let loop: LoopContext
        /// The client's address, if it is not the remote address.
        package var peer: SocketAddress?
        /// Whether the remote address belongs to a proxy that did not give the client's address.
        package var isClientHidden = false
        /// The address under which the connection is counted until it is closed; nil if another component counts the
        /// connection.
        package var countedAs: ConnectionCounter.Address?
        /// The layer between the socket and the handler.
        package var carrier: Carrier
        /// Whether a WebSocket client expects text messages until it sends a binary message.
        package var startsInText = false

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

    /// The layer that carries a connection's bytes.
    package enum Carrier: Sendable {
        case plain
        /// TLS. The handshake is still to come.
        case tls
        case webSocket
    }

    /// - Parameter requiresAuthentication: whether the deadline for authentication applies.
    package convenience init(loop: LoopContext, listener: ListenerState, requiresAuthentication: Bool) {
        self.init(Opening(loop: loop), listener: listener, requiresAuthentication: requiresAuthentication)
    }

    init(_ opening: Opening, listener: ListenerState, requiresAuthentication: Bool) {
        loop = opening.loop
        peer = opening.peer
        carrier = opening.carrier
        startsInText = opening.startsInText
        payer = opening.countedAs
        isCounted = opening.countedAs != nil
        isClientHidden = opening.isClientHidden
        self.listener = listener
        tally = loop.tally(for: listener)
        isAuthenticated = !requiresAuthentication
        bucket = TokenBucket(burst: listener.limits.requestsPerSecond, now: loop.uptime)
        openedAt = loop.currentStep
        idleSteps = listener.idleSteps
        lastLifeAt = openedAt
    }

    /// The client's address; behind a proxy, the address that the proxy gave. Nil if the proxy gave none, or if the
    /// address is no longer known.
    ///
    /// The channel remembers the address. So this needs no system call, and works after the peer has gone.
    package var remoteAddress: SocketAddress? {
        isClientHidden ? nil : peer ?? context?.channel.remoteAddress
    }

    /// The client's address without port, for the core's limits.
    package var remoteHost: String? { remoteAddress?.ipAddress }

    /// Whether WebSocket messages carry the connection's bytes.
    var isWebSocket: Bool { carrier == .webSocket }

    /// Whether the protocol's side may still write.
    package var isOpen: Bool { phase == .open }

    /// Returns the connection's backlog; creates it if there is none.
    func ensureBacklog() -> Backlog {
        if let backlog { return backlog }
        let created = Backlog()
        backlog = created
        return created
    }

    // MARK: Life

    /// The time since the connection was accepted, in steps of ``LoopContext/deadlineStep``.
    var age: Duration { .nanoseconds(Int64(loop.currentStep &- openedAt) * LoopContext.deadlineStep.nanoseconds) }

    /// The memory that the connection holds, for operators.
    var shownBytes: Int { heldBytes }

    /// Notes a sign of life from the peer.
    package func touch() { lastLifeAt = loop.wheelStep }

    /// Notes that a read was so large that later bytes may still be waiting. They may include signs of life.
    func inputIsBacklogged() { backloggedAt = loop.wheelStep }

    private var isInputBacklogged: Bool {
        backloggedAt != .max && loop.wheelStep &- backloggedAt <= 2
    }

    /// Notes whether the peer has stopped reading output.
    func stuckChanged(_ isStuck: Bool) {
        guard isStuck != (stuckSince != .max) else { return }
        stuckSince = isStuck ? loop.wheelStep : .max
        if isStuck, phase == .open { loop.schedule(self, due: due) }
    }

    /// Notes that a request from the peer for a device or a session was read. If several connections ask for the same
    /// device or session, the connection whose request was read last gets it.
    package func asksToAttach() { order = .next() }

    /// Notes that the peer is authenticated. From now on the larger frame limit and the idle deadline apply.
    package func authenticated() {
        isAuthenticated = true
        releaseLoginShare()
        lastLifeAt = loop.wheelStep
        if phase == .open { loop.schedule(self, due: due) }
    }

    /// Allows long reads. They are not allowed before the login, because a loop may read from all its connections
    /// before it learns which of them have to end.
    func readsLong() {
        guard let channel = context?.channel else { return }
        switch carrier {
        case .plain:
            try? loop.readBuffers.read(channel, isLong: true)
        case .webSocket:
            let allocator = AdaptiveRecvByteBufferAllocator(minimum: 256, initial: 256, maximum: longestRead)
            try? channel.syncOptions?.setOption(.recvAllocator, value: allocator)
        case .tls:
            break
        }
    }

    /// Whether the connection is read into a buffer of ``ReadBuffers``. Connections with TLS or over WebSocket have
    /// their own buffers.
    var sharesReadBuffers: Bool { carrier == .plain }

    /// The largest number of bytes that are read at once after the login.
    var longestRead: Int { carrier == .plain ? ReadBuffers.maxBytes : Listener.maxEncryptedReadBytes }

    /// Sets how long the peer may be silent.
    ///
    /// - Parameter timeout: the limit; nil for no limit. Without a limit, a lost peer is noticed only when something
    ///   is sent to it.
    package func keepAlive(_ timeout: Duration?) {
        idleSteps = timeout.map(LoopContext.steps) ?? .max / 4
        if phase == .open { loop.schedule(self, due: due) }
    }

    /// Requests one call to ``ConnectionEvents/woken()`` after this time, rounded up to steps of
    /// ``LoopContext/deadlineStep``. A later request replaces an earlier request.
    ///
    /// - Parameter time: the time; nil cancels an earlier request.
    package func wake(in time: Duration?) {
        guard time != nil || wakesAt != .max else { return }
        wakesAt = time.map { loop.currentStep &+ LoopContext.steps($0) } ?? .max
        if phase == .open { loop.schedule(self, due: due) }
    }

    private var due: UInt32 {
        switch phase {
        case .closed: .max
        case .ending: endsAt
        case .open: min(lifeDue, wakesAt, stuckSince == .max ? .max : stuckSince &+ listener.stuckSteps)
        }
    }

    private var lifeDue: UInt32 {
        isAuthenticated ? lastLifeAt &+ idleSteps : openedAt &+ listener.authenticationSteps
    }

    /// Checks whether a deadline has passed, because the wheel has reached the connection's slot.
    func deadlineReached() {
        // The connection was closed in the same turn of the wheel, after the wheel had handed it out.
        if case .closed = phase { return }
        let due = due
        guard due <= loop.wheelStep else { return loop.schedule(self, due: due) }
        switch phase {
        case .closed: break
        case .ending: context?.close(promise: nil)
        case .open where wakesAt <= loop.wheelStep:
            wakesAt = .max
            // Other deadlines are checked at the next step.
            loop.schedule(self, due: self.due)
            events?.woken()
        case .open where stuckSince != .max && stuckSince &+ listener.stuckSteps <= loop.wheelStep,
            .open where lifeDue > loop.wheelStep:
            end(.slowReader)
        case .open where !pauses.isDisjoint(with: [.held, .turn, .crowds, .unanswered]),
            .open where isAuthenticated && (isInputBacklogged || isThrottled):
            // The server's own delay is not the peer's fault.
            loop.schedule(self, due: loop.wheelStep &+ 2)
        case .open: end(isAuthenticated ? .idle : .notAuthenticated)
        }
    }

    /// Starts the connection, which is in its pipeline now.
    func start(_ context: ChannelHandlerContext) {
        self.context = context
        tally.opened += 1
        listener.opened()
        loop.add(self)
        loop.schedule(self, due: due)
    }

    /// Ends the connection: writes the farewell, flushes the output, and closes the connection after the peer has had
    /// some time to read all output. Repeated calls do nothing.
    package func end(_ reason: CloseReason) {
        guard phase == .open, let context else { return }
        listener.metrics.ended(reason)
        listener.logger.debug("connection ended", metadata: ["reason": "\(reason.label)"])
        if isWebSocket {
            let code = events?.webSocketCode(for: reason) ?? reason.webSocketCode
            context.triggerUserOutboundEvent(WebSocketGoodbye(code: code), promise: nil)
        }
        if isCutOff(reason) {
            phase = .ending
            measureMemory()
            return context.close(promise: nil)
        }
        // The queue holds only complete frames, so the peer understands the farewell without them.
        if case .memory = reason { queue.removeAll() }
        events?.farewell(reason)
        // Writing to a disconnected peer closes the channel at once. In that case, nothing is left to do.
        guard phase == .open else { return }
        phase = .ending
        measureMemory()
        if case .goodbye = reason, carrier == .plain, hasNothingToWrite {
            return context.close(promise: nil)
        }
        endsAt = loop.currentStep &+ listener.graceSteps
        loop.schedule(self, due: endsAt)
        writeOutForGood()
        resumeForGood()
    }

    /// Whether the connection is closed without a farewell. This happens if the peer does not read, and the output
    /// would occupy memory until the peer reads it.
    private func isCutOff(_ reason: CloseReason) -> Bool {
        switch reason {
        case .slowReader: true
        case .memory: heldWrites > 0 || writtenBytes > 0 || sharedBytes > 0
        case .idle: !isWritable || heldWrites > 0
        default: false
        }
    }

    /// Closes the connection after its peer has closed its side. The loop calls this for a few connections at a time.
    func closeAfterPeer() {
        // A peer that has closed only its sending direction still reads the answers.
        flush()
        context?.close(promise: nil)
    }

    /// Releases everything, because the channel is closed.
    func closed() {
        guard phase != .closed else { return }
        phase = .closed
        measureMemory()
        tally.closed += 1
        loop.remove(self)
        listener.closed()
        if isCounted, let payer { listener.counter?.remove(payer) }
        releaseLoginShare()
        events?.closed()
        events = nil
        reader = nil
        context = nil
        pending = ByteBuffer()
        queue.removeAll()
        backlog?.waitingAnswers = []
    }

    // MARK: Before authentication

    /// Counts bytes that arrived. Before the login, these bytes count against the limit for all unauthenticated
    /// connections together. If this limit is exceeded, this connection or another connection is ended.
    func chargeLogin(_ bytes: Int) {
        guard !isAuthenticated, phase == .open, let budget = listener.loginBudget else { return }
        let share =
            loginShare
            ?? budget.share { [self] in
                // The reference is not weak, because a weak reference would create a side table, which makes every
                // later retain of the connection slower. `closed()` breaks the cycle.
                loop.post(.run { self.end(.loginBudget) })
            }
        loginShare = share
        // The connection is ended here too, because a busy loop may read more bytes before it delivers the posted
        // event.
        if !budget.charge(bytes, to: share) { end(.loginBudget) }
    }

    private func releaseLoginShare() {
        guard let share = loginShare else { return }
        loginShare = nil
        listener.loginBudget?.release(share)
    }

    // MARK: Reading

    /// Whether frames are decoded and passed to the protocol's side now.
    var takesFrames: Bool { pauses.isEmpty && phase == .open }

    /// Whether the channel may be read. An ending connection ignores its input, but must notice the end of the input.
    var mayRead: Bool { pauses.isEmpty || phase != .open }

    func pause(_ reason: Pause) { pauses.insert(reason) }

    func resume(_ reason: Pause) {
        guard pauses.contains(reason) else { return }
        pauses.remove(reason)
        // The peer's signs of life may have waited while the server did not read.
        if reason == .unanswered, isAuthenticated { touch() }
        if pauses.isEmpty { reader?.readOn() }
    }

    private func resumeForGood() {
        pauses = []
        reader?.readOn()
    }

    /// Begins a slow request: nothing is read until ``release()``, so that answers keep their order and a peer cannot
    /// start many requests at once. Calls can be nested.
    package func hold() {
        holds += 1
        pause(.held)
    }

    /// Ends a slow request. Must be called once for each ``hold()``.
    package func release() {
        guard holds > 0 else { return assertionFailure("release without hold") }
        holds -= 1
        if holds == 0 { resume(.held) }
    }

    // MARK: Sending messages

    /// Sends a message through the core. Results arrive as ``ConnectionEvents/sent(_:_:)`` on the loop, in the order
    /// of the calls. While too many messages are unanswered, nothing is read from the connection.
    ///
    /// - Parameter correlation: a value that the caller chooses. It is returned with the result.
    package func send(_ draft: MessageDraft, from principal: Principal, correlation: UInt64, messages: MessageService) {
        tally.messagesIn += 1
        let bytes = draft.content.bytes.count
        requestStarted(bytes: bytes)
        charge(.bytes(bytes))
        messages.send(draft, from: principal) { result in
            self.loop.post(.sent(self, correlation: correlation, result, bytes: bytes))
        }
    }

    func sendCompleted(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>, bytes: Int) {
        if case .success(let receipt) = result {
            chargeReached(ChangeReach(entries: receipt.recipientCount, devices: receipt.deviceCount), bytes: bytes)
        }
        events?.sent(correlation, result)
        requestAnswered(bytes: bytes)
    }

    /// Begins a request that is answered later, without ``hold()``. While too many requests are unanswered, or while
    /// they hold too much memory, nothing is read from the connection.
    ///
    /// - Parameter bytes: the approximate memory that the request holds until its answer.
    package func requestStarted(bytes: Int = 0) {
        unanswered += 1
        unansweredBytes += bytes
        if hasTooMuchUnanswered { pause(.unanswered) }
        measureMemory()
    }

    /// Ends a request that ``requestStarted(bytes:)`` has begun.
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

    /// Whether frames wait only for the connection's turn or for a crowd.
    var waitsOnlyForTurn: Bool { !pauses.isEmpty && pauses.isSubset(of: [.turn, .crowds]) && phase == .open }

    /// Examines the waiting frames, if they wait only for the connection's turn or for a crowd.
    func takeTurn() {
        pauses.remove(.crowds)
        pauses.insert(.turn)
        resume(.turn)
    }
}

/// The part of the handler that a connection calls.
protocol ConnectionReader: AnyObject {
    /// Decodes buffered frames, then reads.
    func readOn()
}
