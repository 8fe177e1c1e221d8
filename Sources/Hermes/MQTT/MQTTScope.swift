// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesWire
import NIOConcurrencyHelpers
import NIOCore

/// The messages of a subscription that lasts while a closure runs. That time is the scope of the subscription.
///
/// One lock protects the mailbox. Another lock protects the message that the app is handling.
final class MQTTScope: Sendable {
    /// A message on its way to one or more scopes. It counts as taken when all of these scopes have taken it.
    final class Delivery: Sendable {
        let event: MQTTLink.Event
        private let untaken: NIOLockedValueBox<Int>

        init(_ event: MQTTLink.Event, scopes: Int) {
            self.event = event
            untaken = NIOLockedValueBox(scopes)
        }

        /// Notes that a scope has taken the message.
        ///
        /// - Returns: whether all scopes have now taken the message.
        func taken() -> Bool {
            untaken.withLockedValue { untaken in
                untaken -= 1
                return untaken == 0
            }
        }
    }

    let filter: String
    /// The filter, compared byte by byte [MQTT-4.7.3-4].
    var key: ExactText { ExactText(filter) }
    /// The subscription identifier; nil if messages are recognized by their topics.
    let identifier: Int?
    private let mailbox: Mailbox<Delivery>
    private let handedOver = NIOLockedValueBox<Delivery?>(nil)

    /// Creates a scope.
    ///
    /// - Parameters:
    ///   - filter: the topic filter.
    ///   - identifier: the subscription identifier; nil if there is none.
    ///   - maxMessages: the largest number of messages that wait.
    ///   - maxBytes: the largest total size of the messages that wait, in bytes.
    init(filter: String, identifier: Int?, maxMessages: Int, maxBytes: Int) {
        self.filter = filter
        self.identifier = identifier
        mailbox = Mailbox(maxElements: maxMessages, maxBytes: maxBytes)
    }

    /// Whether the message belongs to the scope.
    func matches(_ message: MQTTMessage) -> Bool {
        if let identifier, !message.properties.subscriptionIdentifiers.isEmpty {
            return message.properties.subscriptionIdentifiers.contains(identifier)
        }
        return identifier == nil && MQTTTopicMatch.matches(message.topic, filter)
    }

    /// Hands a message to the scope's loop.
    ///
    /// - Returns: false if there is no room.
    func offer(_ delivery: Delivery) -> Bool {
        // The receive maximum and the link limit the messages of QoS 1 and 2.
        let isBounded = delivery.event.message.qos == .atMostOnce
        return mailbox.offer(delivery, bytes: delivery.event.bytes, isBounded: isBounded)
    }

    /// Removes and returns the messages that wait for the scope's loop.
    func removeWaiting() -> [Delivery] { mailbox.removeAll() }

    /// Waits for the next message. The previous message counts as taken.
    func next(taken: @Sendable (MQTTLink.Event) -> Void) async -> MQTTMessage? {
        takeLast(taken)
        guard let delivery = await mailbox.next() else { return nil }
        handedOver.withLockedValue { $0 = delivery }
        return delivery.event.message
    }

    /// Ends the app's loop over the messages after the loop has taken the waiting messages, because no further message
    /// arrives.
    func finish() { mailbox.finish() }

    /// Ends the scope. All of its messages then count as taken.
    func end(taken: @Sendable (MQTTLink.Event) -> Void) {
        mailbox.finish()
        takeLast(taken)
        for delivery in mailbox.removeAll() where delivery.taken() { taken(delivery.event) }
    }

    private func takeLast(_ taken: @Sendable (MQTTLink.Event) -> Void) {
        let last = handedOver.withLockedValue { last in
            defer { last = nil }
            return last
        }
        if let last, last.taken() { taken(last.event) }
    }
}

/// The rules for matching topics with topic filters (MQTT 5.0, section 4.7).
package enum MQTTTopicMatch {
    /// Whether a topic matches a filter. For a shared subscription, the prefix `$share/GROUP/` is ignored.
    package static func matches(_ topic: String, _ filter: String) -> Bool {
        let filter = MQTTTopic.sharedParts(of: filter)?.filter ?? filter[...]
        var levels = topic.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)[...]
        // Wildcards do not match topics that begin with $ [MQTT-4.7.2-1].
        if topic.utf8.first == UInt8(ascii: "$"), let first = filter.utf8.first, first != UInt8(ascii: "$") {
            return false
        }
        for pattern in filter.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            if pattern.elementsEqual("#".utf8) { return true }
            guard let level = levels.popFirst() else { return false }
            guard pattern.elementsEqual("+".utf8) || pattern.elementsEqual(level) else { return false }
        }
        return levels.isEmpty
    }
}

