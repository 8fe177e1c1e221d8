// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The sessions and connections of an owner.
extension DurableState {
    /// Returns an owner's connections that have a session or wait for one.
    ///
    /// - Parameter matches: gets a client id and its connection; returns whether to include the connection.
    func attachments(
        of owner: SessionOwner,
        where matches: (String, any DurableAttachment) -> Bool = { _, _ in true }
    ) -> [any DurableAttachment] {
        seats.keys(of: owner).flatMap { key in
            (seats[key]?.attachments ?? []).filter { matches(key.clientID, $0) }
        }
    }

    /// All connections that have a session or wait for one.
    var attachments: [any DurableAttachment] { seats.all.flatMap(\.attachments) }

    /// Returns the stored session of a key; nil if there is none, or if it has ended.
    func session(of key: SessionKey) -> DurableSessionID? {
        guard let id = seats[key]?.session, records[id]?.hasEnded == false else { return nil }
        return id
    }

    /// Returns the session of a key, with its subscriptions; nil if there is no session, or if it has ended or has a
    /// connection to any node.
    func absentSession(of key: SessionKey) -> (id: DurableSessionID, subscriptions: Set<TopicText>)? {
        guard let id = seats[key]?.session, let record = records[id], record.attachment == nil,
            !record.hasEnded, !isOpenElsewhere(record)
        else { return nil }
        return (id, record.subscriptions)
    }

    /// Ends the sessions of an owner who is gone. A session with a connection ends together with that connection, even
    /// if the connection closes by itself at this moment.
    mutating func endAll(of owner: SessionOwner) -> [Action] {
        var actions: [Action] = []
        for key in seats.keys(of: owner) {
            guard var seat = seats[key] else { continue }
            seat.isOwnerGone = true
            seats[key] = seat
            guard seat.session.isStored else { continue }
            if case .closing = seat.phase, let record = records[seat.session], !record.hasEnded {
                // The session ends now, and is removed after the end of its connection is stored.
                markEnded(seat.session)
                actions.append(.ended(record.key))
            }
            guard case .vacant = seat.phase else { continue }
            actions += remove(seat.session)
        }
        return actions
    }

    /// Whether a client of the owner is connected to this process, or is about to be connected.
    func hasConnection(of owner: SessionOwner) -> Bool {
        seats.keys(of: owner).contains { key in
            switch seats[key]?.phase {
            case .occupied, .opening: true
            case .vacant, .closing, nil: false
            }
        }
    }
}

extension DurableState.Seat {
    /// The connections that have the session or wait for it.
    fileprivate var attachments: [any DurableAttachment] {
        var present: [any DurableAttachment] = []
        switch phase {
        case .vacant, .closing: break
        case .opening(let applicant): present.append(applicant.attachment)
        case .occupied(let attachment): present.append(attachment)
        }
        if let waiting { present.append(waiting.attachment) }
        return present
    }
}

extension TopicText {
    /// Whether this is a subscription, ordinary or shared, whose filter equals a topic. Nothing is parsed, because a
    /// session may have thousands of subscriptions.
    func subscribes(exactlyTo topic: TopicName) -> Bool {
        let bytes = rawValue.utf8
        guard SharedFilter.isShared(rawValue) else { return rawValue.hasBytes(of: topic.rawValue) }
        let rest = bytes.dropFirst(SharedFilter.prefix.utf8.count)
        guard let slash = rest.firstIndex(of: UInt8(ascii: "/")), slash > rest.startIndex else { return false }
        return rest[rest.index(after: slash)...].elementsEqual(topic.rawValue.utf8)
    }
}
