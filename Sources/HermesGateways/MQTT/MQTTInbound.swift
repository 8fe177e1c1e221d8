// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import NIOCore

/// The state of the publications from one client: the client's topic aliases, the packet identifiers in use, and the
/// acknowledgements that are due, in the order of the publications. This type does no I/O.
///
/// An acknowledgement is written at once if no earlier acknowledgement is due. Otherwise, it waits until the
/// acknowledgements of earlier publications, which are still being stored, are written [MQTT-4.6.0-2]. Owner: the
/// connection's event loop; the last acknowledgements outlive the connection.
struct MQTTInbound {
    /// The verdict about a PUBLISH of QoS 1 or 2.
    enum Verdict: Hashable, Sendable {
        /// A new publication.
        case new
        /// A repetition of a publication that the client has not released: it is acknowledged again, but not published
        /// again [MQTT-4.3.3-10].
        case repeated
        /// A repetition of a publication that is still being stored. The client gets one answer for both packets.
        case awaited
        /// One publication more than the client may send without an acknowledgement [MQTT-3.3.4-7].
        case tooMany
    }

    /// The answer to a PUBLISH. It is held back until the store has answered, and until earlier answers are sent.
    struct Acknowledgement {
        /// PUBACK or PUBREC.
        let type: MQTTPacketType
        let packetID: UInt16
        fileprivate(set) var reason = MQTTReasonCode.success
        fileprivate(set) var isBeingStored = false
        /// The publication for connected subscribers, who get it immediately before it is acknowledged; nil if
        /// nothing must be delivered, for example because the store failed.
        fileprivate(set) var publication: Publication?
        /// Whether the acknowledgement is sent to the client.
        fileprivate(set) var isWritten = true
        /// The bytes of a message that waits for earlier messages but is not stored itself; otherwise 0. Nothing is
        /// read from the connection while the sum of these bytes is too large.
        let heldBytes: Int
    }

    private let version: MQTTVersion
    /// The largest number of messages that may be under way from the client: QoS 2 messages that it has not released
    /// and, in 5.0, QoS 1 messages that are being stored. 3.1.1 defines no limit. But the server must keep the
    /// identifier of each QoS 2 message; for a session that outlives its connection, it keeps the identifiers on disk.
    let limit: Int
    /// The packet identifiers of QoS 2 messages that were received but are not yet released.
    private var received: Set<UInt16> = []
    /// The identifiers in ``received`` whose messages are still being stored, and so are not acknowledged yet.
    private var receivedBeingStored: Set<UInt16> = []
    /// The number of QoS 1 messages that are being stored.
    private var acknowledgedBeingStored = 0
    /// The acknowledgements to send, in the order of their messages. The message of the first acknowledgement is still
    /// being stored.
    private var due = Deque<Acknowledgement>()
    /// The number of the last acknowledgement that was added to ``due``; numbers begin at 1.
    private var lastNumber: UInt64 = 0
    /// The client's topic aliases [MQTT-3.3.2-12].
    private var aliases: [UInt16: String] = [:]
    /// The size of the topics in ``aliases``, in bytes.
    private var aliasBytes = 0

    private static let minLimitOf311 = 4_096
    /// The number of due acknowledgements above which nothing is read from the connection for a while.
    private static let maxDue = 4_096

    /// - Parameter receiveMaximum: the limit from the settings. 3.1.1 cannot announce the limit to clients, so for
    ///   3.1.1 the limit is at least 4,096.
    init(_ version: MQTTVersion, receiveMaximum: Int) {
        self.version = version
        limit = version == .v311 ? max(receiveMaximum, Self.minLimitOf311) : receiveMaximum
    }

    /// Takes over the identifiers of messages that an attached session has received but its client has not released.
    mutating func resumed(_ received: some Sequence<UInt16>) { self.received = Set(received) }

    /// The approximate memory in bytes, without publications.
    var bytes: Int { aliasBytes &+ 8 &* received.count }

    // MARK: Topics

    /// Returns the topic of a PUBLISH with a topic alias, and records a new alias.
    ///
    /// - Parameters:
    ///   - topic: the topic in the packet; if it is empty, the alias replaces the topic.
    ///   - maximum: the highest alias that is allowed.
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

    /// Returns the verdict about a PUBLISH of QoS 1 or 2.
    @inline(__always)
    func verdict(on packetID: UInt16, _ qos: MQTTQoS) -> Verdict {
        if qos == .exactlyOnce, received.contains(packetID) {
            return receivedBeingStored.contains(packetID) ? .awaited : .repeated
        }
        return hasRoom(for: 1, qos) ? .new : .tooMany
    }

