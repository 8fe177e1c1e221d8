// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesWire
import NIOCore

/// Tracks unfinished publications of QoS 1 and 2: assigns packet identifiers, obeys the server's receive maximum, sends
/// publications again over a new connection, and reports the outcomes. Does no I/O.
///
///     waiting -> unacknowledged -> (QoS 1) done
///                               -> (QoS 2) released -> done
struct MQTTOutbound: Sendable {
    enum Action: Hashable, Sendable {
        case send(MQTTFrame)
        case release(packetID: UInt16, MQTTReasonCode)
        /// A publication is finished.
        case done(id: UInt64, MQTTReasonCode, MQTTProperties)
        /// A publication cannot be finished.
        case failed(id: UInt64, HermesClientError)
    }

    /// A publication that was sent and is not finished.
    struct Entry {
        let id: UInt64
        var outgoing: MQTTOutgoing
        /// The place in the order of sending.
        let number: UInt64
        /// The reason in PUBREC; nil until it arrives.
        var released: MQTTReasonCode?
        /// Whether nothing waits for the outcome any more.
        var isAbandoned = false
        /// Whether the publication was sent over the present connection.
        var isSent: Bool
        /// The number of connections over which the publication was sent.
        var connections = 1
    }

    /// The number of connections that may end without an answer before an abandoned publication is dropped. The
    /// publication may be the reason why the connections ended. A server of MQTT 3.1.1 cannot report this reason.
    private static let maxConnections = 3
    /// The number of connections that may end without an answer before a long publication fails. A server of MQTT 3.1.1
    /// does not say which length it accepts; it closes the connection if a packet is too long.
    private static let maxEnds = 5
    /// The length, in bytes, up to which a publication is not suspected of being too long.
    private static let suspectBytes = 65_536

    private(set) var inflight: [UInt16: Entry] = [:]
    /// The packet identifiers of unfinished publications, by request id.
    private var packetIDs: [UInt64: UInt16] = [:]
    /// The packet identifiers that SUBSCRIBE and UNSUBSCRIBE use at present.
    private var borrowed: Set<UInt16> = []
    /// The packet identifiers of QoS 2 publications that were dropped. The server may treat them as in use until the
    /// session ends.
    private var spoiled: Set<UInt16> = []
    /// The publications of earlier connections that are to be sent again when the receive maximum allows it.
    private var resending = Deque<UInt16>()
    /// The publications that were not sent yet.
    private var waiting = Deque<(id: UInt64, outgoing: MQTTOutgoing)>()
    private var waitingIDs: Set<UInt64> = []
    private var lastPacketID: UInt16
    private var lastNumber: UInt64 = 0
    /// The number of further publications that the server accepts at present.
    private var quota = 0
    private var receiveMaximum = 0
    private var maxPacketBytes = Int.max
    private var isConnected = false
    /// Whether the server has said that it ends the present connection because a packet was too long.
    private var isExplained = false
    /// For each long publication, by request id: the number of connections that ended while it was the longest
    /// unanswered publication.
    private var ends: [UInt64: Int] = [:]

    /// Creates a tracker without publications.
    ///
    /// - Parameter lastPacketID: the identifier before the first identifier to assign. A client that resumes the
    ///   session of an earlier run cannot tell which identifiers the QoS 2 messages of that session still use, so it
    ///   should begin at a random identifier.
    init(lastPacketID: UInt16 = 0) { self.lastPacketID = lastPacketID }

    // MARK: Connections

    /// Notes that the server accepted a connection. Nothing is sent before `resumed`.
    ///
    /// If no session is present, the server has forgotten the earlier publications. Publications of QoS 1 are sent
    /// again. Publications of QoS 2 fail, because their outcome is unknown.
    mutating func connected(sessionPresent: Bool, receiveMaximum: Int, maxPacketBytes: Int?) -> [Action] {
        self.receiveMaximum = receiveMaximum
        self.maxPacketBytes = maxPacketBytes ?? Int.max
        quota = receiveMaximum
        isConnected = true
        isExplained = false
        borrowed = []
        resending = []
        var actions = failSuspects()
        let unfinished = inflight.sorted { $0.value.number < $1.value.number }
        guard !sessionPresent else {
            for (packetID, entry) in unfinished {
                inflight[packetID]?.isSent = false
                if entry.isAbandoned, entry.released == nil, entry.connections >= Self.maxConnections {
                    giveUp(packetID)
                } else if let error = tooLong(entry) {
                    giveUp(packetID)
                    if !entry.isAbandoned { actions.append(.failed(id: entry.id, error)) }
                } else {
                    resending.append(packetID)
                }
            }
            return actions
        }
        spoiled = []
        inflight = [:]
        packetIDs = [:]
        for (_, entry) in unfinished where entry.isAbandoned { ends[entry.id] = nil }
        for (_, entry) in unfinished.reversed() where !entry.isAbandoned {
            if entry.outgoing.qos == .exactlyOnce {
                ends[entry.id] = nil
                let message = "the server lost the session; whether this was published is not known"
                actions.append(.failed(id: entry.id, HermesClientError(.connectionLost, message)))
            } else {
                waiting.prepend((entry.id, entry.outgoing))
                waitingIDs.insert(entry.id)
            }
        }
        return actions
    }

