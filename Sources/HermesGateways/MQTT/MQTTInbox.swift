// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import NIOCore
import SwiftProtobuf

/// The native protocol in MQTT publications. Packets to the server are published to `hermes/v1/up`, and packets to
/// the client to `hermes/v1/down`. For JSON, `/json` is appended to each topic. Owner: the connection's event loop.
///
/// This object lives as long as the connection, even without a subscription, because publications that are under way
/// keep their packet identifiers until the client acknowledges them [MQTT-3.10.4-3].
final class MQTTInbox {
    enum Topic {
        static let up = "hermes/v1/up"
        static let upJSON = "hermes/v1/up/json"
        static let down = "hermes/v1/down"
        static let downJSON = "hermes/v1/down/json"
    }

    /// The format and QoS of the packets to the client.
    struct Form: Hashable {
        /// Whether packets are JSON. This is so if no subscription asks for the binary format.
        let isJSON: Bool
        let qos: QoS

        var topic: String { isJSON ? Topic.downJSON : Topic.down }
    }

    /// The largest number of publications to the client that may be unacknowledged.
    static let windowSize = 500
    /// The first packet identifier of the inbox's publications. The inbox uses identifiers above those of all other
    /// publications, so that no identifier has two meanings.
    static let firstPacketID = OutboundWindow.maxSpan + 1

    private(set) var form: Form
    /// The object that serves the native protocol; nil while the client does not subscribe to the inbox.
    private(set) var packets: NativeConnection?
    /// The last seq that the client has. A new subscription to the inbox continues after it.
    private(set) var cursor: UInt64
    /// The answer to a login of the native protocol; nil after CONNACK has carried it, and for all other logins.
    var welcome: Hermes_V1_Session?
    private var window = makeWindow()
    /// The free slots of the client's receive maximum that only the inbox can use.
    private var ownSlots = 0
    /// The number of slots that the window of all other publications has lent.
    private var lentSlots = 0
    /// The seqs of the entries in the window, oldest first.
    private var seqs = Deque<UInt64>()

    static func makeWindow() -> OutboundWindow {
        OutboundWindow(limit: windowSize, span: Int(UInt16.max) - OutboundWindow.maxSpan)
    }

    init(_ form: Form, cursor: UInt64) {
        self.form = form
        self.cursor = cursor
    }

    /// Sets how many slots of the client's receive maximum only the inbox can use. Called once, before the first entry
    /// is sent.
    func accepted(ownSlots: Int) { self.ownSlots = ownSlots }

    func open(_ packets: NativeConnection) { self.packets = packets }

    func change(to form: Form) { self.form = form }

    /// Closes the inbox, for example because the client has unsubscribed. Publications that are under way may still
    /// be acknowledged.
    func close() {
        guard let packets else { return }
        if let acknowledged = packets.acknowledgedSeq { cursor = max(cursor, acknowledged) }
        self.packets = nil
        packets.closed()
    }

    // MARK: Subscriptions to the inbox

    /// Whether publications to this topic are requests to the server, which reach nobody else.
    static func isForServer(_ topic: TopicName) -> Bool { [Topic.up, Topic.upJSON].contains(topic.rawValue) }

    /// Whether a filter asks for the packets to the client.
    static func isAskedFor(by filter: TopicFilter) -> Bool {
        filter.rawValue.hasBytes(startingWith: "hermes/")
            && (matches(filter, Topic.down) || matches(filter, Topic.downJSON))
    }

    /// Returns the combined form of some subscriptions; nil if they do not ask for packets.
    ///
    /// - Parameter mayRead: whether the client may read a topic. It is called for subscriptions that also match topics
    ///   that the client may not read.
    static func form(
        of subscriptions: [(filter: TopicFilter, options: SubscriptionOptions)],
        mayRead: (String) -> Bool
    ) -> Form? {
        func qos(_ topic: String) -> QoS? {
            subscriptions.filter { matches($0.filter, topic) && (!$0.options.isFiltered || mayRead(topic)) }
                .map(\.options.qos).max()
        }
        if let qos = qos(Topic.down) { return Form(isJSON: false, qos: min(qos, .atLeastOnce)) }
        return qos(Topic.downJSON).map { Form(isJSON: true, qos: min($0, .atLeastOnce)) }
    }

    private static func matches(_ filter: TopicFilter, _ topic: String) -> Bool {
        TopicName(topic).map(filter.matches) ?? false
    }

    // MARK: The window

