// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// Tracks incoming messages of QoS 1 and 2 across connections, so that each message reaches the app once and is
/// acknowledged when the app has taken it. Does no I/O.
///
/// While the app's queue has room, the client tolerates a server that exceeds the receive maximum. mosquitto 2.0
/// exceeds it after each PUBCOMP.
struct MQTTInbound: Sendable {
    /// The handling of a PUBLISH.
    enum Verdict: Hashable, Sendable {
        /// Deliver the message; pass this number to `taken`.
        case deliver(UInt64)
        /// Ignore the message: it arrived before and still waits for the app.
        case ignore
        case acknowledge(Acknowledgement)
    }

    enum Acknowledgement: Hashable, Sendable {
        case puback(UInt16)
        case pubrec(UInt16)
    }

    private enum State: Hashable {
        /// The message was delivered under the number `delivery`, and the app has not taken it yet. `connection` is
        /// the number of the last connection over which the message arrived.
        case untaken(delivery: UInt64, connection: UInt64)
        /// The app has taken the message. At QoS 1, the PUBACK waits until the server sends the message again. At QoS
        /// 2, PUBREL has not arrived yet.
        case taken
    }

    private var atLeastOnce: [UInt16: State] = [:]
    private var exactlyOnce: [UInt16: State] = [:]
    private var connection: UInt64 = 0
    private var lastDelivery: UInt64 = 0
    /// Notes that the server accepted a connection.
    mutating func connected(sessionPresent: Bool) {
        connection &+= 1
        guard !sessionPresent else { return }
        // The packet identifiers of the lost session are meaningless.
        atLeastOnce = [:]
        exactlyOnce = [:]
    }

    /// Handles a PUBLISH.
    mutating func published(
        _ packetID: UInt16,
        _ qos: MQTTQoS,
        isDuplicate: Bool
    ) throws(MQTTPacketError) -> Verdict {
        switch qos {
        case .atMostOnce:
            return .deliver(0)
        case .atLeastOnce:
            switch atLeastOnce[packetID] {
            case .untaken(let delivery, _) where isDuplicate:
                atLeastOnce[packetID] = .untaken(delivery: delivery, connection: connection)
                return .ignore
            case .untaken(_, connection):
                throw MQTTPacketError(.packetIdentifierInUse, "packet \(packetID) is not acknowledged yet")
            case .taken where isDuplicate:
                atLeastOnce[packetID] = nil
                return .acknowledge(.puback(packetID))
            case .untaken, .taken, nil:
                // Without the duplicate flag, this is another message: the server has abandoned the message that it
                // sent over an earlier connection [MQTT-3.3.1-1]. The acknowledgement of the abandoned message must
                // not count for the new message.
                let delivery = nextDelivery()
                atLeastOnce[packetID] = .untaken(delivery: delivery, connection: connection)
                return .deliver(delivery)
            }
        case .exactlyOnce:
            switch exactlyOnce[packetID] {
            case .untaken(let delivery, _):
                exactlyOnce[packetID] = .untaken(delivery: delivery, connection: connection)
                return .ignore
            case .taken:
                // Until PUBREL arrives, this is the same message, regardless of its flags [MQTT-4.3.3-10].
                return .acknowledge(.pubrec(packetID))
            case nil:
                let delivery = nextDelivery()
                exactlyOnce[packetID] = .untaken(delivery: delivery, connection: connection)
                return .deliver(delivery)
            }
        }
    }

    private mutating func nextDelivery() -> UInt64 {
        lastDelivery &+= 1
        return lastDelivery
    }

    /// Notes that the app took a message with this packet identifier.
    ///
    /// - Parameters:
    ///   - delivery: the number that `published` returned.
    ///   - isConnected: whether there is a connection.
    mutating func taken(_ packetID: UInt16, _ qos: MQTTQoS, delivery: UInt64, isConnected: Bool) -> Acknowledgement? {
        switch qos {
        case .atMostOnce:
            return nil
        case .atLeastOnce:
            guard case .untaken(delivery, let came) = atLeastOnce[packetID] else { return nil }
            // Over a new connection, the PUBACK may be sent only after the server has sent the message again.
            guard isConnected, came == connection else {
                atLeastOnce[packetID] = .taken
                return nil
            }
            atLeastOnce[packetID] = nil
            return .puback(packetID)
        case .exactlyOnce:
            guard case .untaken(delivery, let came) = exactlyOnce[packetID] else { return nil }
            exactlyOnce[packetID] = .taken
            return isConnected && came == connection ? .pubrec(packetID) : nil
        }
    }

    /// Handles a PUBREL, after which the packet identifier is free for another message.
    ///
    /// - Returns: the reason code for PUBCOMP.
    mutating func released(_ packetID: UInt16) -> MQTTReasonCode {
        exactlyOnce.removeValue(forKey: packetID) == nil ? .packetIdentifierNotFound : .success
    }
}