    /// Sends the waiting publications, because the connection may now be used. Unfinished publications go first, in
    /// order [MQTT-4.4.0-1] [MQTT-4.6.0-1].
    mutating func resumed() -> [Action] { pump() }

    /// Notes that the connection is lost, so nothing can be sent.
    ///
    /// - Parameter suspects: whether the longest unanswered publication may be the reason for the loss. Ignored if the
    ///   server has said that it ends the connection because of a packet's length.
    mutating func lost(suspects: Bool = false) {
        quota = 0
        defer { isConnected = false }
        guard suspects, isConnected, !isExplained, let (_, entry) = longestUnanswered() else { return }
        if entry.outgoing.frame.encodedBytes > Self.suspectBytes { ends[entry.id, default: 0] += 1 }
    }

    // MARK: Requests

    /// Adds a publication of the app. A repeated call for a known id does nothing.
    mutating func published(_ outgoing: MQTTOutgoing, id: UInt64) -> [Action] {
        guard packetIDs[id] == nil, waitingIDs.insert(id).inserted else { return [] }
        waiting.append((id, outgoing))
        return pump()
    }

    /// Notes that nothing waits for a publication any more. If it has not been sent yet, it will not be sent.
    mutating func abandoned(id: UInt64) {
        if let packetID = packetIDs[id] {
            inflight[packetID]?.isAbandoned = true
        } else if waitingIDs.remove(id) != nil {
            waiting.removeAll { $0.id == id }
            ends[id] = nil
        }
    }

    /// Returns a packet identifier for a SUBSCRIBE or UNSUBSCRIBE; nil if all are in use.
    mutating func borrowPacketID() -> UInt16? {
        guard let packetID = nextPacketID() else { return nil }
        borrowed.insert(packetID)
        return packetID
    }

    mutating func returnPacketID(_ packetID: UInt16) { borrowed.remove(packetID) }

    /// Drops the longest unanswered publication, because the server ends the connection for a packet that was too
    /// long.
    ///
    /// - Parameter least: the length of the longest other packet, in bytes. A shorter publication is not the cause.
    mutating func refusedForLength(atLeast least: Int = 0) -> [Action] {
        guard isConnected else { return [] }
        isExplained = true
        guard let (packetID, entry) = longestUnanswered() else { return [] }
        let bytes = entry.outgoing.frame.encodedBytes
        guard bytes >= least else { return [] }
        giveUp(packetID)
        let error = HermesClientError(.notEncodable, "the message has \(bytes) bytes, which the server does not accept")
        return [.failed(id: entry.id, error)]
    }

    // MARK: Answers

    mutating func pubackReceived(
        _ packetID: UInt16,
        _ reason: MQTTReasonCode,
        _ properties: MQTTProperties = []
    ) throws(MQTTPacketError) -> [Action] {
        guard let entry = inflight[packetID] else { return [] }
        guard entry.outgoing.qos == .atLeastOnce, entry.isSent else { throw Self.unexpected(.puback, packetID) }
        return finish(packetID, reason, properties)
    }

    mutating func pubrecReceived(
        _ packetID: UInt16,
        _ reason: MQTTReasonCode,
        _ properties: MQTTProperties = []
    ) throws(MQTTPacketError) -> [Action] {
        guard let entry = inflight[packetID] else {
            return reason.isFailure ? [] : [.release(packetID: packetID, .packetIdentifierNotFound)]
        }
        guard entry.outgoing.qos == .exactlyOnce, entry.isSent else { throw Self.unexpected(.pubrec, packetID) }
        guard !reason.isFailure else { return finish(packetID, reason, properties) }
        inflight[packetID]?.released = reason
        // The server has the message now; only the identifier is kept.
        inflight[packetID]?.outgoing.frame.body = ByteBuffer()
        return [.release(packetID: packetID, .success)]
    }

