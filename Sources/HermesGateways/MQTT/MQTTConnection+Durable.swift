// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import Logging
import Metrics
import NIOCore
import Synchronization

/// Attaches the connection to its session, and sends the queue of a durable session. A durable session outlives its
/// connection (3.1.2.4, 4.1, 4.4).
extension MQTTConnection {
    /// Attaches this connection to the client's session, and then writes CONNACK. If another connection of the same
    /// client has the session, that connection ends first.
    func attach(_ client: MQTTClientState, since stamp: UInt64?, _ connect: MQTTConnect, isAssigned: Bool) {
        let link = MQTTKeptSessionLink(self, client)
        client.link = link
        let durable = environment.messenger.durable
        let expiry: Duration? = client.sessionExpiry
        connection.hold()
        let bound = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        durable.attach(client.key, clean: connect.cleanStart, expiry: expiry, attachment: link) { result in
            let attached: @Sendable () -> Void = {
                bound.value.attached(result, to: link, since: stamp, expiry: expiry, connect, isAssigned: isAssigned)
            }
            if loop.eventLoop.inEventLoop { attached() } else { loop.post(.run(attached)) }
        }
    }

    private func attached(
        _ result: Result<DurableOpening, HermesError>,
        to applicant: MQTTKeptSessionLink,
        since stamp: UInt64?,
        expiry: Duration?,
        _ connect: MQTTConnect,
        isAssigned: Bool
    ) {
        defer { connection.release() }
        if case .success(let opening) = result { found(opening, for: applicant) }
        guard let client, let link = client.link, phase == .connecting, connection.isOpen else {
            // The connection has closed meanwhile, so the session is detached again without changes.
            if case .success(let opening) = result {
                connection.chargeInTheEnd(.filters(opening.subscriptions.count, isKept: false))
                let expiry = applicant.endsSession ? Duration.zero : expiry
                environment.messenger.durable.detach(opening.id, applicant, sentUpTo: opening.sentUpTo, expiry: expiry)
            }
            return
        }
        switch result {
        case .failure(let error):
            client.link = nil
            refuseConnect(error)
        case .success(let opening):
            link.id = opening.id
            // Since the login began, the account was disabled, renamed or deleted, or the device was removed.
            if let stamp, let end = environment.messenger.durable.reason(toEnd: client.key, of: link, since: stamp) {
                link.ends(with: end)
                let text = "the account's connections were ended; log in again"
                return refuse(MQTTPacketError(.notAuthorized, text), because: HermesError(.notAuthenticated, text))
            }
            // The previous connection has ended by now and has handed over its will.
            environment.wills.connected(client.key, isClean: connect.cleanStart)
            environment.wills.keep(willOf: client)
            resume(client, opening) { [self] in
                connected(client, connect, isAssigned: isAssigned, sessionPresent: opening.isPresent)
                sendQueued()
            }
        }
    }

    /// Restores the whole session before CONNACK. If it has many subscriptions, this takes several turns of the event
    /// loop.
    private func resume(_ client: MQTTClientState, _ opening: DurableOpening, then finish: @escaping () -> Void) {
        guard opening.isDurable else { return finish() }
        client.durable = MQTTDurableQueue(opening)
        client.durable?.advanced(to: client.link?.head ?? 0)
        client.inbound.resumed(opening.received)
        let subscriptions = opening.subscriptions
        // No decision and no write to the store is needed, but each subscription is announced to all loops, now and
        // when it ends.
        connection.charge(.filters(subscriptions.count, isKept: false))
        connection.inSlices(subscriptions.count, of: Self.filtersPerTurn) { [self] slice in
            let levels = subscriptions[slice].reduce(0) { $0 + resume($1, of: client) }
            connection.charge(.levels(levels &* topics.loopCount))
        } then: { [self] in
            adjustInbox(of: client)
            finish()
        }
    }

