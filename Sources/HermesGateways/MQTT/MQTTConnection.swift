// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire
import Logging
import NIOCore

/// One MQTT connection.
///
/// `MQTTConnection+Publish.swift` gets the client's input and handles publications from the client.
/// `MQTTConnection+Deliver.swift` writes publications to the client. ``MQTTClientState`` holds the state that idle
/// connections do not need. Owner: the connection's event loop.
package final class MQTTConnection: GatewayConnection, SharedMember {
    package typealias Decoder = MQTTInputDecoder

    /// Whether reading pauses while the client does not read. Reading does not pause, because a client that does not
    /// read must still be able to acknowledge.
    package static let pausesReadingWhenStuck = false
    /// Whether the request limit applies. The limit does not apply: publishers wait for acknowledgements, and the
    /// server does not read from them while their subscribers do not keep up.
    package static let hasRequestLimit = false
    /// Frames before the login are not limited here, because the will, the user name and the password may have 65,535
    /// bytes each.
    package static let maxLoginFrameBytes = Int.max

    enum Phase {
        /// CONNECT is awaited.
        case new
        /// CONNECT is being checked; nothing is read.
        case connecting
        case connected
        case ended
    }

    // Exclusivity is unchecked here and below, because all access is on one loop and the check would cost as much as
    // the access.
    let connection: Connection
    let gateway: MQTTGateway
    let topics: TopicShard
    package let number: UInt64
    /// The number by which the No Local option recognizes the client's own publications (``SessionKey/publisher``); 0
    /// until CONNECT is accepted.
    @exclusivity(unchecked)
    var publisher: UInt64 = 0
    @exclusivity(unchecked)
    var phase = Phase.new
    @exclusivity(unchecked)
    var version = MQTTVersion.v311
    /// Whether CONNECT has the native protocol's authentication method.
    var isNative = false
    /// The output to the client.
    @exclusivity(unchecked)
    var outbound = MQTTOutbound()
    /// The client's state; nil until CONNECT is accepted, and again after the end.
    @exclusivity(unchecked)
    var client: MQTTClientState?
    /// The target of the last PUBLISH, kept because publishers often repeat a topic.
    @exclusivity(unchecked)
    var lastTarget: MQTTPublishTarget?
    /// The reason that the client gets for the end; nil if the ``CloseReason`` determines it.
    private(set) var parting: Parting?

    /// A reason for the end. It is a separate object, because most connections never have such a reason.
    final class Parting {
        let reason: MQTTReasonCode
        let text: String
        /// The core's error that is the cause; nil if there is none.
        let error: HermesError?

        /// The reason's number in the catalogue of errors.
        var code: UInt32 { MQTTTranslation.code(of: reason, error) }

        fileprivate init(_ reason: MQTTReasonCode, _ text: String, _ error: HermesError?) {
            self.reason = reason
            self.text = text
            self.error = error
        }
    }

    /// Sets the reason that the client gets when the connection ends.
    ///
    /// - Parameter error: the core's error that is the cause; nil if there is none.
    func giveReason(_ reason: MQTTReasonCode, _ text: String, _ error: HermesError? = nil) {
        parting = Parting(reason, text, error)
    }

    init(connection: Connection, gateway: MQTTGateway) {
        self.connection = connection
        self.gateway = gateway
        topics = connection.loop.topics
        number = connection.loop.nextConnectionNumber()
    }

    /// The client's unacknowledged and waiting messages from shared subscriptions.
    package var load: SharedLoad { client?.shared.load ?? SharedLoad() }

    package var reader: (any TopicReader)? { client?.reader }

    var environment: GatewayEnvironment { gateway.environment }

    func now() -> Timestamp { gateway.environment.messenger.time.now() }

    /// Returns the present time for a message that may expire. For other messages the time is not used, so the clock is
    /// not read.
    func expiryTime(of details: PublicationDetails?) -> Timestamp {
        details?.expiresAt == nil ? Timestamp(rawValue: 0) : now()
    }

    // MARK: Input

    /// Handles input of a client that is not connected. While CONNECT is being checked, and after the end, the input is
    /// ignored.
    func receivedUnconnected(_ input: MQTTInput) {
        guard phase == .new else { return }
        guard case .other(let frame) = input, frame.type == .connect else {
            // [MQTT-3.1.0-1]
            return refuse(MQTTPacketError(.protocolError, "the first packet is not a CONNECT [MQTT-3.1.0-1]"))
        }
        connectReceived(frame)
    }

    /// Handles a packet of a connected client that is neither a PUBLISH nor an acknowledgement of four bytes.
    func otherReceived(_ frame: MQTTFrame) {
        guard frame.type != .connect else {
            // The packet is not parsed, because its errors may have reason codes that DISCONNECT does not have.
            return refuse(MQTTPacketError(.protocolError, "a second CONNECT [MQTT-3.1.0-2]"))
        }
        connection.charge(.packet)
        // The charge is for the largest number of properties that these bytes can hold. Filters cost about the same.
        connection.charge(.properties(frame.body.readableBytes / MQTTPacket.minPropertyBytes))
        attempt { () throws(MQTTPacketError) in try received(frame) }
    }

    /// Handles a packet that the client sent before it closed the connection. A DISCONNECT discards the will
    /// [MQTT-3.14.4-3], and acknowledged messages are not sent again.
    package func receivedLast(_ input: MQTTInput) {
        guard phase == .connected else { return }
        switch input {
        case .acknowledgement: received(input)
        case .other(let frame):
            switch frame.type {
            case .puback, .pubrec, .pubcomp, .disconnect: received(input)
            default: break
            }
        case .publish, .publishes: break
        }
    }

    private func received(_ frame: MQTTFrame) throws(MQTTPacketError) {
        switch frame.type {
        case .subscribe: subscribeReceived(try MQTTFilterList(fromClient: frame, version: version))
        case .unsubscribe: unsubscribeReceived(try MQTTFilterList(fromClient: frame, version: version))
        default: try received(try MQTTPacket(fromClient: frame, version: version))
        }
    }

    private func received(_ packet: MQTTPacket) throws(MQTTPacketError) {
        switch packet {
        case .puback(let packet): acknowledgementReceived(.puback, packet.packetID, packet.reason)
        case .pubrec(let packet): acknowledgementReceived(.pubrec, packet.packetID, packet.reason)
        case .pubrel(let packet): acknowledgementReceived(.pubrel, packet.packetID, packet.reason)
        case .pubcomp(let packet): acknowledgementReceived(.pubcomp, packet.packetID, packet.reason)
        case .pingreq: write(.pingresp)
        case .disconnect(let packet): try disconnectReceived(packet)
        case .connect:
            throw MQTTPacketError(.protocolError, "a second CONNECT [MQTT-3.1.0-2]")
        case .auth(let packet): throw refusal(of: packet)
        // PUBLISH, SUBSCRIBE and UNSUBSCRIBE are handled elsewhere.
        case .publish, .subscribe, .unsubscribe, .connack, .suback, .unsuback, .pingresp:
            throw MQTTPacketError(.protocolError, "a client does not send a \(packet.type)")
        }
    }

    /// Returns the error for an AUTH. The server does not support re-authentication (4.12.1). A client renews an
    /// expiring token with a packet of the native protocol (``renewsToken(_:)``) or with a new connection.
    private func refusal(of auth: MQTTAuth) -> MQTTPacketError {
        guard isNative else {
            return MQTTPacketError(.protocolError, "AUTH, but CONNECT has no authentication method [MQTT-4.12.0-7]")
        }
        guard auth.reason == .reauthenticate else {
            return MQTTPacketError(.protocolError, "AUTH, but the server has not asked for it (4.12)")
        }
        guard auth.properties.authenticationMethod == Self.nativeMethod else {
            return MQTTPacketError(.protocolError, "AUTH with another method than CONNECT [MQTT-4.12.1-1]")
        }
        return MQTTPacketError(
            .implementationSpecificError,
            "re-authentication is not supported; connect again to log in again [MQTT-4.12.1-2]"
        )
    }

    /// Handles an incoming packet. A packet that violates the protocol ends the connection.
    func attempt(_ body: () throws(MQTTPacketError) -> Void) {
        do throws(MQTTPacketError) { try body() } catch { refuse(error) }
    }

    /// Ends the connection because of an error. The client gets the reason if its version of MQTT allows that.
    ///
    /// - Parameter cause: the core's error that is the cause; nil if there is none.
    func refuse(_ error: MQTTPacketError, because cause: HermesError? = nil) {
        giveReason(error.reason, error.message, cause)
        switch phase {
        case .new, .connecting: connection.end(MQTTTranslation.closeReason(for: error, because: cause))
        case .connected, .ended: connection.end(.malformed(WireError(.badBody, error.message)))
        }
    }

    // MARK: Output

    /// Writes an answer. If the answer is too large for the client [MQTT-3.1.2-24], the connection ends, because the
    /// client waits for the answer.
    func write(_ packet: MQTTPacket) {
        let version = version
        // Without a limit the packet is encoded straight into the output.
        if outbound.maxPacketBytes == .max { return connection.write { try packet.write(into: &$0, version: version) } }
        guard let bytes = bytes(of: packet) else { return refuse(Self.tooLarge(packet)) }
        connection.write(frame: bytes)
    }

    static func tooLarge(_ packet: MQTTPacket) -> MQTTPacketError {
        MQTTPacketError(.packetTooLarge, "a \(packet.type) is longer than the client takes [MQTT-3.1.2-24]")
    }

    /// Writes the last packet of a connection. If the packet with its reason string is too large for the client, the
    /// shorter packet is written instead [MQTT-3.2.2-19], [MQTT-3.14.2-3]. If the shorter packet is also too large,
    /// nothing is written.
    func writeLast(_ packet: MQTTPacket, orShorter shorter: MQTTPacket) {
        if let bytes = bytes(of: packet) ?? bytes(of: shorter) { connection.write(frame: bytes) }
    }

    /// Encodes a packet; nil if it is too large for the client, or cannot be encoded.
    func bytes(of packet: MQTTPacket) -> ByteBuffer? {
        var bytes = ByteBuffer()
        do throws(WireError) {
            try packet.write(into: &bytes, version: version)
        } catch {
            connection.listener.logger.error("a packet could not be encoded", metadata: ["error": "\(error)"])
            return nil
        }
        return bytes.readableBytes <= outbound.maxPacketBytes ? bytes : nil
    }

    /// Writes an acknowledgement of four bytes, without a reason code.
    func writeAcknowledgement(_ type: MQTTPacketType, _ packetID: UInt16) {
        let packet = Self.acknowledgement(type, packetID)
        connection.write { $0.writeInteger(packet) }
    }

    private static func acknowledgement(_ type: MQTTPacketType, _ packetID: UInt16) -> UInt32 {
        let header: UInt8 = type == .pubrel ? 0x62 : type.rawValue << 4
        return UInt32(header) << 24 | 2 << 16 | UInt32(packetID)
    }

    /// Acknowledges a run of publications with success.
    func writeAcknowledgements(_ type: MQTTPacketType, of run: MQTTPublishRun) {
        connection.write(frames: run.count) { buffer in
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 4 * run.count) { packets in
                run.bytes.withUnsafeReadableBytes { bytes in
                    var end = 0
                    for body in run.bodies where end + 4 <= packets.count {
                        let packet = Self.acknowledgement(type, MQTTPublishRun.packetID(bytes, body))
                        packets.storeBytes(of: packet.bigEndian, toByteOffset: end, as: UInt32.self)
                        end += 4
                    }
                    return end
                }
            }
        }
    }

    func writeAcknowledgement(_ type: MQTTPacketType, _ packetID: UInt16, _ reason: MQTTReasonCode) {
        guard version == .v5, reason != .success else { return writeAcknowledgement(type, packetID) }
        let header: UInt8 = type == .pubrel ? 0x62 : type.rawValue << 4
        connection.write { $0.writeMultipleIntegers(header, 3 as UInt8, packetID, reason.rawValue) }
    }

    // MARK: The end

    /// Handles a DISCONNECT from the client (3.14).
    private func disconnectReceived(_ packet: MQTTDisconnect) throws(MQTTPacketError) {
        guard let client else { return }
        if let expiry = packet.properties.sessionExpiryInterval {
            guard client.sessionExpiry != .zero || expiry == 0 else {
                throw MQTTPacketError(.protocolError, "the session's expiry cannot grow from 0 [MQTT-3.14.2-2]")
            }
            client.sessionExpiry = gateway.settings.sessionExpiry(expiry)
        }
        // [MQTT-3.14.4-3]
        if packet.reason == .success { withdrawWill() }
        phase = .ended
        connection.end(.goodbye)
    }

    package func farewell(_ reason: CloseReason) {
        defer {
            phase = .ended
            // Everything is released at once, because a client can delay the close. Meanwhile, another connection may
            // wait for the session, and the groups of shared subscriptions must choose other members. Nothing is read
            // from this connection any more. If the server is stopping, all connections end together, and the rest is
            // released when they are closed.
            if case .shuttingDown = reason { leaveGroups() } else { letGo() }
        }
        if case .attachment(let end) = reason { client?.link?.ends(with: end) }
        switch phase {
        case .new, .connecting:
            // A refused CONNECT leaves no will.
            withdrawWill()
            if phase == .connecting, case .attachment(.replaced) = reason {
                let error = DurableSessions.takenOver
                giveReason(MQTTTranslation.connackReason(for: error), error.message, error)
            }
            // Before CONNECT, the client's version is unknown. 3.1.1 has only a few codes [MQTT-3.2.2-6].
            guard let parting, version == .v5 || MQTTTranslation.hasReturnCode(parting.reason) else { return }
            connack(refusal: parting)
        case .connected:
            if case .attachment(.replaced) = reason { client?.isReplaced = true }
            if case .shuttingDown = reason { client?.isServerStopping = true }
            if let packets = client?.inbox?.packets {
                // This farewell tells the client more than a DISCONNECT can: when and where to connect again.
                packets.farewell(reason, otherwise: parting.map { ($0.error?.code.rawValue ?? $0.code, $0.text) })
                guard !packets.hasLoggedOut else { return }
            }
            guard version == .v5, let code = parting?.reason ?? MQTTTranslation.disconnectReason(for: reason) else {
                return
            }
            let packet = MQTTDisconnect(reason: code)
            var telling = packet
            if let text = parting?.text ?? MQTTTranslation.disconnectText(for: reason),
                client?.wantsProblemInformation ?? true
            {
                telling.properties = [.reasonString(text)]
            }
            writeLast(.disconnect(telling), orShorter: .disconnect(packet))
        case .ended:
            break
        }
    }

    package func webSocketCode(for reason: CloseReason) -> UInt16 {
        guard let parting else { return reason.webSocketCode }
        return CloseReason.webSocketCode(for: parting.code)
    }

    package func closed() {
        phase = .ended
        letGo()
    }

    package func becameWritable() {
        client?.inbox?.packets?.becameWritable()
        if let client, client.hasShared { client.shared.load.catchUp() }
        sendWaiting()
    }
}

@available(*, unavailable)
extension MQTTConnection: Sendable {}
