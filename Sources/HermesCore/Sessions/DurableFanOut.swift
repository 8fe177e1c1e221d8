// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A publication that is stored in parts, for example because it is for very many sessions. Other clients' operations
/// are committed between the parts. Later publications of the same publisher are committed after all parts. The last
/// part also retains the publication, and records the packet identifier of a QoS 2 publication.
///
/// If the chosen member of a shared subscription does not accept the publication, another member must get it. If a kept
/// session publishes with QoS 2, this happens in a further part. So the packet identifier is recorded only when all
/// targets have the publication.
///
/// The committer's thread chooses the targets of each part just before it stores the part. So no event loop has to look
/// at all targets.
///
/// If the server stops or the store fails between two parts, some targets have the publication, and its publisher has
/// no acknowledgement. If a kept session publishes with QoS 2, the store remembers which targets have the publication
/// (``PartialPublication``).
///
/// Unchecked Sendable, because only the committer's thread uses a fan-out after its submission (``SessionParts``).
final class DurableFanOut: SessionParts, @unchecked Sendable {
    /// The largest number of sessions and groups that one part looks at. One part also writes at most this number of
    /// rows for targets. A part takes about 2 ms.
    static let partRows = 512

    private let sessions: DurableSessions
    private let request: PublishRequest
    /// The largest number of rows of a part.
    let rows: Int
    private var walk: DurableSessions.Walk
    /// The part that is being stored.
    private var part = DurableSessions.Chosen()
    /// The targets that have the publication. They are recorded only if there is a ``receivedID``.
    private var stored: PartialPublication?
    /// Whether the store remembers targets under the packet identifier of this publication.
    private var isRemembered: Bool
    /// Whether it was checked that ``stored`` belongs to this publication, and not to another publication under the
    /// same packet identifier.
    private var isIdentified = false
    private(set) var live: [SharedGroups.Choice] = []
    /// The members of shared subscriptions that could not accept the publication. If there is a ``receivedID``, other
    /// members are chosen instead of them in a further part.
    private(set) var lost: [PublicationTarget] = []
    /// The members that could not accept the publication, by the text of their shared subscription. There are none
    /// without a ``receivedID``.
    private var tried: [TopicText: Set<DurableSessionID>]
    /// Whether the part that is being stored is the last part.
    private var isLast = false
    /// Whether at least one target has the publication.
    private(set) var isPartlyStored = false

    /// - Parameters:
    ///   - known: the targets that the store remembers under the publication's packet identifier, whether for this
    ///     publication or for another one.
    ///   - tried: the members that could not accept the publication, by the text of their shared subscription.
    init(
        _ request: PublishRequest,
        of sessions: DurableSessions,
        known: PartialPublication?,
        tried: [TopicText: Set<DurableSessionID>] = [:]
    ) {
        self.sessions = sessions
        self.request = request
        rows = min(Self.rows(request.targets), Self.partRows)
        walk = DurableSessions.Walk(request.targets)
        stored = known
        self.tried = tried
        isRemembered = known != nil
    }

    /// Creates the remaining parts of a fan-out. Members of shared subscriptions could not accept the publication in
    /// the first part.
    ///
    /// - Parameters:
    ///   - part: the first part.
    ///   - seqs: for each target of the first part, the publication's seq in the target's queue; 0 if it was not
    ///     queued.
    convenience init(
        _ request: PublishRequest,
        of sessions: DurableSessions,
        after part: DurableSessions.Chosen,
        _ seqs: [UInt64]
    ) {
        var known = PartialPublication(content: PartialPublication.content(of: request.publication))
        known.add(PartialPublication.settled(part.targets, seqs))
        var tried: [TopicText: Set<DurableSessionID>] = [:]
        tried.add(part.lost(seqs))
        self.init(request, of: sessions, known: known, tried: tried)
        isPartlyStored = seqs.contains { $0 != 0 }
    }

    /// Whether a publication is stored in parts. This is the case if it has very many targets. It is also the case if
    /// the publication is retained only after members of shared subscriptions have it. In this second case, later
    /// publications of the same publisher must wait, so that none of them is retained before this one.
    static func isNeeded(for request: PublishRequest) -> Bool {
        if rows(request.targets) > partRows { return true }
        guard request.retains, request.received != nil else { return false }
        return request.targets.contains { if case .group = $0 { true } else { false } }
    }

    private var publication: StoredPublication { request.publication }

    /// The publication's packet identifier, which is recorded; nil unless a stored session publishes with QoS 2.
    private var receivedID: UInt16? { request.received?.id }

    /// Returns the number of rows for these targets. Above ``partRows``, the number need not be exact.
    private static func rows(_ targets: [DurableTarget]) -> Int {
        var count = targets.count
        for case .crowd(let crowd) in targets where count <= partRows { count += crowd.members.count - 1 }
        return count
    }