    /// Restores one subscription.
    ///
    /// - Returns: the number of the filter's levels; 0 for a filter without wildcards.
    private func resume(_ subscription: DurableSubscription, of client: MQTTClientState) -> Int {
        guard let filter = MQTTFilter(subscription.filter) else { return 0 }
        var options = subscription.options
        options.isLiveAtMostOnceOnly = true
        // The QoS was granted earlier, perhaps under other settings.
        options.qos = min(options.qos, gateway.maximumQoS)
        options.isFiltered = isFiltered(subscription.filter, of: client)
        client.subscriptions.restore(filter.shape) { lease(of: client) }
        hold(filter, options, of: client)
        return filter.shape.levels
    }

    /// Applies new topic rules: subscriptions stay, and their deliveries follow the new rules.
    package func accessChanged() {
        guard let client else { return }
        refilter(client)
        client.inbox?.packets?.accessChanged()
    }

    /// Checks again which subscriptions match topics that the client may not read. Each turn of the event loop checks
    /// some of the subscriptions. Until a subscription is examined, each of its publications is checked.
    func refilter(_ client: MQTTClientState) {
        let texts = client.subscriptions.filterAll()
        connection.inSlices(texts.count, of: Self.filtersPerTurn) { [self] slice in
            for text in texts[slice] where client.subscriptions[text] != nil {
                client.subscriptions.filter(text, isFiltered(text.rawValue, of: client))
            }
        } then: { [self] in
            adjustInbox(of: client)
        }
    }

    // MARK: The queue

    /// Sends as many queued messages as the client can accept now.
    func sendQueued() {
        guard phase == .connected, let client, let durable = client.durable else { return }
        while connection.hasRoom, outbound.window.hasRoom {
            switch durable.next(notAbove: outbound.window.mostNext) {
            case .release(let number):
                outbound.window.skip(to: number)
                writeAcknowledgement(.pubrel, outbound.window.resumeReleased())
            case .publication:
                send(durable.takeFirst(), of: client, durable)
            case .nothing:
                return
            case .load(let after):
                return load(after: after, of: durable)
            }
        }
    }

    private func send(_ queued: QueuedPublication, of client: MQTTClientState, _ durable: MQTTDurableQueue) {
        outbound.window.skip(to: queued.seq)
        client.link?.mayHaveSent(upTo: queued.seq)
        // Sent messages do not expire [MQTT-4.3.3-7].
        let wasSent = queued.seq <= durable.sentBefore
        let isExpired = !wasSent && queued.publication.hasExpired(at: expiryTime(of: queued.publication.details))
        let isWanted = !isExpired && mayRead(queued, of: client, durable)
        let qos = min(queued.qos, gateway.maximumQoS)
        guard isWanted, write(queued, qos, isDuplicate: wasSent) else {
            if wasSent, queued.qos == .exactlyOnce { return endExchange(of: queued.seq, client, isTooLarge: isWanted) }
            outbound.window.skip(to: queued.seq + 1)
            return leave(queued, of: client, isTooLarge: isWanted, wasSent: wasSent)
        }
        connection.tally.messagesOut += 1
        guard qos == .atMostOnce else { return }
        // A message of QoS 0 will not be acknowledged.
        outbound.window.skip(to: queued.seq + 1)
        complete(queued.seq, of: client)
    }

    /// Ends the exchange of a QoS 2 message that was sent over an earlier connection, and that must not be sent again.
    ///
    /// The client may have the message, and then waits for PUBREL. Without it, the client would take a later message
    /// with the same packet identifier for a repetition of this one [MQTT-4.3.3-10].
    private func endExchange(of number: UInt64, _ client: MQTTClientState, isTooLarge: Bool) {
        guard let link = client.link else { return }
        if isTooLarge { dropped(.tooLarge) }
        let packetID = outbound.window.send(exactlyOnce: true)
        _ = outbound.window.received(packetID, isStored: true)
        release(number, packetID, of: link)
    }

