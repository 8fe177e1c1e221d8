// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import NIOCore

/// Publishes for the API. Numbers pushes per topic in the order of publishing; the numbers begin anew with each start
/// of the server, with a new epoch.
///
/// State: an actor's.
actor TopicPublisher {
    /// The number of counted topics; beyond it, all begin anew with another epoch.
    static let maxTopics = 100_000

    static let congested = HermesError(
        .overloaded,
        "The server is too far behind to publish; try again shortly.",
        retryAfter: .seconds(1)
    )

    private let plane: TopicPlane
    private let durable: DurableSessions
    private let time: any TimeSource
    private var numbers = TopicNumbers(maxTopics: TopicPublisher.maxTopics)

    init(plane: TopicPlane, durable: DurableSessions, time: any TimeSource) {
        self.plane = plane
        self.durable = durable
        self.time = time
    }

    /// Publishes a push with the topic's next number, in its payload and in the user properties `epoch` and `seq`. A
    /// room's topic has no numbers here: those belong to the notices to the room.
    ///
    /// - Throws: `.overloaded`, `.storageUnavailable`.
    func push(_ push: Push, expires: Bool, to topic: TopicName, isJSON: Bool, retains: Bool) async throws(HermesError) {
        let place = topic.room == nil ? numbers.next(on: topic) : nil
        let payload = try TopicPushTranslation.payload(
            of: push,
            expires: expires,
            topic: topic,
            seq: place?.seq ?? 0,
            epoch: place?.epoch ?? 0,
            isJSON: isJSON
        )
        let details = PublicationDetails(
            expiresAt: expires ? push.expiresAt : nil,
            payloadIsUTF8: isJSON,
            contentType: isJSON ? "application/json" : "application/x-protobuf",
            userProperties: place.map(PublicationDetails.properties) ?? []
        )
        let publication = Publication(
            topic: topic,
            payload: payload,
            kind: Publication.plainKind,
            qos: .atLeastOnce,
            retain: retains,
            details: details
        )
        try await publish(publication, place)
    }

    /// Publishes a notice to a room, with the room's next number.
    ///
    /// - Throws: `.tooLarge`, `.overloaded`.
    func announce(_ text: String, in room: RoomName) throws(HermesError) {
        let place = numbers.next(on: room.topic)
        let properties = PublicationDetails.properties(of: place)
        let notice = try RoomAnnouncement.notice(text, to: room, at: time.now(), userProperties: properties)
        guard plane.publish(notice) else { throw Self.congested }
        numbers.used(place, on: room.topic)
    }

    /// Publishes to connected subscribers; returns once it is stored for absent ones.
    ///
    /// - Throws: `.unsupported` if it is retained and retained messages are off, `.overloaded`, `.storageUnavailable`.
    func publish(_ publication: Publication) async throws(HermesError) { try await publish(publication, nil) }

    private func publish(_ publication: Publication, _ place: TopicNumbers.Place?) async throws(HermesError) {
        guard !publication.retain || durable.retained.isAvailable else {
            throw HermesError(.unsupported, "Retained messages are switched off here (mqtt.retained.enabled).")
        }
        // No suspension before both are under way, so that all subscribers get one order; and none since the place was
        // looked up, so that nobody else has it.
        let targets = publication.qos == .atMostOnce ? [] : durable.targets(of: publication.topic)
        guard plane.publish(publication.deciding(DecidedShares(targets))) else { throw Self.congested }
        // What nobody got takes no number.
        if let place { numbers.used(place, on: publication.topic) }
        guard publication.retain || !targets.isEmpty else { return }
        let stored = StoredPublication(publication, publishedAt: time.now())
        let result: Result<Void, HermesError> = await withCheckedContinuation { continuation in
            durable.publish(stored, targets: targets, retains: publication.retain) {
                continuation.resume(returning: $0)
            }
        }
        try result.get()
    }
}
