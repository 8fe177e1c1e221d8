// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import Logging
import NIOCore

/// An operator's removal of a client from a room. The client stays connected and may return by subscribing again.
///
/// A subscription to the room's topic ends, and is also removed from the store. A wildcard subscription stays but
/// excludes the room, until the client subscribes to a filter that matches the room, or reconnects.
extension MQTTConnection {
    /// The largest number of rooms that can be closed for one connection. A removal from one more room ends the
    /// connection.
    static let maxClosedRooms = 100

    package func removed(by expulsion: RoomExpulsion) -> Bool {
        if phase == .connecting { return remember(expulsion) }
        guard phase == .connected, let client else { return false }
        // The client may have entered the room over the native protocol.
        let wasIn = client.inbox?.packets?.removed(by: expulsion) ?? false
        guard expulsion.means(userName: client.identity.userName) else { return wasIn }
        let topic = expulsion.room.topic
        guard !client.closedRooms.contains(topic) else { return wasIn }
        // A filter that equals the topic has no wildcard.
        var equal: [(text: TopicText, held: MQTTHeldSubscription)] = []
        var wider: [MQTTHeldSubscription] = []
        for (text, held) in client.subscriptions.held where Self.matches(text.rawValue, expulsion.room) {
            if Self.filter(text.rawValue, equals: topic) { equal.append((text, held)) } else { wider.append(held) }
        }
        guard !equal.isEmpty || !wider.isEmpty else { return wasIn }
        guard client.closedRooms.count < Self.maxClosedRooms else {
            refuse(MQTTPacketError(.administrativeAction, "removed from more than \(Self.maxClosedRooms) rooms"))
            return true
        }
        close(topic, of: client, wider)
        end(equal, of: client, by: expulsion)
        tellRemoval(from: expulsion.room)
        return true
    }

    /// Closes a room for the client. The client gets no more messages from the room, not even queued ones.
    private func close(_ topic: TopicName, of client: MQTTClientState, _ held: [MQTTHeldSubscription]) {
        guard !held.isEmpty || client.durable != nil || !outbound.waiting.isEmpty else { return }
        client.closedRooms.insert(topic)
        client.subscriptions.hasFiltered = true
        refilter(client)
    }

    private func end(
        _ ended: [(text: TopicText, held: MQTTHeldSubscription)],
        of client: MQTTClientState,
        by expulsion: RoomExpulsion
    ) {
        guard !ended.isEmpty else { return }
        for (text, _) in ended { client.subscriptions.end(text) }
        endSubscriptions(ended.map(\.held), of: client)
        guard client.durable != nil, let link = client.link, let id = link.id else { return }
        endStored(ended.map(\.text.rawValue), of: id, paidBy: link.source, expulsion)
    }

    /// Ends subscriptions to a room in the store. If one account is removed, its own flood of operations must not make
    /// the server refuse this operation.
    private func endStored(
        _ filters: [String],
        of id: DurableSessionID,
        paidBy source: CommitSource,
        _ expulsion: RoomExpulsion
    ) {
        guard !filters.isEmpty else { return }
        let logger = connection.listener.logger
        let isUrgent = expulsion.account != nil
        environment.messenger.durable.unsubscribe(id, filters, source: source, isUrgent: isUrgent) { change in
            // If the store fails, the subscription returns with the client's next connection. Until then the room stays
            // closed.
            guard let error = change.error else { return }
            logger.warning(
                "a subscription to a room could not be removed from the store",
                metadata: ["code": "\(error.code.rawValue)"]
            )
        }
    }

    /// Tells a 5.0 client that it was removed. The client recognizes the type of this message by a user property, as
    /// it does for all messages from rooms. 3.1.1 clients are not notified.
    private func tellRemoval(from room: RoomName) {
        // This does not fail, because the event can always be encoded.
        guard version == .v5, let kicked = try? Publication(RoomEvent(.kicked(.byOperator), in: room)) else { return }
        sendOnce(kicked, isRetained: false, identifiers: [])
    }

