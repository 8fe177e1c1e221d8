// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A publication for so many sessions that it is stored in parts. Commits of other clients come between the parts;
/// later publications of the same publisher come after them. The last part also retains the publication and records its
/// identifier (QoS 2).
///
/// Each part is chosen when its turn has come, on the committer's thread, so no loop looks at all targets.
///
/// If the server ends or the store fails between two parts, some targets have the publication, and its publisher has no
/// acknowledgement. With QoS 2 from a kept session, the store remembers which targets have it (``PartialPublication``).
///
/// Unchecked Sendable because only the committer's thread calls it after it is submitted (``SessionParts``).
final class DurableFanOut: SessionParts, @unchecked Sendable {
    /// The sessions and groups that one part looks at, and the most rows that it writes for targets: some 2 ms.
    static let partRows = 512

    private let sessions: DurableSessions
    private let publication: StoredPublication
    private let publisher: DurableSessionID?
    private let receivedID: UInt16?
    private let retains: Bool
    private var walk: DurableSessions.Walk
    /// The part that is being stored.
    private var part = DurableSessions.Chosen()
    /// With a received identifier: who has it.
    private var stored: PartialPublication?
    /// Whether the store remembers a publication under this identifier.
    private var isRemembered: Bool
    /// Whether ``stored`` is of this publication.
    private var isIdentified = false
    private(set) var live: [SharedGroups.Choice] = []
    /// The targets of shared subscriptions that could not take it.
    private(set) var lost: [PublicationTarget] = []

    /// - Parameters:
    ///   - received: the publisher's session and its identifier, with QoS 2.
    ///   - known: what is remembered under that identifier, of this publication or another one.
    init(
        _ publication: StoredPublication,
        to targets: [DurableTarget],
        of sessions: DurableSessions,
        from publisher: DurableSessionID?,
        received: ReceivedMark?,
        known: PartialPublication?,
        retains: Bool
    ) {
        self.sessions = sessions
        self.publication = publication
        self.publisher = publisher
        self.retains = retains
        receivedID = received?.id
        walk = DurableSessions.Walk(targets)
        stored = known
        isRemembered = known != nil
    }

    /// Whether a publication to these targets is stored in parts.
    static func isNeeded(for targets: [DurableTarget]) -> Bool {
        var count = targets.count
        for target in targets {
            guard count <= partRows else { return true }
            if case .crowd(let crowd) = target { count += crowd.members.count - 1 }
        }
        return count > partRows
    }

    func next() -> SessionOperation {
        if receivedID != nil, !isIdentified {
            isIdentified = true
            let content = PartialPublication.content(of: publication)
            if stored?.content != content { stored = PartialPublication(content: content) }
        }
        part = sessions.choose(&walk, most: Self.partRows, for: publication, from: publisher, except: stored)
        return .publish(
            publication,
            targets: part.targets,
            received: mark,
            retains: retains && walk.isAtEnd
        )
    }

    private var mark: ReceivedMark? {
        guard let publisher, let receivedID, let stored else { return nil }
        let extent: ReceivedMark.Extent
        switch (walk.isAtEnd, isRemembered) {
        case (true, true): extent = .last
        case (true, false): extent = .whole
        case (false, _): extent = .part(number: stored.parts, content: stored.content)
        }
        return ReceivedMark(session: publisher, id: receivedID, extent: extent)
    }

    func committed(_ outcome: SessionOutcome) -> Bool {
        if case .published(let seqs) = outcome {
            stored?.add(PartialPublication.settled(part.targets, seqs))
            lost += part.lost(seqs)
        }
        isRemembered = isRemembered || receivedID != nil
        live += part.live
        part = DurableSessions.Chosen()
        return !walk.isAtEnd
    }

    /// A part could not be stored.
    ///
    /// - Returns: who has it and must not get it again; nil if nobody.
    func failed() -> PartialPublication? {
        part.giveBack()
        part = DurableSessions.Chosen()
        return isRemembered ? stored : nil
    }
}

extension DurableSessions {
    /// Stores a publication part by part.
    func fanOut(
        _ publication: StoredPublication,
        _ fanOut: DurableFanOut,
        received: ReceivedMark?,
        retains: Bool,
        source: CommitSource,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        let bytes = 512 + publication.weight + DurableFanOut.partRows * 64
        committer.submit(fanOut, bytes: bytes, rows: DurableFanOut.partRows, of: source) { [self] result in
            if retains { retained.finish(publication, isStored: result.isSuccess) }
            switch result {
            case .success:
                hand(publication, to: fanOut.live)
                let lost = fanOut.lost[...]
                publish(publication, insteadOf: lost, isReceived: received != nil, completion: completion)
            case .failure(let error):
                if let partial = fanOut.failed(), let received {
                    shared.state.withLock { $0.records[received.session]?.partial[received.id] = partial }
                }
                completion(.failure(error))
            }
        }
    }

    /// Whether a QoS 2 publication that failed is stored for some of its targets. Its publisher must repeat it under
    /// the same identifier; then only the other targets get it. Under another identifier it would count as another
    /// publication.
    package func isPartlyStored(_ publisher: DurableSessionID, _ receivedID: UInt16) -> Bool {
        shared.state.withLock { $0.records[publisher]?.partial[receivedID] != nil }
    }

    /// The number of queues that a publication would be written to, which determines its price. The queues of an owner
    /// do not count if they are full.
    package func reach(of publication: StoredPublication, to targets: [DurableTarget]) -> Int {
        targets.reduce(0) { sum, target in
            switch target {
            case .session, .group: sum + 1
            case .crowd(let crowd): sum + crowd.reach(of: publication, in: store.queues)
            }
        }
    }
}