    mutating func pubcompReceived(_ packetID: UInt16) throws(MQTTPacketError) -> [Action] {
        guard let entry = inflight[packetID] else { return [] }
        guard let reason = entry.released, entry.isSent else { throw Self.unexpected(.pubcomp, packetID) }
        return finish(packetID, reason, [])
    }

    // MARK: -

    private mutating func finish(
        _ packetID: UInt16,
        _ reason: MQTTReasonCode,
        _ properties: MQTTProperties
    ) -> [Action] {
        guard let entry = inflight.removeValue(forKey: packetID) else { return [] }
        packetIDs[entry.id] = nil
        ends[entry.id] = nil
        quota = min(receiveMaximum, quota + 1)
        return [.done(id: entry.id, reason, properties)] + pump()
    }

    private mutating func pump() -> [Action] {
        var actions: [Action] = []
        while quota > 0, let packetID = resending.popFirst() {
            guard let entry = inflight[packetID] else { continue }
            quota -= 1
            inflight[packetID]?.isSent = true
            inflight[packetID]?.connections += 1
            if entry.released != nil {
                actions.append(.release(packetID: packetID, .success))
            } else {
                actions.append(.send(entry.outgoing.numbered(packetID, isDuplicate: true)))
            }
        }
        while quota > 0, let (id, outgoing) = waiting.first {
            guard outgoing.frame.encodedBytes <= maxPacketBytes else {
                waiting.removeFirst()
                waitingIDs.remove(id)
                ends[id] = nil
                let message =
                    "the message has \(outgoing.frame.encodedBytes) bytes; the server accepts at most \(maxPacketBytes)"
                actions.append(.failed(id: id, HermesClientError(.notEncodable, message)))
                continue
            }
            guard let packetID = nextPacketID() else { break }
            waiting.removeFirst()
            waitingIDs.remove(id)
            quota -= 1
            lastNumber &+= 1
            inflight[packetID] = Entry(id: id, outgoing: outgoing, number: lastNumber, isSent: true)
            packetIDs[id] = packetID
            actions.append(.send(outgoing.numbered(packetID, isDuplicate: false)))
        }
        return actions
    }

    /// Returns the longest unanswered publication that was sent over this connection. If several are equally long,
    /// returns the one that was sent first.
    private func longestUnanswered() -> (packetID: UInt16, Entry)? {
        let sent = inflight.lazy.filter { $0.value.isSent && $0.value.released == nil }
        let longest = sent.max {
            ($0.value.outgoing.frame.encodedBytes, $1.value.number)
                < ($1.value.outgoing.frame.encodedBytes, $0.value.number)
        }
        return longest.map { ($0.key, $0.value) }
    }

    private mutating func failSuspects() -> [Action] {
        guard !ends.isEmpty else { return [] }
        var actions: [Action] = []
        for (packetID, entry) in inflight where ends[entry.id, default: 0] >= Self.maxEnds && entry.released == nil {
            giveUp(packetID)
            guard !entry.isAbandoned else { continue }
            let message = """
                \(Self.maxEnds) connections ended before the server answered this message of \
                \(entry.outgoing.frame.encodedBytes) bytes; it is probably too long for the server
                """
            actions.append(.failed(id: entry.id, HermesClientError(.notEncodable, message)))
        }
        return actions
    }

    /// Drops a publication, so that it is not sent again.
    private mutating func giveUp(_ packetID: UInt16) {
        guard let entry = inflight.removeValue(forKey: packetID) else { return }
        packetIDs[entry.id] = nil
        ends[entry.id] = nil
        if entry.outgoing.qos == .exactlyOnce { spoiled.insert(packetID) }
    }

    /// Returns the error for a message that is too long for this connection; nil if the message fits.
    private func tooLong(_ entry: Entry) -> HermesClientError? {
        let bytes = entry.outgoing.frame.encodedBytes
        guard entry.released == nil, bytes > maxPacketBytes else { return nil }
        let message =
            "the message has \(bytes) bytes; the server now accepts at most \(maxPacketBytes), "
            + "but may already have got the message"
        return HermesClientError(.notEncodable, message)
    }

    private mutating func nextPacketID() -> UInt16? {
        guard inflight.count + borrowed.count + spoiled.count < Int(UInt16.max) else { return nil }
        repeat {
            lastPacketID &+= 1
        } while lastPacketID == 0 || inflight[lastPacketID] != nil || borrowed.contains(lastPacketID)
            || spoiled.contains(lastPacketID)
        return lastPacketID
    }

    private static func unexpected(_ type: MQTTPacketType, _ packetID: UInt16) -> MQTTPacketError {
        MQTTPacketError(.protocolError, "the server sent a \(type) for packet \(packetID), which awaits another answer")
    }
}
