// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOConcurrencyHelpers
import NIOCore

/// The messages of a subscription that ends with its scope.
///
/// State: the mailbox and the message that the app is handling, each in a lock.
final class MQTTScope: Sendable {
    /// A message on its way to one or more scopes. It counts as taken when the last of them has taken it.
    final class Delivery: Sendable {
        let event: MQTTLink.Event
        private let untaken: NIOLockedValueBox<Int>

        init(_ event: MQTTLink.Event, scopes: Int) {
            self.event = event
            untaken = NIOLockedValueBox(scopes)
        }

        /// A scope has taken the message.
        ///
        /// - Returns: whether it was the last one.
        func taken() -> Bool {
            untaken.withLockedValue { untaken in
                untaken -= 1
                return untaken == 0
            }
        }
    }

    let filter: String
    /// The subscription identifier; nil: messages are recognized by their topics.
    let identifier: Int?
    private let mailbox: Mailbox<Delivery>
    private let handedOver = NIOLockedValueBox<Delivery?>(nil)

    /// Creates a scope.
    ///
    /// - Parameters:
    ///   - filter: the topic filter.
    ///   - identifier: the subscription identifier; nil: none.
    ///   - maxMessages: the number of messages that may wait.
    ///   - maxBytes: the bytes that may wait.
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
        // Others are bounded by the receive maximum and by the link.
        let isBounded = delivery.event.message.qos == .atMostOnce
        return mailbox.offer(delivery, bytes: delivery.event.bytes, isBounded: isBounded)
    }

    /// Waits for the next message. The one before counts as taken.
    func next(taken: @Sendable (MQTTLink.Event) -> Void) async -> MQTTMessage? {
        takeLast(taken)
        guard let delivery = await mailbox.next() else { return nil }
        handedOver.withLockedValue { $0 = delivery }
        return delivery.event.message
    }

    /// No message arrives any more; the loop ends once it has taken the waiting messages.
    func finish() { mailbox.finish() }

    /// The scope has ended: everything counts as taken.
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

/// Topic filters (MQTT 5.0, 4.7).
enum MQTTTopicMatch {
    /// Whether a topic matches a filter. For a shared subscription, `$share/GROUP/` does not count.
    static func matches(_ topic: String, _ filter: String) -> Bool {
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
    /// Each scope has a sequence of its own, for a single loop; a message that belongs to a scope is not in
    /// ``messages``. It counts as taken, and is acknowledged to the server, when the loop asks for the next one.
    /// Messages that still wait at the end of the scope are acknowledged and dropped. A sequence holds up to
    /// ``Configuration/maxQueuedMessages`` and ``Configuration/maxQueuedBytes``. Beyond that, new messages of QoS 0 are
    /// dropped (``droppedMessages``), and the receive maximum holds back those of QoS 1 and 2.
    ///
    /// Several scopes may have the same filter; its subscription ends with the last of them. With MQTT 3.1.1, two
    /// scopes whose filters overlap may get a message twice if the server sends it once for each filter.
    ///
    /// - Parameters:
    ///   - filter: the topic filter: `+` matches one level, `#` at the end all levels below.
    ///   - qos: the highest QoS with which messages are delivered.
    ///   - body: gets the messages; its sequence ends when the client has stopped.
    /// - Throws: the body's error; HermesClientError if the server refuses the subscription, or the timeout passes.
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

    /// Ends a scope without waiting for the server.
    func endScope(_ scope: MQTTScope) {
        let isLast = link.remove(scope)
        scope.end { takenInScope($0) }
        guard isLast else { return }
        guard (try? requireStarted()) != nil else {
            link.endings.remove(scope.filter)
            return
        }
        // After a reconnect too, if the server still has the session.
        let waiter = RequestWaiter<Link.Answer> { [weak self] _ in self?.onLoop { $0.link.endings.remove(scope.filter) }
        }
        submit(.unsubscribe([scope.filter]), replay: .always, timeout: .seconds(86_400), waiter: waiter)
    }

    /// A scope's message was taken.
    nonisolated func takenInScope(_ event: MQTTLink.Event) {
        onLoop { driver in
            driver.withLink { link, effects in link.taken(event, now: driver.eventLoop.now, effects: &effects) }
        }
    }
}
