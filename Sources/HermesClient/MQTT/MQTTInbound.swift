// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// What arrived with QoS 1 and 2: gives each to the app once, and acknowledges it once the app has taken it, over
/// connections that come and go. Does no IO.
///
/// A server that sends more than the receive maximum is borne with, as long as the queue of the app can hold it:
/// mosquitto 2.0 does so after each PUBCOMP.
struct MQTTInbound: Sendable {
    /// What is to be done with a PUBLISH.
    enum Verdict: Hashable, Sendable {
        /// To be given to `taken` with this number.
        case deliver(UInt64)
        /// It came before, and waits for the app still.
        case ignore
        case acknowledge(Acknowledgement)
    }

    enum Acknowledgement: Hashable, Sendable {
        case puback(UInt16)
        case pubrec(UInt16)
    }

    private enum State: Hashable {
        /// The app has not taken what was delivered under this number; it last came over this connection.
        case untaken(delivery: UInt64, connection: UInt64)
        /// The app has taken it. QoS 1: there was no connection to acknowledge it on. QoS 2: PUBREL has not come.
        case taken
    }

    private var atLeastOnce: [UInt16: State] = [:]
    private var exactlyOnce: [UInt16: State] = [:]
    private var connection: UInt64 = 0
    private var lastDelivery: UInt64 = 0
    /// The server accepted a connection.
    mutating func connected(sessionPresent: Bool) {
        connection &+= 1
        guard !sessionPresent else { return }
        // Packet numbers of the session that was lost mean nothing.
        atLeastOnce = [:]
        exactlyOnce = [:]
    }

    /// A PUBLISH came.
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
                // Without the flag it is another message: the server gave up what it sent over an earlier connection
                // [MQTT-3.3.1-1], and the acknowledgement of that must not count for this.
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
                // Whatever its flags say: until PUBREL it is the same message [MQTT-4.3.3-10].
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

    /// The app took a message that came with this packet number.
    ///
    /// - Parameters:
    ///   - delivery: as `published` told.
    ///   - isConnected: whether there is a connection.
    mutating func taken(_ packetID: UInt16, _ qos: MQTTQoS, delivery: UInt64, isConnected: Bool) -> Acknowledgement? {
        switch qos {
        case .atMostOnce:
            return nil
        case .atLeastOnce:
            guard case .untaken(delivery, let came) = atLeastOnce[packetID] else { return nil }
            // Over a new connection only once the server has sent it again.
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

    /// A PUBREL came: the number is free for another message.
    ///
    /// - Returns: what PUBCOMP says.
    mutating func released(_ packetID: UInt16) -> MQTTReasonCode {
        exactlyOnce.removeValue(forKey: packetID) == nil ? .packetIdentifierNotFound : .success
    }
}