    /// Opens closed rooms again if the client's new filters match them.
    func reopenRooms(matching filters: [TopicFilter], of client: MQTTClientState) {
        guard !client.closedRooms.isEmpty else { return }
        let opened = filters.compactMap { MatchedRooms(of: $0.rawValue[...]) }
        let closed = client.closedRooms.filter { topic in
            !opened.contains { rooms in topic.room.map { rooms.includes($0) } ?? false }
        }
        // All subscriptions are checked again below, so this function continues only after a change.
        guard closed.count < client.closedRooms.count else { return }
        client.closedRooms = closed
        refilter(client)
    }

    /// Whether a subscription matches topics that the client may not read.
    func isFiltered(_ text: String, of client: MQTTClientState) -> Bool {
        if client.access(environment.access).access(toSubscribe: text) != .all { return true }
        guard !client.closedRooms.isEmpty else { return false }
        return switch MatchedRooms(of: Self.filter(of: text)) {
        case nil: false
        case .all: true
        case .one(let name): client.closedRooms.contains(TopicName(checked: TopicName.roomPrefix + String(name)))
        }
    }

    /// Whether the filter in a subscription's text matches a room's topic.
    private static func matches(_ text: String, _ room: RoomName) -> Bool {
        MatchedRooms(of: filter(of: text))?.includes(room) ?? false
    }

    /// Whether the filter in a subscription's text is the topic itself.
    private static func filter(_ text: String, equals topic: TopicName) -> Bool {
        filter(of: text).utf8.elementsEqual(topic.rawValue.utf8)
    }

    /// Returns the filter in a subscription's text, without the group of a shared subscription.
    private static func filter(of text: String) -> Substring { MQTTTopic.sharedParts(of: text)?.filter ?? text[...] }
}

/// An operator's removal of a client that is connecting.
extension MQTTConnection {
    /// Remembers a removal until CONNACK, because some of the session's subscriptions may not be restored yet. In the
    /// store, the subscriptions to the room end at once, because the client may close the connection before CONNACK.
    ///
    /// - Returns: whether the session is known to have a subscription that matches the room.
    private func remember(_ expulsion: RoomExpulsion) -> Bool {
        guard let client, let link = client.link, expulsion.means(userName: client.identity.userName) else {
            return false
        }
        if !link.expulsions.contains(expulsion) { link.expulsions.append(expulsion) }
        // Until the session is attached, its subscriptions are not known (``found(_:for:)``).
        guard let id = link.id else { return false }
        return endStored(by: expulsion, of: link, id)
    }

    /// Records the session's subscriptions. If the client was removed from rooms while it waited for the session,
    /// this function ends the subscriptions to these rooms in the store.
    ///
    /// - Parameter link: the link that requested the session. Its connection may have closed meanwhile.
    func found(_ opening: DurableOpening, for link: MQTTSessionLink) {
        link.restored = opening.subscriptions
        for expulsion in link.expulsions { _ = endStored(by: expulsion, of: link, opening.id) }
    }

    /// Carries out the removals that arrived before CONNACK.
    func leaveRooms(_ client: MQTTClientState) {
        guard let link = client.link else { return }
        let expulsions = link.expulsions
        link.expulsions = []
        link.restored = []
        for expulsion in expulsions { _ = removed(by: expulsion) }
    }

    /// Ends a session's stored subscriptions to a room.
    ///
    /// - Returns: whether the session has a subscription that matches the room.
    private func endStored(
        by expulsion: RoomExpulsion,
        of link: MQTTSessionLink,
        _ id: DurableSessionID
    ) -> Bool {
        let topic = expulsion.room.topic
        let matching = link.restored.map(\.filter).filter { Self.matches($0, expulsion.room) }
        endStored(matching.filter { Self.filter($0, equals: topic) }, of: id, paidBy: link.source, expulsion)
        return !matching.isEmpty
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
