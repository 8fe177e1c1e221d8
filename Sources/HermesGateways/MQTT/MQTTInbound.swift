// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import NIOCore

/// The publications that come from one client: its topic aliases, the packet identifiers in use, and the
/// acknowledgements that are due, in their order. Does no I/O.
///
/// An acknowledgement is written at once if none is due before it. Otherwise it stands behind those whose publications
/// are still being stored [MQTT-4.6.0-2]. Owner: the connection's event loop; the last acknowledgements outlive the
/// connection.
struct MQTTInbound {
    /// The verdict about a PUBLISH of QoS 1 or 2.
    enum Verdict: Hashable, Sendable {
        /// A new publication.
        case new
        /// A repetition of a publication that the client has not released: it is acknowledged, not published
        /// [MQTT-4.3.3-10].
        case repeated
        /// A repetition of a publication that is being stored: the answer to the first is the answer to both.
        case awaited
        /// One more than the client may send unacknowledged [MQTT-3.3.4-7].
        case tooMany
    }

    /// The answer to a PUBLISH that waits for the store, or for an earlier answer.
    struct Acknowledgement {
        /// PUBACK or PUBREC.
        let type: MQTTPacketType
        let packetID: UInt16
        fileprivate(set) var reason = MQTTReasonCode.success
        fileprivate(set) var isBeingStored = false
        /// The publication for connected subscribers, who get it once it is acknowledged. If it is not stored, the
        /// client sends it again.
        fileprivate(set) var publication: Publication?
        /// Whether the client is told.
        fileprivate(set) var isWritten = true
        /// The memory of a message that waits but is not stored itself. The connection is not read from while this is
        /// too much.
        let heldBytes: Int
    }

    private let version: MQTTVersion
    /// The most messages that the client may have sent and not released. 3.1.1 has no such limit, but the server must
    /// keep the identifier of each, on the disk for a kept session.
    let limit: Int
    /// The packet identifiers of QoS 2 messages that were received and not released.
    private var received: Set<UInt16> = []
    /// Those of them that are being stored: they are not acknowledged before.
    private var receivedBeingStored: Set<UInt16> = []
    /// The number of QoS 1 messages that are being stored.
    private var acknowledgedBeingStored = 0
    /// The acknowledgements to send, in the order of their messages. The message of the first is still being stored.
    private var due = Deque<Acknowledgement>()
    /// The number of the last acknowledgement that was added to ``due``; numbers begin at 1.
    private var lastNumber: UInt64 = 0
    /// The client's topic aliases [MQTT-3.3.2-12].
    private var aliases: [UInt16: String] = [:]
    /// The bytes of the topics behind them.
    private var aliasBytes = 0

    private static let minLimitOf311 = 4_096
    /// The number of due acknowledgements above which the connection is not read from for a while.
    private static let maxDue = 4_096

    /// - Parameter receiveMaximum: the maximum of the settings; 3.1.1 cannot tell it to clients.
    init(_ version: MQTTVersion, receiveMaximum: Int) {
        self.version = version
        limit = version == .v311 ? max(receiveMaximum, Self.minLimitOf311) : receiveMaximum
    }

    /// The session is attached, with the identifiers that the client has not released.
    mutating func resumed(_ received: some Sequence<UInt16>) { self.received = Set(received) }

    /// The approximate memory, without publications, in bytes.
    var bytes: Int { aliasBytes &+ 8 &* received.count }

    // MARK: Topics

    /// Returns the topic of a PUBLISH with a topic alias, and remembers a new one.
    ///
    /// - Parameters:
    ///   - topic: as in the packet; empty: that of the alias.
    ///   - maximum: the highest alias.
    mutating func topic(_ topic: String, alias: UInt16, maximum: UInt16) throws(MQTTPacketError) -> String {
        guard alias > 0, alias <= maximum else {
            throw MQTTPacketError(
                .topicAliasInvalid,
                "topic aliases are 1 to \(maximum) [MQTT-3.3.2-8] [MQTT-3.3.2-9]"
            )
        }
        guard topic.isEmpty else {
            aliasBytes += topic.utf8.count - (aliases.updateValue(topic, forKey: alias)?.utf8.count ?? 0)
            return topic
        }
        guard let known = aliases[alias] else {
            throw MQTTPacketError(.protocolError, "the topic alias \(alias) was never set (3.3.2.3.4)")
        }
        return known
    }

    // MARK: PUBLISH

    /// A PUBLISH of QoS 1 or 2 arrived.
    @inline(__always)
    func verdict(on packetID: UInt16, _ qos: MQTTQoS) -> Verdict {
        if qos == .exactlyOnce, received.contains(packetID) {
            return receivedBeingStored.contains(packetID) ? .awaited : .repeated
        }
        return hasRoom(for: 1) ? .new : .tooMany
    }

