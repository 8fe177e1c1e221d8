// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// The state of the output to one client: the longest accepted packet, the topics with aliases, the QoS 1 and 2
/// messages that are under way, and the waiting messages of a clean session (one that ends with its connection). This
/// type does no I/O.
///
/// A message is sent now if the window has room and nothing waits. Otherwise it waits, or is dropped for a reason
/// (``Drop``). Owner: the connection's event loop.
struct MQTTOutbound {
    /// The reason why a message is not sent.
    enum Drop: Hashable, Sendable {
        /// The client accepts no packet of this size; the message counts as sent [MQTT-3.1.2-25].
        case tooLarge
        /// The queue of waiting messages is full.
        case queueFull
        /// The message expired while it waited [MQTT-3.3.2-5].
        case expired
    }

    /// The alias of a topic in a PUBLISH [MQTT-3.3.2-12].
    enum Alias: Hashable, Sendable {
        case noAlias
        /// The client knows the alias, which replaces the topic.
        case known(UInt16)
        /// The packet sets the alias. Either the packet is written, or the alias must be forgotten
        /// (``MQTTOutbound/forgetAlias(of:)``).
        case new(UInt16)
    }

    /// The longest packet that the client accepts, in bytes.
    var maxPacketBytes = Int.max
    /// The highest topic alias that the client accepts. It is declared next to ``maxPacketBytes``, because both are
    /// read for each delivery.
    private var maxAlias: UInt16 = 0
    /// The approximate memory of the aliases, in bytes. It fits into 32 bits: there are at most 65,535 aliases, and
    /// the length of each topic is limited.
    private var aliasBytes: UInt32 = 0
    /// The QoS 1 and 2 messages that were sent but are not yet fully acknowledged.
    var window = OutboundWindow(limit: 1)
    /// Messages that wait for the window or the connection.
    var waiting = MQTTWaitingQueue()
    private var aliases: [TopicName: UInt16] = [:]

    /// The longest topic that gets an alias, in bytes. The limit exists because the topic is kept for as long as the
    /// connection lasts.
    static let maxAliasedTopicBytes = 1_024

    /// Applies the limits of an accepted client.
    ///
    /// - Parameters:
    ///   - receiveMaximum: the largest number of messages that may be unacknowledged.
    ///   - maxAlias: the highest topic alias.
    mutating func accepted(receiveMaximum: Int, maxAlias: UInt16) {
        window = OutboundWindow(limit: receiveMaximum)
        self.maxAlias = maxAlias
    }

    /// Forgets all messages and aliases, because the connection is gone.
    mutating func ended() {
        let maxPacketBytes = maxPacketBytes
        self = MQTTOutbound()
        self.maxPacketBytes = maxPacketBytes
    }

    /// The approximate memory, in bytes.
    var bytes: Int { waiting.bytes &+ Int(aliasBytes) }

    // MARK: Aliases

    /// Whether topics are replaced by aliases. If so, the packets for this client differ from those for other clients.
    var usesAliases: Bool { maxAlias > 0 }

    /// Returns the alias of a topic.
    ///
    /// - Parameter mayAdd: whether the topic may get a new alias. This is allowed only if the packet is written at
    ///   once.
    mutating func alias(of topic: TopicName, mayAdd: Bool) -> Alias {
        if let known = aliases[topic] { return .known(known) }
        guard aliases.count < Int(maxAlias), mayAdd, topic.rawValue.utf8.count <= Self.maxAliasedTopicBytes else {
            return .noAlias
        }
        let alias = UInt16(clamping: aliases.count + 1)
        aliases[topic] = alias
        aliasBytes += Self.weight(topic)
        return .new(alias)
    }

    /// Forgets the alias of a topic, because the packet that sets it is not sent. The alias must be the newest one.
    mutating func forgetAlias(of topic: TopicName) {
        guard aliases.removeValue(forKey: topic) != nil else { return }
        aliasBytes -= Self.weight(topic)
    }

    private static func weight(_ topic: TopicName) -> UInt32 { UInt32(clamping: topic.rawValue.utf8.count + 64) }

    // MARK: Messages of QoS 1 and 2

    /// Whether a message of a clean session may be sent now: no message waits before it, and the window has room.
    var hasRoom: Bool { waiting.isEmpty && window.hasRoom }

    /// Whether this number of messages of a clean session may be sent now.
    func hasRoom(for count: Int) -> Bool { waiting.isEmpty && window.hasRoom(for: count) }

    /// Removes and returns the first of the messages that wait, if the window has room for it.
    mutating func popWaiting() -> MQTTWaitingQueue.Message? { window.hasRoom ? waiting.popFirst() : nil }

    /// Handles a PUBACK, PUBREC or PUBCOMP.
    ///
    /// - Parameters:
    ///   - isRefused: whether the packet's reason code is a failure.
    ///   - storesReleases: whether the session outlives its connection. If so, PUBREL is sent only after the PUBREC is
    ///     stored (``OutboundWindow/released(_:)``).
    mutating func acknowledged(
        _ type: MQTTPacketType,
        _ packetID: UInt16,
        isRefused: Bool,
        storesReleases: Bool
    ) -> OutboundWindow.Answer {
        switch type {
        case .puback: window.acknowledged(packetID)
        case .pubcomp: window.finished(packetID)
        case .pubrec: window.received(packetID, isRefused: isRefused, isStored: storesReleases)
        default: .unknown
        }
    }
}