    /// Writes a message of the queue. With QoS 1 or 2, the message takes the next slot of the window.
    ///
    /// - Returns: false if the client accepts no packet of that size; then nothing was written.
    private func write(_ queued: QueuedPublication, _ qos: QoS, isDuplicate: Bool) -> Bool {
        let next = outbound.window.nextPacketID
        let isDuplicate = isDuplicate && qos > .atMostOnce
        func takePlace() {
            guard qos > .atMostOnce else { return }
            let id = outbound.window.send(exactlyOnce: qos == .exactlyOnce)
            assert(id == next)
        }
        // Most messages take this fast path, and a queue may have many of them, so no packet is allocated for each.
        if !outbound.usesAliases, queued.identifiers.isEmpty,
            MQTTPublishWriter.isPlain(queued.publication, maxBytes: outbound.maxPacketBytes)
        {
            takePlace()
            var writer = MQTTPublishWriter(version: version, qos: qos, now: Timestamp(rawValue: 0))
            writer.packetID = next
            writer.isRetained = queued.retain
            writer.isDuplicate = isDuplicate
            writePlain(writer, queued.publication.topic, queued.publication.payload)
            return true
        }
        let packet = packet(
            Publication(queued.publication),
            qos,
            packetID: next,
            isRetained: queued.retain,
            isDuplicate: isDuplicate,
            identifiers: queued.identifiers
        )
        guard let packet else { return false }
        takePlace()
        connection.write(frame: packet.bytes, sharing: packet.payload)
        return true
    }

    /// Whether the client may read a message of its queue by the present rules. If the client's account got its present
    /// name only after the message was queued, this name gives no right to the message.
    private func mayRead(_ queued: QueuedPublication, of client: MQTTClientState, _ durable: MQTTDurableQueue) -> Bool {
        // Messages that were queued before this connection may belong to a subscription that has ended.
        guard client.subscriptions.hasFiltered || queued.seq <= durable.waitedBefore else { return true }
        guard mayRead(queued.publication.topic) else { return false }
        // If the account had another name when the message was queued, the present name gives no right to the message.
        return queued.seq > durable.renamedAt || client.mayReadUnderAnyName(queued.publication.topic)
    }

    /// Drops a message that has expired, that the client may not read, or that is too large for the client. A message
    /// of a shared subscription goes to another member instead, if possible.
    private func leave(_ queued: QueuedPublication, of client: MQTTClientState, isTooLarge: Bool, wasSent: Bool) {
        let isForOthers =
            queued.share != nil && !queued.publication.hasExpired(at: now())
            // With this length, the core determines for which members the message is too large.
            && (!isTooLarge || !wasSent && Publication(queued.publication).leastMessageBytes > outbound.maxPacketBytes)
        guard isForOthers, let link = client.link else { return drop(queued, of: client, isTooLarge: isTooLarge) }
        let bound = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        environment.messenger.durable.passOn(queued, of: link.id, isTooLarge: isTooLarge) { isTaken in
            guard !isTaken else { return }
            loop.post(
                .run {
                    guard let client = bound.value.client else { return }
                    bound.value.drop(queued, of: client, isTooLarge: isTooLarge)
                }
            )
        }
    }

    /// Completes a message without delivering it.
    private func drop(_ queued: QueuedPublication, of client: MQTTClientState, isTooLarge: Bool) {
        if isTooLarge { dropped(.tooLarge) }
        complete(queued.seq, of: client)
    }

    private func load(after seq: UInt64, of durable: MQTTDurableQueue) {
        guard !durable.isLoading, let id = client?.link?.id else { return }
        durable.isLoading = true
        let bound = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        environment.messenger.durable.queued(
            of: id,
            after: seq,
            sentUpTo: durable.sentBefore,
            limit: MQTTDurableQueue.pageSize
        ) { result in
            loop.post(.run { bound.value.loaded(result) })
        }
    }