    /// Whether all packets of a run of QoS 1 or 2 are new publications: none is a repetition or exceeds a limit.
    func areNew(_ run: MQTTPublishRun, _ qos: MQTTQoS) -> Bool {
        let isExactlyOnce = qos == .exactlyOnce
        guard hasRoom(for: isExactlyOnce ? run.count : 1) else { return false }
        return run.bytes.withUnsafeReadableBytes { bytes in
            var last: UInt16 = 0
            return run.bodies.allSatisfy { body in
                let id = MQTTPublishRun.packetID(bytes, body)
                defer { last = id }
                // Ascending, so that there are no duplicates.
                return id != 0 && !(isExactlyOnce && (id <= last || received.contains(id)))
            }
        }
    }

    @inline(__always)
    private func hasRoom(for count: Int) -> Bool {
        let unacknowledged = version == .v311 ? 0 : acknowledgedBeingStored
        return received.count + unacknowledged + count <= limit
    }

    /// Whether acknowledgements are due: publications that come now are published after them, in order [MQTT-4.6.0-5].
    var isBehind: Bool { !due.isEmpty }

    /// Whether the store is slow, and the client does not wait for it.
    var isFarBehind: Bool { due.count > Self.maxDue }

    /// A publication is being stored.
    ///
    /// - Parameter publication: owns its bytes.
    /// - Returns: the number of its acknowledgement.
    mutating func stores(_ packetID: UInt16, _ qos: MQTTQoS, _ publication: Publication) -> UInt64 {
        if qos == .exactlyOnce {
            received.insert(packetID)
            receivedBeingStored.insert(packetID)
        } else {
            acknowledgedBeingStored += 1
        }
        var acknowledgement = Acknowledgement(type: Self.answer(to: qos), packetID: packetID, heldBytes: 0)
        acknowledgement.isBeingStored = true
        acknowledgement.publication = publication
        lastNumber += 1
        due.append(acknowledgement)
        return lastNumber
    }

    /// A publication that needs no storing waits for earlier ones.
    ///
    /// - Parameter publication: owns its bytes.
    mutating func postpones(_ packetID: UInt16, _ qos: MQTTQoS, _ publication: Publication, heldBytes: Int) {
        if qos == .exactlyOnce { received.insert(packetID) }
        var acknowledgement = Acknowledgement(type: Self.answer(to: qos), packetID: packetID, heldBytes: heldBytes)
        acknowledgement.publication = publication
        lastNumber += 1
        due.append(acknowledgement)
    }

    /// A publication has its answer: it was published, refused or repeated.
    ///
    /// - Returns: whether the answer is to be written now; otherwise it comes in its turn.
    mutating func answered(_ packetID: UInt16, _ qos: MQTTQoS, _ reason: MQTTReasonCode) -> Bool {
        // 3.1.1 continues with PUBREL; in 5.0 a failure ends the exchange here.
        if qos == .exactlyOnce, version == .v311 || !reason.isFailure { received.insert(packetID) }
        guard !due.isEmpty else { return true }
        var acknowledgement = Acknowledgement(type: Self.answer(to: qos), packetID: packetID, heldBytes: 0)
        acknowledgement.reason = reason
        lastNumber += 1
        due.append(acknowledgement)
        return false
    }

    /// The store has answered.
    ///
    /// - Parameters:
    ///   - failure: nil: the publication is stored.
    ///   - isAnswered: whether the client is told of a failure; otherwise its connection ends.
    mutating func stored(_ number: UInt64, failure: MQTTReasonCode?, isAnswered: Bool = true) {
        let first = lastNumber - UInt64(due.count) + 1
        guard number >= first, number <= lastNumber else { return }
        let index = Int(number - first)
        guard due[index].isBeingStored else { return }
        due[index].isBeingStored = false
        let packetID = due[index].packetID
        let isExactlyOnce = due[index].type == .pubrec
        if isExactlyOnce { receivedBeingStored.remove(packetID) } else { acknowledgedBeingStored -= 1 }
        guard let failure else { return }
        if isExactlyOnce { received.remove(packetID) }
        due[index].reason = failure
        due[index].publication = nil
        // 3.1.1 has no refusal: the client has to send it again over another connection.
        if version == .v311 || !isAnswered { due[index].isWritten = false }
    }

    /// Removes and returns the first acknowledgement that is due if its publication is not being stored any more.
    mutating func popAcknowledgement() -> Acknowledgement? {
        guard let first = due.first, !first.isBeingStored else { return nil }
        due.removeFirst()
        return first
    }

    /// PUBREL arrived: the client will not send the message again under this identifier (4.3.3).
    ///
    /// - Returns: false if there is no message with this identifier that was acknowledged.
    mutating func released(_ packetID: UInt16) -> Bool {
        !receivedBeingStored.contains(packetID) && received.remove(packetID) != nil
    }

    /// The packet that acknowledges a PUBLISH.
    static func answer(to qos: MQTTQoS) -> MQTTPacketType { qos == .exactlyOnce ? .pubrec : .puback }
}
