// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

extension MQTTClient {
    // MARK: Publishing

    /// Publishes a message.
    ///
    /// With QoS 0, the call returns when the operating system has accepted the message. With QoS 1 and 2, it returns
    /// when the server has acknowledged the message. Several calls may wait at once; messages are sent in the order of
    /// the calls.
    ///
    /// - Returns: `.success`, or `.noMatchingSubscribers` if the server reports it.
    /// - Throws: HermesClientError if the server refuses the message (see ``HermesClientError/mqttReason``) or does
    ///   not acknowledge it in time; CancellationError. After a cancellation, the message may still be published.
    @discardableResult
    public func publish(_ message: MQTTMessage) async throws -> ReasonCode {
        let outgoing = try encoded(message)
        guard message.qos != .atMostOnce else {
            try await driver.send(.frame(outgoing.frame))
            return .success
        }
        let timeout = configuration.publishTimeout
        return try await driver.request(.publish(outgoing), replay: .always, timeout: timeout).first ?? .success
    }

    /// Publishes a text; throws the errors of ``publish(_:)``.
    @discardableResult
    public func publish(
        _ text: String,
        to topic: String,
        qos: QoS = .atMostOnce,
        retain: Bool = false
    ) async throws -> ReasonCode {
        try await publish(MQTTMessage(topic: topic, text: text, qos: qos, retain: retain))
    }

    /// Publishes a message without waiting. Messages that one thread publishes in this way are sent in order.
    ///
    /// - Parameters:
    ///   - message: the message, as for ``publish(_:)``. A message of QoS 0 fails if there is no connection.
    ///   - whenDone: the function that gets the outcome, on the client's event loop. It must not block. If the message
    ///     cannot be encoded, the function is called at once on the caller's thread.
    package func publish(
        _ message: MQTTMessage,
        whenDone: @escaping @Sendable (Result<ReasonCode, any Error>) -> Void
    ) {
        let outgoing: MQTTOutgoing
        do {
            outgoing = try encoded(message)
        } catch {
            return whenDone(.failure(error))
        }
        let timeout = configuration.publishTimeout
        driver.onLoop { driver in
            do {
                try driver.requireStarted()
            } catch {
                return whenDone(.failure(error))
            }
            if outgoing.qos == .atMostOnce {
                driver.submit(.frame(outgoing.frame), waiter: RequestWaiter { whenDone($0.map { .success }) })
            } else {
                let waiter = RequestWaiter<MQTTLink.Answer> { whenDone($0.map { $0.first ?? .success }) }
                driver.submit(.publish(outgoing), replay: .always, timeout: timeout, waiter: waiter)
            }
        }
    }

    private func encoded(_ message: MQTTMessage) throws(HermesClientError) -> MQTTOutgoing {
        guard MQTTTopic.isValidName(message.topic) else {
            let topic = message.topic
            throw HermesClientError(
                .notEncodable,
                "\"\(topic)\" is not a topic name: it must not be empty or contain + or #"
            )
        }
        do {
            return try MQTTOutgoing(message, version: configuration.version.wire)
        } catch {
            throw HermesClientError(.notEncodable, error.message)
        }
    }

    /// Pings the server and returns the round-trip time. When the call returns, the server has read everything that was
    /// published before on this connection, including messages of QoS 0.
    ///
    /// - Throws: HermesClientError if the connection is lost, or if no answer arrives in time.
    @discardableResult
    package func ping() async throws -> Duration {
        let start = ContinuousClock.now
        _ = try await driver.request(.ping, replay: .never, timeout: configuration.requestTimeout)
        return ContinuousClock.now - start
    }

    // MARK: Subscribing