    private func loaded(_ result: Result<DurablePage, HermesError>) {
        if case .success(let page) = result {
            connection.chargeRead(page.weight)
            // Reading short messages costs as much as reading short entries of an inbox.
            if !page.publications.isEmpty { connection.chargeInTheEnd(.page(entries: page.publications.count)) }
        }
        guard phase == .connected, let durable = client?.durable else { return }
        durable.isLoading = false
        switch result {
        case .success(let page):
            durable.loaded(page)
            sendQueued()
            measureMemory()
        case .failure(let error):
            connection.listener.logger.warning(
                "a session's queue could not be read",
                metadata: ["code": "\(error.code.rawValue)"]
            )
            let bound = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
            connection.loop.eventLoop.scheduleTask(in: MQTTDurableQueue.retryDelay) { bound.value.sendQueued() }
        }
    }

    /// Accepts, on this loop, publications that the core has queued for the session
    /// (``DurableAttachment/committed(_:)``).
    func committed(_ publications: [QueuedPublication]) {
        guard let durable = client?.durable else { return }
        durable.committed(publications)
        sendQueued()
        measureMemory()
    }

    /// Notes, on this loop, that other nodes have queued publications (``DurableAttachment/advanced(to:)``).
    func advanced(to head: UInt64) {
        guard let durable = client?.durable else {
            // The session is not attached yet.
            if let link = client?.link { link.head = max(link.head, head) }
            return
        }
        durable.advanced(to: head)
        sendQueued()
    }

    /// Records that a message needs no further packets: the client has acknowledged it, or it was dropped.
    func complete(_ number: UInt64, of client: MQTTClientState) {
        guard client.durable != nil, let link = client.link else { return }
        link.completed.append(number)
        guard link.completed.count == 1 else { return }
        // All messages that are completed in this turn of the loop are reported together.
        let bound = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
        connection.loop.eventLoop.execute { bound.value.reportCompleted() }
    }

    func reportCompleted() {
        guard let link = client?.link, !link.completed.isEmpty else { return }
        environment.messenger.durable.acknowledged(link.id, link.completed)
        link.completed.removeAll(keepingCapacity: link.completed.count <= 64)
    }

    /// Stores a PUBREC, and then sends PUBREL. If PUBREL went out first, the message could be sent again after a
    /// restart.
    func release(_ number: UInt64, _ packetID: UInt16, of link: MQTTKeptSessionLink) {
        let bound = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        environment.messenger.durable.released(link.id, number, source: link.source) { result in
            loop.post(.run { bound.value.released(packetID, result) })
        }
    }

    private func released(_ packetID: UInt16, _ result: Result<Void, HermesError>) {
        guard phase == .connected else { return }
        outbound.window.released(packetID)
        switch result {
        case .success: writeAcknowledgement(.pubrel, packetID)
        // The exchange is resumed on the client's next connection.
        case .failure(let error): end(because: error)
        }
    }

    // MARK: The end

    /// Whether the present rules allow the will. The rules may have changed since the client gave the will.
    private func mayPublish(_ will: PendingWill, of client: MQTTClientState) -> Bool {
        let isAllowed = client.access(environment.access).allows(.publish, will.publication.topic.rawValue)
        if !isAllowed { gateway.metrics.refusedPublishes.increment() }
        return isAllowed
    }

    /// Hands over the will of a connection that has ended without DISCONNECT. If the session was never attached or the
    /// rules forbid the will, the will is withdrawn.
    private func leave(_ will: PendingWill, of client: MQTTClientState) {
        guard let link = client.link, link.id.rawValue != 0, mayPublish(will, of: client) else {
            return environment.wills.withdraw(will)
        }
        // Charged now, because nobody can be charged any more when the will is published.
        connection.chargeInTheEnd(.queues(environment.wills.reach(of: will)))
        environment.wills.ended(
            will,
            of: client.key,
            sessionExpiry: client.sessionExpiry,
            isNameFree: link.isNameFree,
            on: connection.loop
        )
    }

    /// Discards the client's will.
    func withdrawWill() {
        if let will = client?.will { environment.wills.withdraw(will) }
        client?.will = nil
    }

