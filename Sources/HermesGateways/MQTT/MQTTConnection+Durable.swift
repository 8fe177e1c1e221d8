// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Logging
import Metrics
import NIOCore

/// Attaches the connection to its session, and sends the queue of a durable session. A durable session outlives its
/// connection (3.1.2.4, 4.1, 4.4).
extension MQTTConnection {
    /// Attaches this connection to the client's session, and then writes CONNACK. If another connection of the same
    /// client has the session, that connection ends first.
    func attach(_ client: MQTTClientState, _ attempt: MQTTConnectAttempt) {
        let link = MQTTSessionLink(self, client)
        client.link = link
        let durable = environment.messenger.durable
        let expiry: Duration? = client.sessionExpiry
        connection.hold()
        let loop = connection.loop
        let bound = loop.bound(self)
        let isClean = attempt.connect.cleanStart
        durable.attach(client.key, clean: isClean, expiry: expiry, attachment: link) { result in
            let attached: @Sendable () -> Void = { bound.value.attached(result, to: link, expiry: expiry, attempt) }
            if loop.eventLoop.inEventLoop { attached() } else { loop.post(.run(attached)) }
        }
    }

    private func attached(
        _ result: Result<DurableOpening, HermesError>,
        to applicant: MQTTSessionLink,
        expiry: Duration?,
        _ attempt: MQTTConnectAttempt
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
            refuseConnect(error, attempt.connect, user: client.identity.userName)
        case .success(let opening):
            link.id = opening.id
            // After the login had begun, the account was disabled, renamed or deleted, or the device was removed.
            if let stamp = attempt.loginStamp,
                let end = environment.messenger.durable.reason(toEnd: client.key, of: link, since: stamp)
            {
                link.ends(with: end)
                let text = "the account's connections were ended; log in again"
                let error = HermesError(.notAuthenticated, text)
                return refuseConnect(error, attempt.connect, user: client.identity.userName)
            }
            // The previous connection has ended by now and has handed over its will.
            environment.wills.connected(client.key, isClean: attempt.connect.cleanStart)
            environment.wills.keep(willOf: client)
            resume(client, opening) { [self] in
                connected(client, attempt, sessionPresent: opening.isPresent)
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
        // No decisions and no writes to the store are needed. But each subscription is announced to all loops, now
        // and when it ends.
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
                guard durable.leaving < MQTTDurableQueue.maxLeaving else { return }
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
        // Messages that were already sent do not expire [MQTT-4.3.3-7].
        let wasSent = queued.seq <= durable.sentBefore
        let isExpired = !wasSent && queued.publication.hasExpired(at: expiryTime(of: queued.publication.details))
        let isWanted = !isExpired && mayRead(queued, of: client, durable)
        let qos = min(queued.qos, gateway.maximumQoS)
        guard isWanted, write(queued, qos, isDuplicate: wasSent) else {
            if wasSent, queued.qos == .exactlyOnce { return endExchange(of: queued.seq, client, isTooLarge: isWanted) }
            outbound.window.skip(to: queued.seq + 1)
            return leave(queued, of: client, isTooLarge: isWanted)
        }
        durable.wrote(queued.seq)
        connection.tally.messagesOut += 1
        guard qos == .atMostOnce else { return }
        // A message of QoS 0 will not be acknowledged.
        outbound.window.skip(to: queued.seq + 1)
        complete(queued.seq, of: client)
    }

    /// Ends the exchange of a QoS 2 message that was sent over an earlier connection, and that must not be sent again.
    ///
    /// If the client has the message, it waits for PUBREL. Without PUBREL, the client would mistake a later message
    /// with the same packet identifier for a repetition of this message [MQTT-4.3.3-10].
    private func endExchange(of number: UInt64, _ client: MQTTClientState, isTooLarge: Bool) {
        guard let link = client.link else { return }
        if isTooLarge { dropped(.tooLarge) }
        let packetID = outbound.window.send(exactlyOnce: true)
        _ = outbound.window.received(packetID, isStored: true)
        release(number, packetID, of: link)
    }

    /// Writes a message of the queue. With QoS 1 or 2, the message uses the next slot of the window.
    ///
    /// - Returns: false if the client accepts no packet of that size. In that case, nothing was written.
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
    private func leave(_ queued: QueuedPublication, of client: MQTTClientState, isTooLarge: Bool) {
        let isForOthers = queued.share != nil && !queued.publication.hasExpired(at: now())
        guard isForOthers, let id = client.link?.id, let durable = client.durable else {
            return drop(queued.seq, of: client, isTooLarge: isTooLarge)
        }
        // The message itself is not kept until it has left.
        let seq = queued.seq
        durable.leaving += 1
        let loop = connection.loop
        let bound = loop.bound(self)
        environment.messenger.durable.passOn(queued, of: id, isTooLarge: isTooLarge) { isTaken in
            loop.post(.run { bound.value.left(seq, isTooLarge: isTooLarge, isTaken: isTaken) })
        }
    }

    private func left(_ seq: UInt64, isTooLarge: Bool, isTaken: Bool) {
        guard let client, let durable = client.durable else { return }
        let wasFull = durable.leaving >= MQTTDurableQueue.maxLeaving
        durable.leaving -= 1
        if !isTaken { drop(seq, of: client, isTooLarge: isTooLarge) }
        if wasFull { sendQueued() }
    }

    /// Completes a message without delivering it.
    private func drop(_ seq: UInt64, of client: MQTTClientState, isTooLarge: Bool) {
        if isTooLarge { dropped(.tooLarge) }
        complete(seq, of: client)
    }

    private func load(after seq: UInt64, of durable: MQTTDurableQueue) {
        guard !durable.isLoading, let id = client?.link?.id else { return }
        durable.isLoading = true
        let loop = connection.loop
        let bound = loop.bound(self)
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
            durable.retryPause.succeeded()
            durable.loaded(page)
            sendQueued()
            measureMemory()
        case .failure(let error):
            let now = environment.messenger.time.uptime()
            connection.listener.noteFailedRead(of: "a session's queue", error, now: now)
            let loop = connection.loop.eventLoop.assumeIsolated()
            durable.mustWaitForRetry = true
            loop.scheduleTask(in: durable.retryPause.next(after: error)) { [self] in
                durable.mustWaitForRetry = false
                sendQueued()
            }
        }
    }