// MARK: - Scoped subscriptions
extension MQTTClient {
    /// Subscribes to a topic filter, runs the body with the messages, and then ends the subscription, even if the body
    /// throws or the task is cancelled.
    ///
    /// ```swift
    /// try await client.subscribe(to: "home/+/temperature", qos: .atLeastOnce) { messages in
    ///     for await message in messages { show(message.topic, message.text) }
    /// }
    /// ```
    ///
    /// The time during which the body runs is called a scope. Each scope has its own sequence, which only one loop may
    /// read. A message that belongs to a scope is not in ``messages``. The message counts as taken, and is
    /// acknowledged to the server, when the loop asks for the next message. Messages that still wait at the end of the
    /// scope are acknowledged and dropped. A sequence buffers up to ``Configuration/maxQueuedMessages`` and
    /// ``Configuration/maxQueuedBytes``. Beyond these limits, new messages of QoS 0 are dropped and counted in
    /// ``droppedMessages``. The receive maximum keeps the server from sending more messages of QoS 1 and 2.
    ///
    /// If the client resumed the session of an earlier run, the messages of that run's subscriptions wait in
    /// ``messages`` until a scope with a matching filter begins. They then move to this scope, unless the client is
    /// also subscribed to their topics without a scope.
    ///
    /// Several scopes may have the same filter. Their subscription ends with the last of these scopes. With MQTT
    /// 3.1.1, a server may send a message once for each of two overlapping filters. The scopes of the two filters then
    /// each get the message twice.
    ///
    /// - Parameters:
    ///   - filter: the topic filter: `+` matches one level, and `#` at the end matches all levels below.
    ///   - qos: the highest QoS at which messages are delivered.
    ///   - body: the closure that gets the sequence of messages. The sequence ends when the client has stopped.
    /// - Throws: the body's error; HermesClientError if the server refuses the subscription or does not answer in
    ///   time.
    public nonisolated(nonsending) func subscribe<Result>(
        to filter: String,
        qos: QoS = .atMostOnce,
        _ body: nonisolated(nonsending) (ClientEvents<MQTTMessage>) async throws -> Result
    ) async throws -> Result {
        try Self.requireValid([filter])
        let scope = await driver.beginScope(filter)
        do {
            let wanted = Subscription(filter, qos: qos)
            let reason = try await subscribe([wanted], identifier: scope.identifier).first ?? .unspecifiedError
            guard !reason.isFailure else {
                throw HermesClientError("the server refused the subscription \(filter)", reason)
            }
            await driver.inherit(scope)
            let result = try await body(ClientEvents { [driver] in await scope.next { driver.takenInScope($0) } })
            await driver.endScope(scope)
            return result
        } catch {
            await driver.endScope(scope)
            throw error
        }
    }
}

extension ConnectionDriver where Link == MQTTLink {
    func beginScope(_ filter: String) -> MQTTScope {
        let scope = link.makeScope(filter)
        if isStopped { scope.finish() }
        return scope
    }

    /// Moves the waiting messages of an earlier run that match a scope's filter from ``MQTTClient/messages`` to the
    /// scope, in order. An app that uses only scopes does not read ``MQTTClient/messages``. While the messages are not
    /// acknowledged, the receive maximum keeps the server from sending further messages.
    func inherit(_ scope: MQTTScope) {
        guard !isStopped, link.resumesEarlierRun else { return }
        var moved: [MQTTLink.Event] = []
        var rest = Deque<MQTTLink.Event>()
        for event in events {
            if MQTTTopicMatch.matches(event.message.topic, scope.filter), link.isInherited(event.message) {
                moved.append(event)
                eventBytes -= link.bytes(of: event)
            } else {
                rest.append(event)
            }
        }
        guard !moved.isEmpty else { return }
        events = rest
        link.backlogChanged(events.count, bytes: eventBytes)
        withLink { link, effects in link.inherit(moved, scope, effects: &effects) }
    }

    /// Ends a scope without waiting for the server.
    func endScope(_ scope: MQTTScope) {
        let isLast = link.remove(scope)
        scope.end { takenInScope($0) }
        guard isLast else { return }
        guard (try? requireStarted()) != nil else {
            link.endings.remove(scope.key)
            return
        }
        // The request is repeated after a reconnect, because the server may still have the session.
        let waiter = RequestWaiter<Link.Answer> { [weak self] _ in self?.onLoop { $0.link.endings.remove(scope.key) }
        }
        submit(.unsubscribe([scope.filter]), replay: .always, timeout: .seconds(86_400), waiter: waiter)
    }

    /// Notes that a scope's message was taken.
    nonisolated func takenInScope(_ event: MQTTLink.Event) {
        onLoop { driver in
            driver.withLink { link, effects in link.taken(event, now: driver.eventLoop.now, effects: &effects) }
        }
    }
}
