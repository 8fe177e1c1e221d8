// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import NIOCore

/// PUBLISH packets that arrived together, handled together if none needs special treatment.
extension MQTTConnection {
    func publishesReceived(_ run: MQTTPublishRun) throws(MQTTPacketError) {
        try gateway.check(run.qos, isRetained: false, of: "a PUBLISH")
        let target = try target(of: run)
        let receivers = target?.route.receiverCount ?? 0
        let most = topics.pace.most
        var run = run
        if receivers * run.count > most {
            // The rest comes again, once others have had their turn.
            let part = run.part(0..<max(1, most / receivers))
            connection.giveBack(run.bytes.readableBytes - part.bytes.readableBytes, frames: run.count - part.count)
            run = part
        }
        if let target, publishTogether(run, target) { return }
        for index in 0..<run.count {
            // One of them may have ended the connection.
            guard phase == .connected else { return }
            try publishReceived(run.frame(index))
        }
    }

    /// The common target of all packets; nil if it differs.
    private func target(of run: MQTTPublishRun) throws(MQTTPacketError) -> MQTTPublishTarget? {
        guard isPlain(run) else { return nil }
        if let known = lastTarget, known.rules == gateway.access.generation,
            known.isNamed(run.bytes, at: run.bytes.readerIndex + run.topicStart, length: run.topicBytes)
        {
            return known
        }
        guard case .publish(let packet) = try MQTTPacket(run.frame(0).frame, version: version) else { return nil }
        return try target(of: packet)
    }

    /// Whether no packet has properties.
    private func isPlain(_ run: MQTTPublishRun) -> Bool {
        guard version == .v5 else { return true }
        let offset = run.qos == .atMostOnce ? 0 : 2
        return run.bytes.withUnsafeReadableBytes { bytes in
            run.bodies.allSatisfy { $0.count > offset && bytes[Int($0.lowerBound) + offset] == 0 }
        }
    }

    /// - Returns: false if each packet must be handled separately; then nothing was done.
    private func publishTogether(_ run: MQTTPublishRun, _ target: MQTTPublishTarget) -> Bool {
        guard target.isAllowed, !target.isSpecial else { return false }
        let qos = run.qos
        guard qos == .atMostOnce || mayAcknowledge(run, target) else { return false }
        connection.tally.messagesIn += run.count
        let outcome = topics.publish(
            PublicationRun(
                topic: target.topic,
                slot: Self.slot(version, isAcknowledged: qos != .atMostOnce),
                bytes: run.bytes,
                bodies: run.bodies,
                payloadOffset: (qos == .atMostOnce ? 0 : 2) + (version == .v5 ? 1 : 0),
                sender: target.sender,
                qos: MQTTTranslation.qos(qos),
                publisher: number
            ),
            via: target.route
        )
        if outcome.isCongested { connection.slowDown() }
        if qos != .atMostOnce {
            acknowledge(run, qos, outcome.matchedAnywhere ? .success : .noMatchingSubscribers)
        }
        return true
    }

    /// Whether all can be acknowledged at once: none must be stored, is a repetition, or exceeds a limit.
    private func mayAcknowledge(_ run: MQTTPublishRun, _ target: MQTTPublishTarget) -> Bool {
        guard let client, client.acknowledgements.isEmpty, durableRoute(of: target) == nil else { return false }
        let isExactlyOnce = run.qos == .exactlyOnce
        // A kept session has to store the identifiers.
        guard !isExactlyOnce || client.durable == nil else { return false }
        let added = isExactlyOnce ? run.count : 1
        guard client.received.count + (version == .v311 && !isExactlyOnce ? 0 : added) <= receiveLimit else {
            return false
        }
        return run.bytes.withUnsafeReadableBytes { bytes in
            var last: UInt16 = 0
            return run.bodies.allSatisfy { body in
                let id = Self.packetID(bytes, body)
                defer { last = id }
                // Ascending, so that there are no duplicates.
                return id != 0 && !(isExactlyOnce && (id <= last || client.received.contains(id)))
            }
        }
    }

    private func acknowledge(_ run: MQTTPublishRun, _ qos: MQTTQoS, _ reason: MQTTReasonCode) {
        let client = client
        run.bytes.withUnsafeReadableBytes { bytes in
            for body in run.bodies {
                let id = Self.packetID(bytes, body)
                if qos == .exactlyOnce { client?.received.insert(id) }
                writeAcknowledgement(qos == .exactlyOnce ? .pubrec : .puback, id, reason)
            }
        }
    }

    private static func packetID(_ bytes: UnsafeRawBufferPointer, _ body: Range<UInt32>) -> UInt16 {
        let index = Int(body.lowerBound)
        return UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
    }

    // MARK: To the client

    package func deliver(_ run: DeliveryRun, for subscription: TopicSubscription) {
        guard phase == .connected else { return }
        if subscription.noLocal, run.run.publisher == number { return }
        if !sendTogether(run, subscription) { subscription.deliverOneByOne(run) }
    }

    /// - Returns: false if the packets cannot be sent unchanged; then nothing was done.
    private func sendTogether(_ delivery: DeliveryRun, _ subscription: TopicSubscription) -> Bool {
        let run = delivery.run
        guard subscription.isPlain, !usesAliases, !subscription.isShared, subscription.qos >= run.qos,
            run.bytes.readableBytes <= maxPacketBytes
        else { return false }
        if run.qos == .atMostOnce {
            guard run.slot == (version == .v5 ? .mqttV5 : .mqttV311) else { return false }
            if connection.keepsUp {
                connection.write(.text, frame: run.bytes, count: run.count)
            } else if connection.isWorthKeepingTogether(run.bytes) {
                connection.write(.text, frame: delivery.compactBytes, count: run.count)
            } else {
                return false
            }
            connection.tally.messagesOut += run.count
            return true
        }
        guard connection.keepsUp, run.slot == (version == .v5 ? .mqttV5Acknowledged : .mqttV311Acknowledged),
            !subscription.isLiveAtMostOnceOnly, waiting == nil,
            window?.hasRoom(for: run.count) ?? (makeWindow() && run.count <= window?.limit ?? 0)
        else { return false }
        let isExactlyOnce = run.qos == .exactlyOnce
        connection.tally.messagesOut += run.count
        connection.write(patching: run.bytes, frames: run.count) { buffer, start in
            for body in run.bodies {
                guard let id = window?.send(exactlyOnce: isExactlyOnce) else { return }
                buffer.setInteger(id, at: start + Int(body.lowerBound))
            }
        }
        return true
    }
}