    /// Releases everything when the connection has ended, and hands over the will.
    func letGo() {
        guard let client else { return }
        // The client is removed first, because a charge for the following work may end the connection again.
        self.client = nil
        letGoOfAll(of: client)
        outbound.waiting = MQTTWaitingQueue()
        lastTarget = nil
        inboxClosed(client)
        // The will is handed over before the session is released, because the session's next connection may cancel the
        // will and must find it.
        if let will = client.will { leave(will, of: client) }
        let messenger = environment.messenger
        if let link = client.link, link.id.rawValue != 0 {
            if !link.completed.isEmpty { messenger.durable.acknowledged(link.id, link.completed) }
            messenger.durable.detach(
                link.id,
                link,
                sentUpTo: max(client.durable?.sentBefore ?? 0, outbound.window.next - 1),
                expiry: link.endsSession ? .zero : client.sessionExpiry
            )
        }
        outbound.ended()
        measureMemory()
    }
}

/// The core's attachment for a connection with a session. The connection's loop owns its mutable state.
final class MQTTKeptSessionLink: DurableAttachment, @unchecked Sendable {  // Confined, except the calls below.
    private let bound: NIOLoopBound<MQTTConnection>
    private let connection: Connection
    /// The session's id; 0 until the session is attached.
    var id = DurableSessionID(rawValue: 0)
    /// Whether the session ends with this connection, regardless of the agreed session expiry.
    private(set) var endsSession = false
    /// Whether the client's account has lost its name.
    private(set) var isNameFree = false
    /// The newest seq that other nodes are known to have queued before the session was attached.
    var head: UInt64 = 0
    /// The numbers of acknowledged messages that are not yet reported to the core.
    var completed: [UInt64] = []
    /// An operator's removals of the client from rooms that arrived before CONNACK.
    var expulsions: [RoomExpulsion] = []
    /// The session's subscriptions in the store; empty before the session is attached, and after CONNACK.
    var restored: [DurableSubscription] = []

    /// The client's permissions, for the core; nil for a session that ends with its connection, because then the
    /// connection itself checks the messages.
    let reader: (any TopicReader)?
    let source: CommitSource
    let order: AttachmentOrder
    private let identity: ClientIdentity
    private let sent = Atomic<UInt64>(0)

    init(_ owner: MQTTConnection, _ client: MQTTClientState) {
        var identity = client.identity
        // The claims may be long, and are not needed here.
        if identity.claims != nil { identity.claims = nil }
        self.identity = identity
        reader = client.sessionExpiry == .zero ? nil : client.reader
        source = owner.source(of: client)
        order = owner.connection.order
        connection = owner.connection
        bound = NIOLoopBound(owner, eventLoop: owner.connection.loop.eventLoop)
    }

    var userName: String? { identity.userName }
    var tokenOwner: DeviceID? { identity.tokenOwner }
    var login: LoginNumber? { identity.principal?.login }
    var shown: ShownProof { identity.shown }

    func ends(with end: AttachmentEnd) {
        endsSession = endsSession || end.endsKeptSessions
        isNameFree = isNameFree || end.freesName
    }

    /// Records that the connection is about to send or drop the message with this number.
    func mayHaveSent(upTo number: UInt64) { sent.store(number, ordering: .relaxed) }

    var sentUpTo: UInt64 { sent.load(ordering: .relaxed) }

    func renamed(to name: NickName) { identity.principal?.rename(to: name) }

    func replaced() { connection.loop.post(.ended(connection, .replaced)) }

    func ended(_ reason: AttachmentEnd) { connection.loop.post(.ended(connection, reason)) }

    func committed(_ publications: [QueuedPublication]) {
        let bound = bound
        connection.loop.post(.run { bound.value.committed(publications) })
    }

    func advanced(to head: UInt64) {
        let bound = bound
        connection.loop.post(.run { bound.value.advanced(to: head) })
    }
}

