// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A publication that ``DurableSessions`` stores, in one part or in several.
struct PublishRequest: Sendable {
    let publication: StoredPublication
    let targets: [DurableTarget]
    /// The publisher's own durable session; nil if there is none.
    let publisher: DurableSessionID?
    /// The publisher's session and the packet identifier, which is recorded; nil unless a stored session publishes with
    /// QoS 2.
    let received: ReceivedMark?
    let retains: Bool
    /// The publisher, who pays for the publication.
    let source: CommitSource
    let reach: PublicationReach?
    let completion: @Sendable (Result<Void, HermesError>) -> Void

    /// Returns the mark to store together with all chosen targets.
    func mark(with chosen: DurableSessions.Chosen) -> ReceivedMark? {
        guard let received, !chosen.loads.isEmpty else { return received }
        // It is possible that a chosen member of a shared subscription does not accept the publication.
        let rest = ReceivedMark.Extent.rest(number: 0, content: PartialPublication.content(of: publication))
        return ReceivedMark(session: received.session, id: received.id, extent: rest)
    }
}