    /// Subscribes to topic filters. If the server loses the session, the client subscribes again on the next
    /// connection.
    ///
    /// - Parameter subscriptions: the subscriptions; at least one.
    /// - Returns: for each subscription, the granted QoS (below 0x80) or the reason for the refusal.
    /// - Throws: HermesClientError if the request cannot be encoded or is not answered in time; CancellationError.
    public func subscribe(_ subscriptions: [Subscription]) async throws -> [ReasonCode] {
        try await subscribe(subscriptions, identifier: nil)
    }

    /// Subscribes; see ``subscribe(_:)``.
    ///
    /// - Parameter identifier: the subscription identifier, which the server adds to each matching message: 1 to
    ///   268,435,455; MQTT 5.0 only.
    package func subscribe(_ subscriptions: [Subscription], identifier: Int?) async throws -> [ReasonCode] {
        try Self.requireValid(subscriptions.map(\.filter))
        return try await driver.request(
            .subscribe(subscriptions, identifier: identifier),
            replay: .always,
            timeout: configuration.requestTimeout
        )
    }

    /// Subscribes to one topic filter; see ``subscribe(_:)``.
    ///
    /// - Returns: the granted QoS.
    /// - Throws: the errors of ``subscribe(_:)``; HermesClientError if the server refuses the subscription.
    @discardableResult
    public func subscribe(to filter: String, qos: QoS = .atMostOnce) async throws -> QoS {
        let reason = try await subscribe([Subscription(filter, qos: qos)]).first ?? .unspecifiedError
        guard let granted = QoS(rawValue: reason.rawValue) else {
            throw HermesClientError("the server refused the subscription \(filter)", reason)
        }
        return granted
    }

    /// Ends subscriptions.
    ///
    /// - Parameter filters: the topic filters of the subscriptions; at least one.
    /// - Returns: the outcome for each filter. A server of MQTT 3.1.1 reports no failures, so every outcome is then a
    ///   success.
    /// - Throws: HermesClientError if the request cannot be encoded or is not answered in time; CancellationError.
    @discardableResult
    public func unsubscribe(from filters: String...) async throws -> [ReasonCode] { try await unsubscribe(filters) }

    /// Ends subscriptions; see ``unsubscribe(from:)``.
    @discardableResult
    package func unsubscribe(_ filters: [String]) async throws -> [ReasonCode] {
        try Self.requireValid(filters)
        return try await driver.request(.unsubscribe(filters), replay: .always, timeout: configuration.requestTimeout)
    }

    static func requireValid(_ filters: [String]) throws {
        guard !filters.isEmpty else { throw HermesClientError(.notEncodable, "at least one topic filter is needed") }
        for filter in filters where !MQTTTopic.isValidFilter(filter) {
            let message =
                "\"\(filter)\" is not a topic filter: it must not be empty, + and # must each fill a level, "
                + "and # must be the last level"
            throw HermesClientError(.notEncodable, message)
        }
    }
}

extension MQTTLink {
    /// Checks that CONNECT can be encoded.
    ///
    /// - Throws: HermesClientError `.notEncodable`.
    func validate() throws(HermesClientError) {
        if let will = configuration.will, !MQTTTopic.isValidName(will.topic) {
            let topic = will.topic
            throw HermesClientError(
                .notEncodable,
                "\"\(topic)\" is not a topic name for a will: it must not be empty or contain + or #"
            )
        }
        if version == .v311, configuration.password != nil, configuration.userName == nil {
            throw HermesClientError(.notEncodable, "MQTT 3.1.1 has no password without a user name")
        }
        if configuration.clientID.isEmpty, !configuration.cleanStart {
            throw HermesClientError(.notEncodable, "a session that is to be resumed needs a client id")
        }
        guard !configuration.clientID.utf8.contains(0), configuration.userName?.utf8.contains(0) != true else {
            throw HermesClientError(.notEncodable, "a client id or user name must not hold U+0000 [MQTT-1.5.4-2]")
        }
        do {
            _ = try MQTTPacket.connect(connectPacket()).frame(version: version)
        } catch {
            throw HermesClientError(.notEncodable, error.message)
        }
    }
}