    /// Whether all packets of a run of QoS 1 or 2 are new publications. This is so if no packet is a repetition and
    /// the packets exceed no limit.
    func areNew(_ run: MQTTPublishRun, _ qos: MQTTQoS) -> Bool {
        let isExactlyOnce = qos == .exactlyOnce
        guard hasRoom(for: isExactlyOnce ? run.count : 1, qos) else { return false }
        return run.bytes.withUnsafeReadableBytes { bytes in
            var last: UInt16 = 0
            return run.bodies.allSatisfy { body in
                let id = MQTTPublishRun.packetID(bytes, body)
                defer { last = id }
                // The identifiers must ascend, so that there are no duplicates.
                return id != 0 && !(isExactlyOnce && (id <= last || received.contains(id)))
            }
        }
    }

    @inline(__always)
    private func hasRoom(for count: Int, _ qos: MQTTQoS) -> Bool {
        // In 3.1.1, the limit applies only to the identifiers of QoS 2 messages.
        if version == .v311 { return qos != .exactlyOnce || received.count + count <= limit }
        return received.count + acknowledgedBeingStored + count <= limit
    }

    /// Whether acknowledgements are due. If so, publications that arrive now are published after the publications
    /// that are still waiting, to keep the order [MQTT-4.6.0-5].
    var isBehind: Bool { !due.isEmpty }

    /// Whether too many acknowledgements are due. This happens if the store is slow and the client does not wait for
    /// the answers to its publications.
    var isFarBehind: Bool { due.count > Self.maxDue }

    /// Adds the acknowledgement of a publication that is being stored.
    ///
    /// - Parameter publication: the publication; it must own its bytes, because the read buffer is reused.
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

    /// Adds the acknowledgement of a publication that is not stored but waits for earlier publications.
    ///
    /// - Parameter publication: the publication; it must own its bytes, because the read buffer is reused.
    mutating func postpones(_ packetID: UInt16, _ qos: MQTTQoS, _ publication: Publication, heldBytes: Int) {
        if qos == .exactlyOnce { received.insert(packetID) }
        var acknowledgement = Acknowledgement(type: Self.answer(to: qos), packetID: packetID, heldBytes: heldBytes)
        acknowledgement.publication = publication
        lastNumber += 1
        due.append(acknowledgement)
    }

    /// Handles a publication whose answer is known at once, because it was handed to subscribers, refused or repeated.
    ///
    /// - Returns: whether the caller must write the answer now; otherwise, the answer is queued after earlier
    ///   answers.
    mutating func answered(_ packetID: UInt16, _ qos: MQTTQoS, _ reason: MQTTReasonCode) -> Bool {
        // 3.1.1 continues with PUBREL. In 5.0, a failure ends the exchange here.
        if qos == .exactlyOnce, version == .v311 || !reason.isFailure { received.insert(packetID) }
        guard !due.isEmpty else { return true }
        var acknowledgement = Acknowledgement(type: Self.answer(to: qos), packetID: packetID, heldBytes: 0)
        acknowledgement.reason = reason
        lastNumber += 1
        due.append(acknowledgement)
        return false
    }

    /// Handles the store's answer for a publication.
    ///
    /// - Parameters:
    ///   - failure: the reason for the failure; nil if the publication is stored.
    ///   - isAnswered: whether a failure is reported to a 5.0 client. If not, the client's connection ends.
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
        // In 3.1.1 the message cannot be refused, so the client has to send it again over another connection.
        if version == .v311 || !isAnswered { due[index].isWritten = false }
    }

    /// Removes and returns the first acknowledgement that is due if its publication is not being stored any more.
    mutating func popAcknowledgement() -> Acknowledgement? {
        guard let first = due.first, !first.isBeingStored else { return nil }
        due.removeFirst()
        return first
    }

    /// Handles a PUBREL: the client will not send the message again under this identifier (4.3.3).
    ///
    /// - Returns: false if no message with this identifier has been acknowledged.
    mutating func released(_ packetID: UInt16) -> Bool {
        !receivedBeingStored.contains(packetID) && received.remove(packetID) != nil
    }

    /// The packet that acknowledges a PUBLISH.
    static func answer(to qos: MQTTQoS) -> MQTTPacketType { qos == .exactlyOnce ? .pubrec : .puback }
}
