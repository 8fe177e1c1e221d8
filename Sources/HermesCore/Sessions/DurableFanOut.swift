// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A publication that is stored in parts, for example because it is for very many sessions. Other clients' operations
/// are committed between the parts; later publications of the same publisher are committed after all parts. The last
/// part also retains the publication and records its identifier (QoS 2).
///
/// If the chosen member of a shared subscription does not take the publication, another member must get it. With QoS 2
/// from a kept session this happens in a further part, so that the identifier is recorded only when all targets have
/// the publication.
///
/// The committer's thread chooses the targets of each part just before it stores the part. So no event loop looks at
/// all targets.
///
/// If the server ends or the store fails between two parts, some targets have the publication, and its publisher has no
/// acknowledgement. With QoS 2 from a kept session, the store remembers which targets have it (``PartialPublication``).
///
/// Unchecked Sendable because only the committer's thread calls it after it is submitted (``SessionParts``).
final class DurableFanOut: SessionParts, @unchecked Sendable {
    /// The most sessions and groups that one part looks at, and the most rows that it writes for targets. A part takes
    /// some 2 ms.
    static let partRows = 512

    private let sessions: DurableSessions
    private let request: PublishRequest
    /// The most rows of a part.
    let rows: Int
    private var walk: DurableSessions.Walk
    /// The part that is being stored.
    private var part = DurableSessions.Chosen()
    /// If the publication has a packet identifier to be recorded (``receivedID``): the targets that have the
    /// publication.
    private var stored: PartialPublication?
    /// Whether the store remembers the targets of a publication under this packet identifier.
    private var isRemembered: Bool
    /// Whether it was checked that ``stored`` belongs to this publication, and not to another publication under the
    /// same packet identifier.
    private var isIdentified = false
    private(set) var live: [SharedGroups.Choice] = []
    /// The members of shared subscriptions that could not take the publication. If there is a ``receivedID``, other
    /// members are chosen instead of them in a further part.
    private(set) var lost: [PublicationTarget] = []
    /// If there is a ``receivedID``: the members that could not take the publication, by the text of their shared
    /// subscription.
    private var tried: [TopicText: Set<DurableSessionID>]
    /// Whether the part that is being stored is the last.
    private var isLast = false
    /// Whether a target has the publication.
    private(set) var isPartlyStored = false

    /// - Parameters:
    ///   - known: the targets that the store remembers under the publication's packet identifier, whether for this
    ///     publication or for another one.
    ///   - tried: the members that could not take the publication, by the text of their shared subscription.
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

    /// Creates the remaining parts of a fan-out. In its first part, members of shared subscriptions could not take the
    /// publication.
    ///
    /// - Parameters:
    ///   - part: the first part.
    ///   - seqs: for each of its targets, the publication's seq in that queue; 0: it was not queued.
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

    /// Whether a publication is stored in parts: because it has so many targets, or because it is retained only after
    /// members of shared subscriptions have it. In the second case, later publications of the same publisher must wait,
    /// so that none of them is retained before this one.
    static func isNeeded(for request: PublishRequest) -> Bool {
        if rows(request.targets) > partRows { return true }
        guard request.retains, request.received != nil else { return false }
        return request.targets.contains { if case .group = $0 { true } else { false } }
    }

    private var publication: StoredPublication { request.publication }

    /// With QoS 2 from a stored session: the publication's packet identifier, which is recorded.
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
        // With a packet identifier, further parts follow until other members have the publication instead of those that
        // could not take it.
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
/// State: an atomic.
package final class PublicationReach: Sendable {
    private let hasReached = Atomic(false)

    package init() {}

    /// After the publication has failed: whether a target has it, or whether it is retained.
    package var isPartial: Bool { hasReached.load(ordering: .acquiring) }

    func note(if hasReached: Bool) {
        if hasReached { self.hasReached.store(true, ordering: .releasing) }
    }
}

extension [TopicText: Set<DurableSessionID>] {
    /// Adds members that could not take a publication, by the text of their shared subscription.
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

    /// Whether a QoS 2 publication that failed is stored for some of its targets. Its publisher must repeat it under
    /// the same identifier; then only the other targets get it. Under another identifier it would count as another
    /// publication.
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
