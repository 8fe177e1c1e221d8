// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import HermesCore
package import NIOCore

/// The state of one event loop: its connections, their shared objects, and the mailbox for other threads.
///
/// State: confined to `eventLoop` (asserted), except for the mailbox and the count of its ephemeral events.
package final class LoopContext: @unchecked Sendable {  // Confined to its event loop, see above.
    /// The granularity of deadlines: one step of the deadline wheel.
    package static let deadlineStep = TimeAmount.milliseconds(500)

    package let eventLoop: any EventLoop
    /// Topics and rooms: this loop's shard of the topic plane. It is created on the loop, at its first use.
    package private(set) lazy var topics = {
        let topics = shard()
        topics.becameBehind = { [weak self] in self?.watchCrowds() }
        return topics
    }()
    private let shard: () -> TopicShard
    /// Events from other threads, which are delivered in batches.
    private let mailbox: Mailbox<LoopEvent>
    /// Counts the ephemeral events that wait in ``mailbox`` or in ``late``.
    let waiting = WaitingEphemera()

    /// The object that frees memory if all connections together hold too much.
    let reclaimer: MemoryReclaimer
    /// The memory of this loop's connections, in bytes.
    package private(set) var heldBytes = 0
    private var sharedFrames = SharedFrames()
    /// The part of ``heldBytes`` that was reported to the budget.
    private var reportedBytes = 0

    private let index: Int
    private var connectionNumber: UInt64 = 0
    /// The connections with output, except those in ``flushesOfCrowds``.
    private let flushes = FlushList { $0.flush() }
    /// The connections that got a publication as part of a crowd: the very many subscribers of one topic on this
    /// loop. Some of these connections may have been flushed since then.
    private let flushesOfCrowds = FlushList { $0.flushWithCrowd() }
    private var isFlushScheduled = false
    /// The publishers that wait for crowds, and the tickets of their publications.
    private var publishersToCrowds: [(publisher: Connection, ticket: CrowdTicket)] = []
    private var areCrowdsWatched = false
    let readBuffers = ReadBuffers()
    /// Events from other threads that wait for a later tick.
    private var late = LateEvents()
    /// The encodings of inbox entries that several devices of a user share.
    var entries = EncodedEntries()
    /// The bytes of long frames that wait for the next flush.
    private var longBytes = 0
    private var wheel = DeadlineWheel<Connection>()
    private var isWheelTurning = false
    private let startedAt: NIODeadline
    private var buffers = BufferPool()
    /// The budget for announcing joins and leaves to rooms; all loops share it.
    var arrivals: ArrivalBudget
    private var open: [Connection] = []
    private var tallies: [ObjectIdentifier: ConnectionTally] = [:]
    /// The connections whose peers have closed their sides, in the order of the closes.
    private var leaving = Deque<Connection>()
    private var isClosingScheduled = false
    /// The work that can wait for other work; see LoopContext+Turns.swift.
    var turns = TurnQueue()
    var isTurnScheduled = false
    /// The number of the loop's ticks so far; nil if nobody counts them.
    var ticks: UInt64?
    /// The tick of the last turn of ``turns``.
    var tickOfTurn: UInt64?
    /// The tick in which the time of ``turns`` was last started.
    var tickOfTime: UInt64?
    /// The last tick in which there was no time left for reading.
    var tickOverTime: UInt64?
    var isInTurn = false
    /// The work for the next tick.
    private var nextTick: [() -> Void] = []
    /// The time for events from other threads in this tick.
    private var deliveryTime = TickTime()
    /// The time for flushing in this tick.
    private var flushTime = TickTime()
    /// The time for flushing crowds in this tick.
    private var crowdTime = TickTime()
    /// The time for examining the last bytes of closed connections in this tick.
    private var lastWordsTime = TickTime()
    /// Replaces the clock of ``turnTime()``; for tests.
    var replacedTurnClock: (() -> NIODeadline)?

    /// The number of connections that are closed at once. Closing thousands at once would delay all other
    /// connections. Each close costs about 20 µs, mostly in the operating system.
    static let maxClosesAtOnce = 32
    /// The number of items, such as subscriptions, that are finished together for an ended connection. Each item
    /// takes a few µs.
    static let leftoversPerTurn = 256
    /// The number of an ended connection's items that are finished at once; the others wait while there is other work.
    static let leftoversAtOnce = 16
    /// If ``ticks`` is nil, up to this many events from other threads are delivered together without a check of the
    /// time.
    private static let eventsAtOnce = 4
    /// The number of connections that are flushed between two checks of the time. Each flush takes about 10 µs.
    private static let flushesPerLook = 32
    /// If at least this many bytes of long frames wait for a flush, the time is checked after each connection. A
    /// mebibyte takes about 1 ms.
    static let longBytesPerLook = 1 << 20
    /// The largest number of connections that end in one turn of the wheel. A larger number would delay all other
    /// connections.
    static let maxEndsPerTurn = 1_024
    /// A change of the held memory by fewer bytes than this is reported only at the next turn of the wheel.
    static let memoryStep = 65_536

    init(
        eventLoop: any EventLoop,
        index: Int,
        reclaimer: MemoryReclaimer,
        box: WeakLoopContext,
        arrivals: ArrivalBudget,
        shard: @escaping () -> TopicShard
    ) {
        self.eventLoop = eventLoop
        self.reclaimer = reclaimer
        self.index = index
        self.arrivals = arrivals
        self.shard = shard
        startedAt = eventLoop.now
        mailbox = Mailbox(
            schedule: { eventLoop.execute($0) },
            receive: { events in box.context?.receive(events) }
        )
        box.context = self
    }

    /// Returns a number that no other connection of the server ever has; never 0.
    package func nextConnectionNumber() -> UInt64 {
        connectionNumber &+= 1
        return connectionNumber << 10 | UInt64(index & 0x3FF)
    }

    /// The number of open connections on this loop.
    package var connectionCount: Int { open.count }

    /// The time of a monotonic clock, for limits.
    package var uptime: Duration { .nanoseconds((eventLoop.now - startedAt).nanoseconds) }

    /// Whether a join, or a leave whose join was not announced, is announced to the members of a room.
    ///
    /// - Parameter source: the source of the join: the client's address, if it is known.
    func tellsArrival(in room: TopicName, by source: CommitSource) -> Bool {
        arrivals.tells(topics.audience(of: room), in: room, by: source, now: uptime)
    }

    /// Returns a reference that other threads may pass back to the loop. Only the loop may call this function and read
    /// the value.
    func bound<Value>(_ value: Value) -> NIOLoopBound<Value> { NIOLoopBound(value, eventLoop: eventLoop) }

    // MARK: From other threads

    /// Posts an event to the loop. Several posts in quick succession wake the loop only once. Callable on any thread.
    package func post(_ event: LoopEvent) { mailbox.post(event) }

    /// Posts an ephemeral event to one of the loop's connections, unless too many events wait. Callable on any thread.
    ///
    /// - Returns: whether the event was posted.
    func post(_ event: EphemeralEvent, to connection: Connection) -> Bool {
        guard waiting.add(event) else { return false }
        mailbox.post(.ephemeral(connection, event))
        return true
    }

    private func receive(_ events: [LoopEvent]) {
        // If earlier events wait, the new events wait after them, because the events of a connection must stay in
        // order.
        guard late.isEmpty else { return late.append(events[...]) }
        let delivered = deliver(events)
        if delivered < events.count {
            late.append(events[delivered...])
            deliverMoreSoon()
        }
        flushDirty()
    }

    /// Delivers events, for at most the time of a turn. One message can cause an event for each of thousands of
    /// devices, and one event can cause the encoding of a long message.
    ///
    /// - Returns: the number of delivered events.
    private func deliver(_ events: some RandomAccessCollection<LoopEvent>) -> Int {
        // Without a count of ticks, a few events are delivered however long they take.
        guard ticks != nil || events.count > Self.eventsAtOnce else {
            for event in events { event.deliver() }
            return events.count
        }
        return forATurn(events, begin(&deliveryTime), perLook: 1) { $0.deliver() }
    }

    /// Delivers the remaining events after the loop has polled its sockets. These events do not wait in ``turns``
    /// with the work of busy connections, because some of them are answers to connections that request little.
    private func deliverMoreSoon() {
        inNextTick { [self] in
            late.removeFirst(deliver(late.events))
            // At least one ephemeral event is delivered, however many other events wait.
            late.takeEphemeral()?.deliver()
            if late.events.isEmpty { late.removeFirstEphemeral(deliver(late.ephemeral)) }
            flushDirty()
            if !late.isEmpty { deliverMoreSoon() }
        }
    }

    /// Does work after the loop has polled its sockets.
    private func inNextTick(_ work: @escaping () -> Void) {
        nextTick.append(work)
        if nextTick.count == 1 { planNextTick(after: ticks) }
    }

    private func planNextTick(after tick: UInt64?) {
        eventLoop.scheduleTask(in: TurnQueue.pause) { [self] in
            // If it is still the same tick, other tasks took as long as the pause.
            if let tick, tick == ticks { return planNextTick(after: tick) }
            let works = nextTick
            nextTick = []
            for work in works { work() }
        }
    }

    // MARK: Flushing

    /// Whether a publication is being delivered to very many connections of this loop.
    var isServingCrowd: Bool { topics.isServingCrowd }

    /// Marks a connection with output, to be flushed at the end of this tick.
    func markDirty(_ connection: Connection) {
        eventLoop.assertInEventLoop()
        flushes.dirty.append(connection)
        scheduleFlush()
    }

    /// Marks a connection with output as part of a crowd. The connection is flushed after the other connections.
    func markDirtyWithCrowd(_ connection: Connection) {
        eventLoop.assertInEventLoop()
        flushesOfCrowds.dirty.append(connection)
        scheduleFlush()
    }

    private func scheduleFlush() {
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        eventLoop.execute { self.flushDirty() }
    }

    /// Notes that a connection has a long frame to flush.
    func wroteLong(_ bytes: Int) { longBytes &+= bytes }

    private func flushDirty() {
        isFlushScheduled = false
        // Publications are handed over first, so that the other loops have them before most acknowledgements go out.
        topics.handOver()
        guard !flushes.dirty.isEmpty || !flushesOfCrowds.dirty.isEmpty else { return lookAtCrowds() }
        let time = begin(&flushTime)
        // A tick may flush many times, because each publication to a crowd causes further output.
        guard time.isNew || turnTime() < time.endsAt else {
            isFlushScheduled = true
            return inNextTick { self.flushDirty() }
        }
        let isLong = longBytes >= Self.longBytesPerLook
        longBytes = 0
        let wasWaiting = !flushes.waiting.isEmpty || !flushesOfCrowds.waiting.isEmpty
        flush(flushes, time, isLong: isLong)
        flush(flushesOfCrowds, beginCrowds(), isLong: isLong)
        flushed(wasWaiting: wasWaiting)
    }

    /// Flushes the connections of a list. The operating system may need longer than a turn for long output to
    /// thousands of peers. In that case, the connections that this turn does not reach wait for later turns.
    private func flush(_ list: FlushList, _ time: (endsAt: NIODeadline, isNew: Bool), isLong: Bool) {
        guard !list.dirty.isEmpty else { return }
        // More connections may get output meanwhile.
        var flushing: [Connection] = []
        swap(&flushing, &list.dirty)
        if flushing.count > Self.flushesPerLook || isLong {
            let perLook = isLong ? 1 : Self.flushesPerLook
            let flushed = forATurn(flushing, time, perLook: perLook, list.flush)
            list.waiting.append(contentsOf: flushing[flushed...])
        } else {
            for connection in flushing { list.flush(connection) }
        }
        flushing.removeAll(keepingCapacity: flushing.count <= FlushList.keptCapacity)
        if list.dirty.isEmpty { swap(&flushing, &list.dirty) }
    }

    private func flushed(wasWaiting: Bool) {
        lookAtCrowds()
        if !wasWaiting, !flushes.waiting.isEmpty || !flushesOfCrowds.waiting.isEmpty { inTurn { self.flushMore() } }
    }

    /// Handles elements, beginning with the first, until the time is over.
    ///
    /// - Parameters:
    ///   - time: the end of the time for this kind of work, and whether that time has just begun.
    ///   - perLook: the number of elements between two checks of the time. If the time has just begun, at least this
    ///     number is handled.
    /// - Returns: the number of elements that were handled.
    private func forATurn<Element>(
        _ elements: some RandomAccessCollection<Element>,
        _ time: (endsAt: NIODeadline, isNew: Bool),
        perLook: Int,
        _ body: (Element) -> Void
    ) -> Int {
        var done = 0
        for element in elements {
            if done > 0 || !time.isNew, done % perLook == 0, turnTime() >= time.endsAt { break }
            body(element)
            done += 1
        }
        return done
    }

    /// Returns the time until which the last bytes of closed connections are examined in this tick.
    func lastWordsEnd() -> NIODeadline { begin(&lastWordsTime).endsAt }

    private func begin(_ time: inout TickTime) -> (endsAt: NIODeadline, isNew: Bool) {
        let now = turnTime()
        return time.end(in: ticks, now: now, turns.duration(now: now))
    }

    private func beginCrowds() -> (endsAt: NIODeadline, isNew: Bool) {
        let now = turnTime()
        return crowdTime.end(in: ticks, now: now, turns.crowdDuration(now: now))
    }

    private func flushMore() {
        // This uses the time of the turn, because the new output of each tick may use up the time for flushing. At
        // least one connection of each kind is flushed in any case. After that, seven other connections are flushed
        // for each connection of a crowd.
        var done = 0
        while !flushes.waiting.isEmpty || !flushesOfCrowds.waiting.isEmpty, done < 2 || hasTime() {
            if done % 8 == 0 || flushes.waiting.isEmpty, let connection = flushesOfCrowds.waiting.popFirst() {
                flushesOfCrowds.flush(connection)
            } else if let connection = flushes.waiting.popFirst() {
                flushes.flush(connection)
            }
            done += 1
        }
        flushed(wasWaiting: false)
    }

    /// Lets crowds get further publications if all their earlier output has been flushed.
    private func lookAtCrowds() {
        if flushesOfCrowds.dirty.isEmpty, flushesOfCrowds.waiting.isEmpty { topics.wroteOutputForCrowds() }
    }

    /// The pause between two checks of whether crowds have got the publications that wait for them.
    private static let crowdPause = TimeAmount.milliseconds(1)

    /// Notes that a publication waits because its crowd has not got earlier publications yet. Meanwhile, nothing is
    /// read from the publisher. So only a few publications wait, and the copies for a crowd do not pile up.
    func waitForCrowd(_ publisher: Connection, _ ticket: CrowdTicket) {
        eventLoop.assertInEventLoop()
        publishersToCrowds.append((publisher, ticket))
        watchCrowds()
    }

    /// Checks crowds again and again until nothing waits for them. This is necessary because it is possible that no
    /// connection of a crowd has output whose flush would continue the delivery.
    private func watchCrowds() {
        guard !areCrowdsWatched else { return }
        areCrowdsWatched = true
        eventLoop.scheduleTask(in: Self.crowdPause) { [self] in
            areCrowdsWatched = false
            lookAtCrowds()
            let publishers = publishersToCrowds
            publishersToCrowds = []
            for (publisher, ticket) in publishers {
                if topics.isWaiting(ticket) {
                    publishersToCrowds.append((publisher, ticket))
                } else {
                    inTurn { publisher.crowdServed(ticket) }
                }
            }
            if !publishersToCrowds.isEmpty || topics.isBehindWithCrowds { watchCrowds() }
        }
    }

    /// Returns an empty buffer. An earlier buffer is reused if possible.
    func takeBuffer() -> ByteBuffer { buffers.take() }

    /// Returns a written buffer to the pool.
    func giveBack(_ buffer: ByteBuffer) { buffers.giveBack(buffer) }

    // MARK: Deadlines

    /// The time since the loop's start, in steps of ``deadlineStep``.
    var currentStep: UInt32 {
        UInt32(clamping: (eventLoop.now - startedAt).nanoseconds / Self.deadlineStep.nanoseconds)
    }

    /// The step that the wheel has reached. It is the value of ``currentStep`` at the wheel's last turn. Reading it
    /// costs nothing.
    var wheelStep: UInt32 { wheel.step }

    /// Returns the number of steps of ``deadlineStep`` that cover a duration, rounded up, plus one for the present
    /// step.
    static func steps(_ duration: Duration) -> UInt32 {
        let exact = duration / .nanoseconds(deadlineStep.nanoseconds)
        return UInt32(min(max(exact, 0), Double(UInt32.max / 4)).rounded(.up)) + 1
    }

    func schedule(_ connection: Connection, due: UInt32) {
        wheel.insert(connection, due: due)
    }

    private func turnWheel() {
        isWheelTurning = false
        var ended = 0
        for connection in wheel.advance(to: currentStep) {
            guard ended < Self.maxEndsPerTurn else {
                wheel.insert(connection, due: wheel.step &+ 1)
                continue
            }
            let wasOpen = connection.isOpen
            connection.deadlineReached()
            if wasOpen, !connection.isOpen { ended += 1 }
        }
        buffers.trim()
        entries.removeAll()
        reportMemory()
        for tally in tallies.values { tally.publish() }
        if !open.isEmpty { startWheel() }
    }

    private func startWheel() {
        guard !isWheelTurning else { return }
        isWheelTurning = true
        eventLoop.scheduleTask(in: Self.deadlineStep) { self.turnWheel() }
    }

    // MARK: Memory

    /// Notes a change of a connection's memory.
    func heldChanged(by bytes: Int) {
        heldBytes &+= bytes
        if abs(heldBytes &- reportedBytes) >= Self.memoryStep { reportMemory() }
    }

    /// Counts the beginning of a write whose bytes other connections may share.
    func holdsShared(_ place: UInt, bytes: Int) { heldChanged(by: sharedFrames.add(place, bytes: bytes)) }

    /// Counts the end of a write whose bytes other connections may share.
    func releasesShared(_ place: UInt) { heldChanged(by: -sharedFrames.remove(place)) }

    private func reportMemory() {
        let change = heldBytes &- reportedBytes
        reportedBytes = heldBytes
        if reclaimer.budget.change(by: change) { reclaimer.begin() }
    }

    /// Returns the connections whose memory is worth freeing.
    func holdings() -> [MemoryHolding] {
        let part = sharedFrames.part
        return open.compactMap { MemoryHolding($0, sharedPart: part) }
    }

    // MARK: Connections

    func add(_ connection: Connection) {
        eventLoop.assertInEventLoop()
        if open.isEmpty { _ = wheel.advance(to: currentStep) }
        connection.indexInLoop = Int32(open.count)
        open.append(connection)
        startWheel()
    }

    func remove(_ connection: Connection) {
        eventLoop.assertInEventLoop()
        wheel.remove(connection)
        guard let index = connection.indexInLoop else { return }
        connection.indexInLoop = nil
        open.swapAt(Int(index), open.count - 1)
        open.removeLast()
        if index < open.count { open[Int(index)].indexInLoop = index }
        // The wheel stops with the last connection, so the memory is reported here.
        if open.isEmpty { reportMemory() }
    }

    /// Closes a connection whose peer has closed its side. Such connections are closed in order, a few at a time.
    func peerClosed(_ connection: Connection) {
        eventLoop.assertInEventLoop()
        leaving.append(connection)
        guard !isClosingScheduled else { return }
        isClosingScheduled = true
        eventLoop.execute { self.closeLeaving() }
    }

    private func closeLeaving() {
        for _ in 0..<Self.maxClosesAtOnce { leaving.popFirst()?.closeAfterPeer() }
        isClosingScheduled = !leaving.isEmpty
        // The rest is closed later, so that input that has arrived is handled first.
        if isClosingScheduled { eventLoop.scheduleTask(in: .milliseconds(1)) { self.closeLeaving() } }
    }

    /// All open connections.
    var connections: [Connection] { open }

    /// Returns the open connections of one listener.
    func connections(of listener: ListenerState) -> [Connection] { open.filter { $0.listener === listener } }

    /// Notifies all connections that the topic rules were replaced. This takes turns with other work, because some
    /// connections have thousands of filters.
    func accessChanged() {
        for connection in open { inTurn { connection.events?.accessChanged() } }
    }

    /// Removes connections on this loop from a room. This takes turns with other work, as ``accessChanged()`` does.
    ///
    /// - Parameter finish: gets the number of removed connections.
    func remove(_ expulsion: RoomExpulsion, finish: @escaping (Int) -> Void) {
        // `open` is copied, because a removed connection may be closed at once.
        let copy = open[...]
        inTurn { [self] in remove(expulsion, copy, removed: 0, finish) }
    }

    private func remove(
        _ expulsion: RoomExpulsion,
        _ connections: ArraySlice<Connection>,
        removed: Int,
        _ finish: @escaping (Int) -> Void
    ) {
        var rest = connections
        var removed = removed
        repeat {
            if rest.popFirst()?.events?.removed(by: expulsion) ?? false { removed += 1 }
        } while !rest.isEmpty && hasTime()
        guard !rest.isEmpty else { return finish(removed) }
        inTurn { [self, rest, removed] in remove(expulsion, rest, removed: removed, finish) }
    }

    /// Returns the counts of one listener on this loop.
    func tally(for listener: ListenerState) -> ConnectionTally {
        if let tally = tallies[ObjectIdentifier(listener)] { return tally }
        let tally = ConnectionTally(listener.metrics)
        tallies[ObjectIdentifier(listener)] = tally
        return tally
    }
}
