// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import NIOCore

/// Publishes for the API. Numbers pushes per topic in the order they are published; the numbers begin anew with each
/// start of the server, which the epoch tells.
///
/// State: an actor's.
actor TopicPublisher {
    /// So many topics are counted; beyond that all begin anew with another epoch.
    static let maxTopics = 100_000

    static let congested = HermesError(
        .overloaded,
        "The server is too far behind to publish; try again shortly.",
        retryAfter: .seconds(1)
    )

    private let plane: TopicPlane
    private let durable: DurableSessions
    private let time: any TimeSource
    private var epoch: UInt64
    private var seqs: [TopicName: UInt64] = [:]

    init(plane: TopicPlane, durable: DurableSessions, time: any TimeSource) {
        self.plane = plane
        self.durable = durable
        self.time = time
        epoch = UInt64(max(1, time.now().rawValue))
    }

    /// Publishes a push with the topic's next number, in its payload and in the user properties `epoch` and `seq`.
    ///
    /// - Throws: `.overloaded`, `.storageUnavailable`.
    func push(_ push: Push, expires: Bool, to topic: TopicName, isJSON: Bool, retains: Bool) async throws(HermesError) {
        if seqs.count >= Self.maxTopics, seqs[topic] == nil {
            seqs = [:]
            epoch += 1
        }
        let seq = (seqs[topic] ?? 0) + 1
        let payload = try TopicPushTranslation.payload(
            of: push,
            expires: expires,
            topic: topic,
            seq: seq,
            epoch: epoch,
            isJSON: isJSON
        )
        let details = PublicationDetails(
            expiresAt: expires ? push.expiresAt : nil,
            payloadIsUTF8: isJSON,
            contentType: isJSON ? "application/json" : "application/x-protobuf",
            userProperties: [("epoch", String(epoch)), ("seq", String(seq))]
        )
        let publication = Publication(
            topic: topic,
            payload: payload,
            kind: Publication.plainKind,
            qos: .atLeastOnce,
            retain: retains,
            details: details
        )
        seqs[topic] = seq
        try await publish(publication)
    }

    /// Publishes to those who are connected; returns once it is stored for those who are not.
    ///
    /// - Throws: `.overloaded`, `.storageUnavailable`.
    func publish(_ publication: Publication) async throws(HermesError) {
        // No suspension before both are under way, so that all subscribers get one order.
        guard plane.publish(publication) else { throw Self.congested }
        let targets = publication.qos == .atMostOnce ? [] : durable.targets(of: publication.topic)
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
