// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import NIOCore

/// Publishes for the API, and numbers the pushes to each topic in the order of publishing. At each start of the server,
/// the numbers begin anew with a new epoch. In a cluster, one node numbers all pushes to a topic.
///
/// State: isolated to the actor.
actor TopicPublisher {
    /// The largest number of topics whose pushes are numbered. If there are more, the numbers of all topics begin anew
    /// with another epoch.
    static let maxTopics = 100_000

    static let congested = HermesError(
        .overloaded,
        "The server is overloaded and cannot publish; try again shortly.",
        retryAfter: .seconds(1)
    )

    private let plane: TopicPlane
    private let durable: DurableSessions
    private let time: any TimeSource
    private let cluster: ClusterMember?
    private var numbers = TopicNumbers(maxTopics: TopicPublisher.maxTopics)
    /// Publications to the same topic take turns, so that all subscribers of the topic get them in the same order.
    private let turns = TaskTurns<TopicName>()

    init(plane: TopicPlane, durable: DurableSessions, time: any TimeSource, cluster: ClusterMember?) {
        self.plane = plane
        self.durable = durable
        self.time = time
        self.cluster = cluster
    }

    /// Publishes with the topic's next number, on the node that numbers the topic.
    ///
    /// - Returns: whether the publication is retained; nil if the request did not ask to retain it.
    /// - Throws: `.overloaded`, `.storageUnavailable`; `.tooLarge`, `.invalidArgument` if the clients of the topic
    ///   cannot get the publication. After `.storageUnavailable` and `.shuttingDown`, some kept sessions may have the
    ///   publication. Its number is then not used again.
    func publish(_ publication: NumberedPublication) async throws(HermesError) -> Bool? {
        if let result = await cluster?.publishElsewhere(publication) { return try result.get() }
        return try await publishHere(publication)
    }

    /// Publishes with the topic's next number on this node.
    func publishHere(_ publication: NumberedPublication) async throws(HermesError) -> Bool? {
        switch publication {
        case .push(let push): return try await self.push(push)
        case .notice(let text, let room):
            try announce(text, in: room)
            return nil
        }
    }

    /// Publishes a push, with its number in the payload and in the user properties `epoch` and `seq`. A push to a
    /// room's topic gets no number here, because a room's numbers belong to its notices.
    private func push(_ request: TopicPush) async throws(HermesError) -> Bool? {
        let topic = request.topic
        await turns.begin(topic)
        defer { turns.pass(topic) }
        let place = topic.room == nil ? numbers.next(on: topic) : nil
        let payload = try TopicPushTranslation.payload(
            of: request.push,
            expires: request.expires,
            topic: topic,
            seq: place?.seq ?? 0,
            epoch: place?.epoch ?? 0,
            isJSON: request.isJSON
        )
        try ApplicationTopics.check(topic, payload)
        let details = PublicationDetails(
            expiresAt: request.expires ? request.push.expiresAt : nil,
            payloadIsUTF8: request.isJSON,
            contentType: request.isJSON ? "application/json" : "application/x-protobuf",
            userProperties: place.map(PublicationDetails.properties) ?? []
        )
        let publication = Publication(
            topic: topic,
            payload: payload,
            kind: Publication.plainKind,
            qos: .atLeastOnce,
            retain: request.retains,
            details: details
        )
        let reach = PublicationReach()
        let isRetained: Bool?
        do throws(HermesError) {
            isRetained = try await deliver(publication, reach)
        } catch {
            // A push that reached nobody uses no number. If the push reached somebody, no other push may have its
            // number.
            if let place, reach.isPartial { numbers.used(place, on: topic) }
            throw error
        }
        if let place { numbers.used(place, on: topic) }
        return isRetained
    }

    private func announce(_ text: String, in room: RoomName) throws(HermesError) {
        let place = numbers.next(on: room.topic)
        let notice = try RoomAnnouncement.notice(text, to: room, at: time.now(), place: place)
        guard plane.publish(notice) else { throw Self.congested }
        APICore.messageCame()
        numbers.used(place, on: room.topic)
    }

    /// Publishes. Returns when the publication is stored for disconnected subscribers, and is on its way to connected
    /// subscribers.
    ///
    /// - Returns: whether the publication is retained; false if there was no room for it. Nil if the request did not
    ///   ask to retain it, or if the payload is empty: an empty publication only removes the retained publication.
    /// - Throws: `.unsupported` if it is to be retained and retaining is switched off; `.overloaded`;
    ///   `.storageUnavailable`. If this throws, nobody gets the publication, except the kept sessions for which it was
    ///   stored before the store failed (``PublicationReach``).
    func publish(_ publication: Publication) async throws(HermesError) -> Bool? {
        await turns.begin(publication.topic)
        defer { turns.pass(publication.topic) }
        return try await deliver(publication)
    }

    /// Removes the retained publication of a topic, after all earlier publications to the topic.
    func removeRetained(of topic: TopicName) async throws(HermesError) {
        await turns.begin(topic)
        defer { turns.pass(topic) }
        try await store(.removal(of: topic, at: time.now()), [], retains: true)
    }

    /// Publishes like a PUBLISH of MQTT: a publication that must be stored goes to connected subscribers after the
    /// commit.
    ///
    /// - Parameter reach: notes whether somebody has the publication although this throws.
    /// - Returns: as ``publish(_:)``.
    private func deliver(
        _ publication: Publication,
        _ reach: PublicationReach? = nil
    ) async throws(HermesError) -> Bool? {
        guard !publication.retain || durable.retained.isAvailable else {
            throw HermesError(.unsupported, "Retained messages are switched off here (mqtt.retained.enabled).")
        }
        guard !plane.isCongested else { throw Self.congested }
        APICore.messageCame()
        let targets = publication.qos == .atMostOnce ? [] : durable.targets(of: publication.topic)
        var isRetained = publication.retain
        if publication.retain || !targets.isEmpty {
            let stored = StoredPublication(publication, publishedAt: time.now())
            do throws(HermesError) {
                try await store(stored, targets, retains: publication.retain, reach)
            } catch {
                guard publication.retain, error.code == .quotaExceeded else { throw error }
                // Nothing was stored, because there is no room to retain the publication. The topic's subscribers still
                // get it.
                isRetained = false
                if !targets.isEmpty { try await store(stored, targets, retains: false, reach) }
            }
        }
        plane.publish(stored: publication.deciding(DecidedShares(targets)))
        // An empty publication removes the retained publication.
        return publication.retain && publication.payload.readableBytes > 0 ? isRetained : nil
    }

    private func store(
        _ publication: StoredPublication,
        _ targets: [DurableTarget],
        retains: Bool,
        _ reach: PublicationReach? = nil
    ) async throws(HermesError) {
        let result: Result<Void, HermesError> = await withCheckedContinuation { continuation in
            durable.publish(publication, targets: targets, retains: retains, mustRetain: retains, reach: reach) {
                continuation.resume(returning: $0)
            }
        }
        try result.get()
    }
}