/// The connection's view of its session's queue: the part that is in memory, and the range of numbers that is in the
/// store.
final class MQTTDurableQueue {
    enum Next {
        /// Send the message that ``MQTTDurableQueue/takeFirst()`` returns.
        case publication
        /// Send PUBREL for the message with this number. The client received the message over an earlier connection,
        /// but did not complete it.
        case release(UInt64)
        /// Wait: nothing can be sent now.
        case nothing
        /// Read the messages after this number from the store.
        case load(after: UInt64)
    }

    /// The number of messages that are read from the store at once.
    static let pageSize = 512
    /// The number of messages in memory at which new messages are no longer kept; they are read from the store later.
    /// The last batch may exceed this number.
    static let maxWaiting = 2_048
    /// The bytes of messages in memory at which new messages are no longer kept. The last batch may exceed this number.
    static let maxWaitingBytes = 1 << 20
    static let retryDelay = TimeAmount.seconds(1)

    /// The number up to which messages were sent over an earlier connection.
    let sentBefore: UInt64
    /// The number up to which messages were queued before this connection.
    let waitedBefore: UInt64
    /// The number up to which messages were queued while the account had another name.
    let renamedAt: UInt64
    /// The numbers of messages for which PUBREL is still to be sent again, ascending.
    var releasesLeft: ArraySlice<UInt64> = []
    var isLoading = false
    private var waiting: Deque<QueuedPublication> = []
    /// The number of messages taken since ``waiting`` was last empty.
    private var taken = 0
    /// The bytes of waiting messages.
    private(set) var bytes = 0
    /// The last number that is in ``waiting`` or was taken from it.
    private var known: UInt64 = 0
    /// The newest number in the store.
    private var head: UInt64

    init(_ opening: DurableOpening) {
        sentBefore = opening.sentUpTo
        head = opening.head
        waitedBefore = opening.head
        renamedAt = opening.renamedAt
        // PUBREL is sent again for messages that the client had received, but not completed [MQTT-4.4.0-1].
        releasesLeft = opening.released[...]
    }

    /// The number of messages that wait to be sent, in memory and in the store.
    var queuedCount: Int { waiting.count + Int(clamping: head - min(head, max(known, sentBefore))) }

    func committed(_ publications: [QueuedPublication]) {
        guard let last = publications.last, let first = publications.first else { return }
        head = max(head, last.seq)
        guard first.seq == known + 1, !isLoading, waiting.count < Self.maxWaiting,
            bytes < Self.maxWaitingBytes
        else { return }
        waiting.append(contentsOf: publications)
        for queued in publications { bytes += queued.weight }
        known = last.seq
    }

    func advanced(to head: UInt64) { self.head = max(self.head, head) }

    func loaded(_ page: DurablePage) {
        if page.publications.first.map({ $0.seq > known }) ?? false {
            waiting.append(contentsOf: page.publications)
            bytes += page.weight
        } else {
            for queued in page.publications where queued.seq > known {
                waiting.append(queued)
                bytes += queued.weight
            }
        }
        known = max(known, page.upTo)
    }

    /// Returns what to do next.
    ///
    /// - Parameter most: the highest number that the window allows. A message with a higher number waits until the
    ///   oldest message in the window is complete.
    func next(notAbove most: UInt64) -> Next {
        let first = waiting.first?.seq
        if let release = releasesLeft.first, first.map({ $0 > release }) ?? true {
            guard known >= release || first != nil else { return .load(after: known) }
            guard release <= most else { return .nothing }
            releasesLeft.removeFirst()
            return .release(release)
        }
        guard let first else { return known < head ? .load(after: known) : .nothing }
        return first <= most ? .publication : .nothing
    }

    /// Takes the message that ``next(notAbove:)`` has announced.
    func takeFirst() -> QueuedPublication {
        let queued = waiting.removeFirst()
        bytes -= queued.weight
        taken += 1
        if waiting.isEmpty {
            // Frees the memory of a long queue.
            if taken > 64 { waiting = [] }
            taken = 0
        }
        return queued
    }
}