    /// Accepts publications that the core has queued for the session (``DurableAttachment/committed(_:)``). Called on
    /// this loop.
    func committed(_ publications: [QueuedPublication]) {
        guard let durable = client?.durable else { return }
        durable.committed(publications)
        sendQueued()
        measureMemory()
    }

    /// Notes that other nodes have queued publications (``DurableAttachment/advanced(to:)``). Called on this loop.
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
        connection.loop.eventLoop.assumeIsolated().execute { [self] in reportCompleted() }
    }

    func reportCompleted() {
        guard let link = client?.link, let id = link.id, !link.completed.isEmpty else { return }
        environment.messenger.durable.acknowledged(id, link.completed)
        link.completed.removeAll(keepingCapacity: link.completed.count <= 64)
    }

    /// Stores a PUBREC, and then sends PUBREL. If PUBREL went out first, the message could be sent again after a
    /// restart.
    func release(_ number: UInt64, _ packetID: UInt16, of link: MQTTSessionLink) {
        guard let id = link.id else { return assertionFailure("a message of a session that is not attached") }
        let loop = connection.loop
        let bound = loop.bound(self)
        environment.messenger.durable.released(id, number, source: link.source) { result in
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
        guard let link = client.link, link.id != nil, mayPublish(will, of: client) else {
            return environment.wills.withdraw(will)
        }
        // The cost is charged now, because nobody can be charged any more when the will is published.
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
        if let link = client.link, let id = link.id {
            if !link.completed.isEmpty { messenger.durable.acknowledged(id, link.completed) }
            messenger.durable.detach(
                id,
                link,
                // A message that could not be sent to this client does not count as sent, unless its number is below
                // that of a sent message.
                sentUpTo: client.durable?.writtenUpTo ?? 0,
                expiry: link.endsSession ? .zero : client.sessionExpiry
            )
        }
        outbound.ended()
        measureMemory()
    }
}