    func next() -> SessionOperation {
        if receivedID != nil, !isIdentified {
            isIdentified = true
            let content = PartialPublication.content(of: publication)
            if stored?.content != content { stored = PartialPublication(content: content) }
        }
        if walk.isAtEnd {
            let some = lost.prefix(Self.partRows)
            lost.removeFirst(some.count)
            part = sessions.choose(insteadOf: some, for: publication, tried: tried)
        } else {
            part = sessions.choose(
                &walk,
                most: Self.partRows,
                for: publication,
                from: request.publisher,
                except: stored,
                tried: tried
            )
        }
        // If there is a packet identifier, further parts follow until other members have the publication instead of the
        // members that could not accept it.
        isLast = walk.isAtEnd && (receivedID == nil || lost.isEmpty)
        return .publish(
            publication,
            targets: part.targets,
            received: mark,
            retains: request.retains && isLast
        )
    }

    private var mark: ReceivedMark? {
        guard let received = request.received, let stored else { return nil }
        let extent: ReceivedMark.Extent
        switch (isLast, isRemembered) {
        case (true, _) where !part.loads.isEmpty: extent = .rest(number: stored.parts, content: stored.content)
        case (true, true): extent = .last
        case (true, false): extent = .whole
        case (false, _): extent = .part(number: stored.parts, content: stored.content)
        }
        return ReceivedMark(session: received.session, id: received.id, extent: extent)
    }

    func committed(_ outcome: SessionOutcome) -> Bool {
        if case .published(let seqs) = outcome {
            stored?.add(PartialPublication.settled(part.targets, seqs))
            isPartlyStored = isPartlyStored || seqs.contains { $0 != 0 }
            let refused = part.lost(seqs)
            lost += refused
            if receivedID != nil, !refused.isEmpty {
                tried.add(refused)
                isLast = false
            }
        }
        isRemembered = isRemembered || receivedID != nil
        live += part.live
        part = DurableSessions.Chosen()
        return !isLast
    }

    /// Undoes the choice of targets for a part that could not be stored.
    ///
    /// - Returns: the targets that have the publication and must not get it again; nil if the store remembers none.
    func failed() -> PartialPublication? {
        part.giveBack()
        part = DurableSessions.Chosen()
        return isRemembered ? stored : nil
    }
}

/// Notes whether a publication that could not be stored for all its targets has reached some of them. Thread-safe.
///
/// State: an atomic flag.
package final class PublicationReach: Sendable {
    private let hasReached = Atomic(false)

    package init() {}

    /// Whether a publication that has failed has reached at least one target, or is retained.
    package var isPartial: Bool { hasReached.load(ordering: .acquiring) }

    func note(if hasReached: Bool) {
        if hasReached { self.hasReached.store(true, ordering: .releasing) }
    }
}

extension [TopicText: Set<DurableSessionID>] {
    /// Adds members that could not accept a publication, by the text of their shared subscription.
    mutating func add(_ refused: [PublicationTarget]) {
        for target in refused { self[TopicText(target.share ?? ""), default: []].insert(target.session) }
    }
}

extension DurableSessions {
    /// Stores a publication part by part.
    func fanOut(_ request: PublishRequest, _ fanOut: DurableFanOut) {
        let publication = request.publication
        let bytes = 512 + publication.weight + fanOut.rows * 64
        committer.submit(fanOut, bytes: bytes, rows: fanOut.rows, of: request.source) { [self] result in
            if request.retains { retained.finish(publication, isStored: result.isSuccess) }
            let reach = request.reach
            switch result {
            case .success:
                hand(publication, to: fanOut.live)
                reach?.note(if: request.retains || fanOut.isPartlyStored || !fanOut.live.isEmpty)
                publish(publication, insteadOf: fanOut.lost[...], reach: reach, completion: request.completion)
            case .failure(let error):
                reach?.note(if: fanOut.isPartlyStored)
                if let partial = fanOut.failed(), let received = request.received {
                    shared.state.withLock { $0.records[received.session]?.partial[received.id] = partial }
                }
                request.completion(.failure(error))
            }
        }
    }

    /// Whether a QoS 2 publication that failed is stored for some of its targets. The publisher must repeat the
    /// publication under the same packet identifier; then only the other targets get it. Under another packet
    /// identifier, it would count as another publication.
    package func isPartlyStored(_ publisher: DurableSessionID, _ receivedID: UInt16) -> Bool {
        shared.state.withLock { $0.records[publisher]?.partial[receivedID] != nil }
    }

    /// Returns the number of queues that a publication would be written to. This number determines the publication's
    /// price. If an owner has many sessions, the result includes only as many of their queues as the owner's share has
    /// room for.
    package func reach(of publication: StoredPublication, to targets: [DurableTarget]) -> Int {
        targets.reduce(0) { sum, target in
            switch target {
            case .session, .group: sum + 1
            case .crowd(let crowd): sum + crowd.reach(of: publication, in: store.queues)
            }
        }
    }
}
