// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import Logging
import NIOCore

/// Rooms from which an operator removes a client. It stays connected and may return by subscribing again.
///
/// A subscription to the room's topic ends, in the store too. A wildcard subscription stays but excludes the room,
/// until the client subscribes to a filter that matches the room, or reconnects.
extension MQTTConnection {
    /// The number of rooms that can be excluded for one connection; at more, it is ended.
    static let maxClosedRooms = 100

    package func removed(by expulsion: RoomExpulsion) -> Bool {
        guard phase == .connected, let client else { return false }
        // A room entered over the native protocol.
        let wasIn = client.inbox?.packets?.removed(by: expulsion) ?? false
        guard expulsion.means(userName: client.identity.userName) else { return wasIn }
        let topic = expulsion.room.topic
        guard !client.closedRooms.contains(topic) else { return wasIn }
        let matching = client.subscriptions.held.compactMap { text, held in
            Self.filter(of: text.rawValue).flatMap { $0.matches(topic) ? (text: text, filter: $0, held: held) : nil }
        }
        guard !matching.isEmpty else { return wasIn }
        guard client.closedRooms.count < Self.maxClosedRooms else {
            refuse(MQTTPacketError(.administrativeAction, "removed from more than \(Self.maxClosedRooms) rooms"))
            return true
        }
        close(topic, of: client, matching.filter(\.filter.hasWildcard).map(\.held))
        end(matching.filter { !$0.filter.hasWildcard }.map { ($0.text, $0.held) }, of: client)
        tellRemoval(from: expulsion.room)
        return true
    }

    /// Closes a room; queued messages from it are not sent either.
    private func close(_ topic: TopicName, of client: MQTTClientState, _ held: [MQTTHeldSubscription]) {
        guard !held.isEmpty || client.durable != nil else { return }
        client.closedRooms.insert(topic)
        client.subscriptions.hasFiltered = true
        refilter(client)
    }

    private func end(_ ended: [(text: TopicText, held: MQTTHeldSubscription)], of client: MQTTClientState) {
        guard !ended.isEmpty else { return }
        for (text, _) in ended { client.subscriptions.end(text) }
        letGo(ended.map(\.held))
        guard client.durable != nil, let link = client.link else { return }
        let logger = connection.listener.logger
        environment.messenger.durable.unsubscribe(link.id, ended.map(\.text.rawValue), source: link.source) { change in
            // The room stays closed for the client until it connects again.
            guard let error = change.error else { return }
            logger.warning(
                "a subscription to a room could not be removed from the store",
                metadata: ["code": "\(error.code.rawValue)"]
            )
        }
    }

    /// Tells the client; 5.0 clients recognize the type by the user property, like everything from rooms.
    private func tellRemoval(from room: RoomName) {
        // Cannot fail: it can be written.
        guard version == .v5, let kicked = try? Publication(RoomEvent(.kicked(.byOperator), in: room)) else { return }
        sendOnce(kicked, isRetained: false, identifiers: [])
    }

    /// The client subscribed anew: matching rooms are open again.
    func reopenRooms(matching filters: [TopicFilter], of client: MQTTClientState) {
        guard !client.closedRooms.isEmpty else { return }
        let closed = client.closedRooms.filter { topic in !filters.contains { $0.matches(topic) } }
        // Once per packet, and only after a change: all subscriptions are checked.
        guard closed.count < client.closedRooms.count else { return }
        client.closedRooms = closed
        refilter(client)
    }

    /// Whether a subscription matches more than the client may read.
    func isFiltered(_ text: String, of client: MQTTClientState) -> Bool {
        if client.access(environment.access).access(toSubscribe: text) != .all { return true }
        guard !client.closedRooms.isEmpty, let filter = Self.filter(of: text) else { return false }
        return client.closedRooms.contains { filter.matches($0) }
    }

    /// The filter of a subscription's text, without the group of a shared one.
    private static func filter(of text: String) -> TopicFilter? {
        TopicFilter(MQTTTopic.sharedParts(of: text).map { String($0.filter) } ?? text)
    }
}

/// Joins and leaves that the client announces to rooms.
extension MQTTConnection {
    /// Whether an event is passed on to a room. The joins and leaves of all clients share one budget
    /// (``ArrivalBudget``). A join is charged together with its leave.
    func isTold(_ kind: Publication.Kind, in room: TopicName) -> Bool {
        switch kind {
        case .room(.joined):
            guard connection.tellsArrival(in: room) else { return false }
            client?.announced.joined(room)
            measureMemory()
            return true
        case .room(.left): return client?.announced.left(room) ?? false || connection.tellsArrival(in: room)
        default: return true
        }
    }
}

/// The joins that a client announced and whose leaves may follow. A client may announce many members of a room. Pure.
struct MQTTAnnouncedJoins: Sendable {
    /// The most rooms; leaves of others are paid for on their own.
    static let limit = 100
    /// The longest topic of a room that is kept.
    private static let maxTopicBytes = 128

    private var rooms: [TopicName: Int] = [:]

    /// Its approximate memory.
    var bytes: Int { rooms.count * (Self.maxTopicBytes + 64) }

    mutating func joined(_ room: TopicName) {
        guard room.rawValue.utf8.count <= Self.maxTopicBytes, rooms.count < Self.limit || rooms[room] != nil else {
            return
        }
        rooms[room, default: 0] += 1
    }

    /// - Returns: whether a join was announced before, for each leave.
    mutating func left(_ room: TopicName) -> Bool {
        guard let joins = rooms[room] else { return false }
        rooms[room] = joins > 1 ? joins - 1 : nil
        return true
    }
}

/// The demands of rooms on publications, because the clients of other protocols get them too.
extension MQTTTranslation {
    /// A publication's kind: that of an event for a message to a room that declares one, otherwise plain.
    ///
    /// - Parameter counted: called with the parts of a payload that has to fit its kind, before it is parsed
    ///   (``MessageParts``).
    /// - Returns: nil if the declared type is not a client's, or the payload does not fit the kind.
    static func kind(of publication: Publication, counted: (Int) -> Void = { _ in }) -> Publication.Kind? {
        guard publication.topic.rawValue.hasBytes(startingWith: TopicName.roomPrefix),
            let declared = publication.details?.userProperties.first(where: { $0.name == roomTypeName })?.value
        else { return .plain }
        guard let kind = UInt16(declared).flatMap(RoomEvent.Kind.init(number:)), !kind.isServers else { return nil }
        let payloads = GatewayCatalog.roomPayloads
        counted(payloads.partCount(of: kind, in: publication.payload))
        return payloads.content(of: kind, in: publication.payload) == nil ? nil : .room(kind)
    }
}