    /// Returns the packet identifier for an entry; nil if the entry is sent with QoS 0. Entries that the client
    /// requested are sent with QoS 0. A PUBACK acknowledges its entry and all earlier entries, but requested entries
    /// may be sent before earlier entries that the client does not have yet. Requested entries are sent again later, in
    /// the order of the inbox.
    func nextPacketID(for packet: Hermes_V1_Packet) -> UInt16? {
        guard packets?.isRepeating != true, form.qos > .atMostOnce, case .event = packet.body, window.hasRoom else {
            return nil
        }
        return UInt16(MQTTInbox.firstPacketID - 1) + window.nextPacketID
    }

    /// Returns the number of entries that the client can accept. The client's receive maximum applies to the inbox
    /// and all other publications together [MQTT-3.3.4-9].
    func freeSlots(_ others: OutboundWindow) -> Int {
        form.qos == .atMostOnce ? .max : ownSlots + (others.hasRoom ? others.limit - others.inflight : 0)
    }

    /// Records an entry that is sent with the identifier from ``nextPacketID(for:)``.
    ///
    /// - Parameter others: the window of all other publications, which may lend a slot.
    func sent(_ packet: Hermes_V1_Packet, _ others: inout OutboundWindow) {
        guard case .event(let event) = packet.body else { return }
        if ownSlots > 0 {
            ownSlots -= 1
        } else {
            others.lend()
            lentSlots += 1
        }
        let id = window.nextPacketID
        guard window.send(exactlyOnce: false) == id else { return assertionFailure("unexpected packet identifier") }
        if case .expired(let gone) = event.event {
            seqs.append(max(event.seq, gone.toSeq))
        } else {
            seqs.append(event.seq)
        }
    }

    /// Handles the PUBACK of a publication from the inbox. Entries are acknowledged in order.
    ///
    /// - Parameter others: the window of all other publications, which gets back a slot that it has lent.
    /// - Returns: the seq up to which all entries are acknowledged; nil if it is the same as before.
    func acknowledged(_ packetID: UInt16, _ others: inout OutboundWindow) -> UInt64? {
        let before = window.base
        guard case .completed = window.acknowledged(packetID - UInt16(MQTTInbox.firstPacketID - 1)) else { return nil }
        if lentSlots > 0 {
            lentSlots -= 1
            others.takeBack()
        } else {
            ownSlots += 1
        }
        var taken: UInt64?
        for _ in before..<window.base { taken = seqs.popFirst() ?? taken }
        if let taken { cursor = max(cursor, taken) }
        return taken
    }

    // MARK: Packets

    /// Encodes a packet in the client's form; nil if it cannot be encoded.
    func payload(of packet: Hermes_V1_Packet) -> ByteBuffer? {
        do {
            return form.isJSON ? ByteBuffer(string: try packet.jsonString()) : try packet.wireBuffer()
        } catch {
            return nil
        }
    }
}

// MARK: - Entries that are too long for a client

extension MQTTInbox {
    /// Returns the replacements for a packet that is too long for the client, the most detailed first; none for
    /// ephemeral events.
    ///
    /// - Parameter bytes: the length of the packet's payload.
    static func standIns(for packet: Hermes_V1_Packet, bytes: Int) -> [Hermes_V1_Packet] {
        switch packet.body {
        case .event(let event):
            var standIn = Hermes_V1_Packet()
            standIn.event.seq = event.seq
            standIn.event.serverTimeMs = event.serverTimeMs
            standIn.event.oversized = oversized(event, bytes: bytes)
            var telling = standIn
            telling.event.oversized.hint =
                "longer than this client's Maximum Packet Size; to get it, use a connection with a larger one: "
                + "synchronize with after_seq \(event.seq - min(event.seq, 1)) and limit 1"
            return [telling, standIn]
        case .result where packet.id != 0:
            var failure = Hermes_V1_Packet()
            failure.id = packet.id
            failure.result.error = NativeTranslation.error(
                HermesError(
                    .tooLarge,
                    "the answer takes \(bytes) bytes, more than this client's Maximum Packet Size; ask for less at once"
                )
            )
            return [failure]
        default:
            return []
        }
    }

    private static func oversized(_ event: Hermes_V1_Event, bytes: Int) -> Hermes_V1_Oversized {
        let standIn = StandIn(for: event, packetBytes: bytes)
        var oversized = Hermes_V1_Oversized()
        oversized.kind = standIn.entry
        oversized.packetBytes = UInt64(clamping: bytes)
        switch event.event {
        case .message(let message):
            oversized.contentKind = standIn.kind
            oversized.contentBytes = UInt64(clamping: standIn.bytes)
            oversized.id = message.id
            oversized.conversation = message.conversation
            oversized.conversationSeq = message.conversationSeq
            oversized.fromUid = message.fromUid
        case .push(let push): oversized.id = push.id
        // The other kinds of entries are small and have no id.
        default: break
        }
        return oversized
    }
}
