// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Shared subscriptions that have durable sessions as members (kept members). These functions choose a member for each
/// publication. They choose another member if the first one cannot accept the publication, or leaves.
extension DurableSessions {
    /// The choice for a publication, or for some of its targets. It contains the queues that the publication goes to,
    /// and the connected members of shared subscriptions that get the publication without a queue.
    struct Chosen: Sendable {
        var targets: [PublicationTarget] = []
        var live: [SharedGroups.Choice] = []
        /// The loads of the chosen kept members. Each load counts the choice until ``DurableState`` applies the commit,
        /// or until the commit fails.
        var loads: [DurableLoad] = []

        /// Subtracts the choice from the loads of the chosen members, because the commit has failed.
        func giveBack() {
            for load in loads { load.chosen.subtract(1, ordering: .relaxed) }
        }

        /// Returns the members of shared subscriptions that did not accept the publication, because they are gone or
        /// their queues are full. Other members must get the publication instead.
        ///
        /// - Parameter seqs: for each target, the publication's seq in the target's queue; 0 if it was not queued.
        func lost(_ seqs: [UInt64]) -> [PublicationTarget] {
            guard !loads.isEmpty else { return [] }
            return zip(targets, seqs).filter { $0.share != nil && $1 == 0 }.map(\.0)
        }
    }

    /// A position among the targets of a publication. The targets are looked at in order, some at a time.
    struct Walk: Sendable {
        fileprivate let targets: [DurableTarget]
        fileprivate var next = 0
        fileprivate var crowd: DurableCrowd.Walk?

        init(_ targets: [DurableTarget]) { self.targets = targets }

        var isAtEnd: Bool { next == targets.count }
    }

    /// Chooses the next queues for a publication.
    ///
    /// - Parameters:
    ///   - most: the largest number of sessions and groups to look at.
    ///   - known: the targets that have the publication already.
    ///   - tried: the members that could not accept the publication, by the text of their shared subscription.
    func choose(
        _ walk: inout Walk,
        most: Int = .max,
        for publication: StoredPublication,
        from publisher: DurableSessionID?,
        except known: PartialPublication? = nil,
        tried: [TopicText: Set<DurableSessionID>] = [:]
    ) -> Chosen {
        var chosen = Chosen()
        var dropped = 0
        var looked = 0
        let sessions = known?.sessions ?? []
        while looked < most, !walk.isAtEnd {
            switch walk.targets[walk.next] {
            case .session(let member):
                looked += 1
                walk.next += 1
                guard !sessions.contains(member.session), let target = member.target(of: publication, from: publisher)
                else { continue }
                chosen.targets.append(target)
            case .crowd(let crowd):
                var members = walk.crowd ?? crowd.begin(for: publication, in: store.queues, dropped: &dropped)
                let room = most - looked
                let count =
                    members?
                    .choose(
                        for: publication,
                        from: publisher,
                        in: store.queues,
                        most: room,
                        except: sessions,
                        into: &chosen.targets
                    ) ?? 0
                looked += max(1, count)
                guard count < room else {
                    walk.crowd = members
                    continue
                }
                dropped += members?.dropped ?? 0
                walk.crowd = nil
                walk.next += 1
            case .group(let group):
                looked += 1
                walk.next += 1
                guard known?.shares.contains(TopicText(group.share)) != true else { continue }
                let refused = tried.isEmpty ? nil : tried[TopicText(group.share)]
                let exclusions = refused.map { DurableGroup.Exclusions(sessions: $0, ended: true) } ?? .init()
                if choose(group, for: publication, excluding: exclusions, &chosen) { dropped += 1 }
            }
        }
        if dropped > 0 { shared.state.withLock { [dropped] in $0.dropped += UInt64(dropped) } }
        return chosen
    }

    /// - Returns: true if no member was chosen because the queues of all members that could be chosen are full.
    @discardableResult
    private func choose(
        _ group: DurableGroup,
        for publication: StoredPublication,
        excluding: DurableGroup.Exclusions,
        _ chosen: inout Chosen
    ) -> Bool {
        let live = shared.live.withLock { $0 }
        switch group.choose(for: publication, live: live, in: store.queues, excluding: excluding) {
        case nil: break
        case .full: return true
        case .live(let choice): chosen.live.append(choice)
        case .kept(let member):
            guard let target = member.target(of: publication, from: nil, share: group.share) else { break }
            member.load.chosen.add(1, ordering: .relaxed)
            chosen.loads.append(member.load)
            chosen.targets.append(target)
        }
        return false
    }

    func hand(_ publication: StoredPublication, to live: [SharedGroups.Choice]) {
        guard !live.isEmpty, let groups = shared.live.withLock({ $0 }) else { return }
        for choice in live { groups.hand(Publication(publication), to: choice) }
    }

    /// Returns the group of a shared subscription, given its text. If the subscription has no kept members, the group
    /// is empty, and only connected members can be chosen.
    private func group(_ share: String) -> DurableGroup? {
        if let group = keptGroup(share) { return group }
        guard let (name, filter) = DurableIndex.parse(share), let name else { return nil }
        return DurableGroup(name: name, filter: filter, members: [], turn: .init())
    }

    private func keptGroup(_ share: String) -> DurableGroup? {
        shared.state.withLock { state in
            if let known = state.index.knownGroup(share), known.hasMembers { return known }
            guard let group = state.index.group(share, load: { state.load(of: $0) }) else { return nil }
            state.index.keep(group, of: share)
            return group
        }
    }

    // MARK: Choosing again

    /// The largest number of members that are tried for a publication. Each try is a commit. A member whose queue has
    /// too many publications is not chosen. So a try fails only for one of three reasons: the queue has too many
    /// publications by now, the queue has too many bytes, or the session is gone.
    static let maxTries = 32

    /// Chooses other members for a publication, one for each target that could not accept it.
    ///
    /// - Parameter tried: the members that could not accept the publication, by the text of their shared subscription.
    func choose(
        insteadOf lost: some Sequence<PublicationTarget>,
        for publication: StoredPublication,
        tried: [TopicText: Set<DurableSessionID>]
    ) -> Chosen {
        var chosen = Chosen()
        for target in lost {
            guard let share = target.share else { continue }
            let count = chosen.targets.count + chosen.live.count
            let refused = tried[TopicText(share)] ?? []
            if refused.count < Self.maxTries, let group = group(share) {
                choose(group, for: publication, excluding: .init(sessions: refused, ended: true), &chosen)
            }
            if chosen.targets.count + chosen.live.count == count { shared.state.withLock { $0.dropped += 1 } }
        }
        return chosen
    }

    /// Gives a publication to other members of the shared subscriptions whose chosen members could not accept it. The
    /// publication is already stored for all its other targets. The shared subscriptions are handled one by one.
    func publish(
        _ publication: StoredPublication,
        insteadOf lost: ArraySlice<PublicationTarget>,
        tried: Set<DurableSessionID> = [],
        reach: PublicationReach?,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        guard let first = lost.first, let share = first.share else { return completion(.success(())) }
        let tried = tried.union([first.session])
        let chosen = choose(insteadOf: [first], for: publication, tried: [TopicText(share): tried])
        guard let target = chosen.targets.first else {
            hand(publication, to: chosen.live)
            reach?.note(if: !chosen.live.isEmpty)
            return publish(publication, insteadOf: lost.dropFirst(), reach: reach, completion: completion)
        }
        let operation = SessionOperation.publish(publication, targets: [target], received: nil, retains: false)
        committer.submit(operation, isUrgent: true) { [self] result in
            var next = (lost: lost.dropFirst(), tried: Set<DurableSessionID>())
            switch result {
            case .failure(let error):
                chosen.giveBack()
                return completion(.failure(error))
            case .success(.published([0])):
                next = ([target] + next.lost, tried)
            case .success:
                reach?.note(if: true)
            }
            publish(publication, insteadOf: next.lost, tried: next.tried, reach: reach, completion: completion)
        }
    }

    // MARK: Removing sessions

    /// Removes a session. First, its messages from shared subscriptions go to other members: all messages with QoS 1,
    /// and the messages with QoS 2 that were never sent [MQTT-4.8.2-5]. The last of these messages move in the commit
    /// that removes the session.
    ///
    /// - Parameter opening: the number of the session's openings that this process knows (``SessionPlace/opening``). If
    ///   the session was opened again since then, it stays. If the parameter is nil, the session is removed in any
    ///   case.
    func remove(_ id: DurableSessionID, sentUpTo: UInt64, mayHoldShared: Bool, opening: UInt64?) {
        guard mayHoldShared else {
            return committer.submit(.remove(id, opening: opening), isUrgent: true) { [self] result in
                perform(shared.change { $0.removed(id, result.error) })
            }
        }
        _ = handOvers.run { [self] in
            var error: HermesError?
            do throws(HermesError) {
                let condition = opening.map { QueueMove.Condition.opened($0) } ?? .none
                try await handOver(id, after: 0, isEnding: true, condition) {
                    $0.qos == .atLeastOnce || $0.seq > sentUpTo
                }
            } catch let failure {
                // The error `.notFound` means that the session is already gone, because it was deleted with its
                // account.
                error = failure.code == .notFound ? nil : failure
            }
            perform(shared.change { [error] in $0.removed(id, error) })
        }
    }

    /// Redistributes the messages of sessions that have long been without a connection. Other members of the shared
    /// subscriptions get those messages that were never sent. Before that, this function tries again to hand over the
    /// messages that had to wait because the store failed (``DurableState/keepUnplaced(_:_:)``,
    /// ``passOnAgain(now:)``).
    ///
    /// - Parameter most: the number of sessions after which the pass looks for no further sessions. It still handles
    ///   all sessions that it has already found.
    func redistribute(now: Timestamp, isOnDuty: Bool = true, most: Int = DurableSessions.maxRedistributed) {
        for (publication, share) in shared.state.withLock({ $0.takeUnplaced() }) {
            hand(publication, in: share)
        }
        passOnAgain(now: now)
        guard isOnDuty, let delay = settings.sharedRedistribution else { return }
        // Whether each shared subscription has a connected member. This pass checks each shared subscription only once,
        // however many of its members are absent.
        var isOnline: [TopicText: Bool] = [:]
        var count = 0
        let absent = shared.state.withLock { Array($0.absentSharing) }
        for part in absent.slices(of: DurableState.filtersAtOnce) {
            guard count < most else { return }
            let found = shared.state.withLock { state in
                // The time is read under the lock, so that it is later than the ends of all connections in the state.
                let latest = max(now, time.now()).advanced(by: max(delay, DurableState.maxRedistributionPause))
                return state.takeDueForRedistribution(part, now: now, latest: latest)
            }
            var taken: [DurableState.Redistribution] = []
            for due in found where due.subscriptions.contains(where: { hasOnline($0, &isOnline) }) {
                taken.append(due)
            }
            count += taken.count
            shared.state.withLock { [taken] in $0.beginRedistribution(of: taken.lazy.map(\.id)) }
            for due in taken { redistribute(due) }
        }
    }

    private func redistribute(_ due: DurableState.Redistribution) {
        // The sources take turns. So the many long queues of one source delay neither other queues nor the end of
        // sessions.
        let isAccepted = handOvers.run(for: due.payer) { [self] in
            // The next pass retries a failed move.
            let hasMoved = try? await handOver(due.id, after: due.sentUpTo, isEnding: false, .isOffline) { _ in true }
            redistributed(due, hasMoved: hasMoved ?? false)
        }
        if !isAccepted { redistributed(due, hasMoved: false) }
    }

    private func redistributed(_ due: DurableState.Redistribution, hasMoved: Bool) {
        shared.state.withLock { $0.redistributed(due.id, now: time.now(), hasMoved: hasMoved) }
    }

    /// The number of sessions after which ``redistribute(now:isOnDuty:most:)`` ends its pass.
    static let maxRedistributed = 10_000

    /// Whether a shared subscription has a connected member. The caller checks only sessions without a connection, so
    /// the connected member is always another session.
    private func hasOnline(_ share: TopicText, _ known: inout [TopicText: Bool]) -> Bool {
        if let known = known[share] { return known }
        let result = keptGroup(share.rawValue)?.hasOnline(live: shared.live.withLock { $0 }) ?? false
        known[share] = result
        return result
    }

    /// Moves waiting messages of a session to other members of their shared subscriptions, page by page.
    ///
    /// - Parameter isEnding: whether the session ends. If it does not, a message stays in the queue unless a connected
    ///   member accepts and acknowledges it (``DurableGroup/Doubtful``).
    /// - Returns: whether a message has left the queue.
    @discardableResult
    private func handOver(
        _ id: DurableSessionID,
        after seq: UInt64,
        isEnding: Bool,
        _ condition: QueueMove.Condition,
        where isFree: @Sendable (QueuedPublication) -> Bool
    ) async throws(HermesError) -> Bool {
        var after = seq
        var hasMoved = false
        // The members that could not accept a message, by the message's seq.
        var refusals: [UInt64: Set<DurableSessionID>] = [:]
        while true {
            let page = try await store.shared(of: id, after: after, limit: 256, maxBytes: settings.maxPageBytes)
            var chosen = Chosen()
            var items: [QueueMove.Item] = []
            var lost: UInt64 = 0
            let now = time.now()
            // What has expired goes to nobody else [MQTT-3.3.2-5]. It is purged, or deleted with the session.
            for queued in page where isFree(queued) && !queued.publication.hasExpired(at: now) {
                if let item = item(queued, of: id, refusals[queued.seq] ?? [], isEnding: isEnding, &chosen) {
                    items.append(item)
                } else if refusals[queued.seq] != nil {
                    lost += 1
                }
            }
            var stays: [QueueMove.Item] = []
            if !items.isEmpty || isEnding {
                let move = QueueMove(
                    from: id,
                    items,
                    condition: condition,
                    endsBehind: isEnding ? page.upTo : nil
                )
                let (outcomes, hasEnded) = try await commit(move, chosen)
                if outcomes.contains(where: { $0 != .stays && $0 != .gone }) { hasMoved = true }
                if isEnding, lost > 0, !outcomes.contains(.stays) {
                    shared.state.withLock { [lost] in $0.dropped += lost }
                }
                if hasEnded { return hasMoved }
                stays = zip(items, outcomes).filter { $1 == .stays }.map(\.0)
            }
            if !isEnding, page.isEmpty && page.isAtEnd || !stays.isEmpty { return hasMoved }
            for item in stays {
                guard let target = item.target else { continue }
                refusals[item.queued.seq, default: []].insert(target.session)
            }
            // Messages that stay are tried again. The members that could not accept them are excluded then.
            if stays.isEmpty { after = page.upTo }
        }
    }

    /// Chooses another member for a message of a session's queue.
    ///
    /// - Parameter refused: the members that could not accept the message.
    /// - Returns: nil if no other member can get the message.
    func item(
        _ queued: QueuedPublication,
        of id: DurableSessionID,
        _ refused: Set<DurableSessionID>,
        isEnding: Bool,
        isTooLarge: Bool = false,
        _ chosen: inout Chosen
    ) -> QueueMove.Item? {
        guard let share = queued.share, let group = group(share) else { return nil }
        let (targets, live) = (chosen.targets.count, chosen.live.count)
        let exclusions = DurableGroup.Exclusions(
            sessions: refused.union([id]),
            absent: !isEnding,
            ended: true,
            tooSmall: isTooLarge,
            doubtful: isEnding ? .last : .never
        )
        choose(group, for: queued.publication, excluding: exclusions, &chosen)
        if chosen.targets.count > targets { return QueueMove.Item(queued, to: chosen.targets.last) }
        return chosen.live.count > live ? QueueMove.Item(queued, to: nil) : nil
    }

    private func commit(
        _ move: QueueMove,
        _ chosen: Chosen
    ) async throws(HermesError) -> (outcomes: [QueueMove.Outcome], hasEnded: Bool) {
        let result: Result<SessionOutcome, HermesError> = await withCheckedContinuation { continuation in
            committer.submit(.move(move), isUrgent: true) { continuation.resume(returning: $0) }
        }
        return try moved(move, chosen, result)
    }

    /// Continues after the commit of a move.
    ///
    /// - Parameter chosen: the choice of the members for the items.
    func moved(
        _ move: QueueMove,
        _ chosen: Chosen,
        _ result: Result<SessionOutcome, HermesError>
    ) throws(HermesError) -> (outcomes: [QueueMove.Outcome], hasEnded: Bool) {
        guard case .success(.moved(let outcomes, let hasEnded)) = result, outcomes.count == move.items.count else {
            chosen.giveBack()
            _ = try result.get()
            return ([], false)
        }
        if isAmongSeveral { perform(shared.change { $0.changed(move.session) }) }
        var live = chosen.live[...]
        for (item, outcome) in zip(move.items, outcomes) where item.target == nil {
            guard let choice = live.popFirst() else { break }
            if outcome == .takenOut { hand(item.queued.publication, to: [choice]) }
        }
        return (outcomes, hasEnded)
    }
}

extension DurableSessions: SharedKeeper {
    func hand(_ publication: Publication, in key: TopicFilter) -> Bool {
        guard hasSubscriptions else { return false }
        let share = SharedFilter.text(key)
        guard keptGroup(share) != nil else { return false }
        hand(StoredPublication(publication, publishedAt: time.now()), in: share)
        return true
    }

    private func hand(_ publication: StoredPublication, in share: String) {
        guard let group = group(share) else { return }
        publish(publication, targets: [.group(group)]) { [shared] result in
            guard case .failure = result else { return }
            // The publisher has its acknowledgement already, so the message must not be lost. The next housekeeping
            // pass tries again.
            shared.state.withLock { $0.keepUnplaced(publication, share) }
        }
    }
}

extension DurableState {
    /// The largest number of messages that wait because the store failed.
    private static let maxUnplaced = 100_000

    mutating func keepUnplaced(_ publication: StoredPublication, _ share: String) {
        if unplaced.count < Self.maxUnplaced {
            unplaced.append((publication, share))
        } else {
            dropped += 1
        }
    }

    mutating func takeUnplaced() -> [(publication: StoredPublication, share: String)] {
        guard !unplaced.isEmpty else { return [] }
        defer { unplaced = [] }
        return unplaced
    }

    /// A session that has no connection. Its messages from shared subscriptions may go to other members.
    struct Redistribution {
        let id: DurableSessionID
        /// The source that pays for the session.
        let payer: CommitSource
        let sentUpTo: UInt64
        /// The session's shared subscriptions.
        let subscriptions: Set<TopicText>
    }

    /// The time between two redistributions of the same session's messages. Meanwhile, the messages can reach other
    /// members, or another member can connect.
    static let redistributionInterval = Duration.seconds(5)

    /// The longest time between two passes over the queue of the same session. A pass reads the whole queue, also if
    /// nothing can be moved.
    static let maxRedistributionPause = Duration.seconds(60)

    /// Takes note that passes over the queues of these sessions are about to begin. A call to
    /// ``redistributed(_:now:hasMoved:)`` must follow for each of them.
    mutating func beginRedistribution(of ids: some Sequence<DurableSessionID>) {
        for id in ids { records[id]?.isRedistributing = true }
    }

    /// Takes note that a pass over a session's queue has ended. If it has moved nothing, the next pass follows after a
    /// pause that is twice as long as the last one. With several nodes, this is done after each pass. This node does
    /// not know which lengths the clients of other nodes accept, so a message can come back to the queue.
    mutating func redistributed(_ id: DurableSessionID, now: Timestamp, hasMoved: Bool) {
        guard let record = records[id] else { return }
        records[id]?.isRedistributing = false
        guard !hasMoved || node != nil else {
            records[id]?.redistributionPause = Self.redistributionInterval
            return
        }
        let pause = min(record.redistributionPause * 2, Self.maxRedistributionPause)
        records[id]?.redistributionPause = pause
        // If the session has or had a connection meanwhile, its end decides.
        guard let redistributesAt = record.redistributesAt else { return }
        records[id]?.redistributesAt = max(redistributesAt, now.advanced(by: pause))
    }

    /// Whether a session may have messages that were never sent. If there are several nodes, any session may have such
    /// messages, because this node learns late what other nodes have queued.
    private func hasUnsent(_ record: Record) -> Bool {
        node != nil || (record.head > record.sentUpTo && record.load.queued.load(ordering: .relaxed) > 0)
    }

    /// Returns those sessions in `absent` whose messages must be redistributed now. Their next redistribution follows
    /// some seconds later.
    ///
    /// - Parameter latest: the latest possible time of a session's next redistribution. If a session has a later time,
    ///   the clock was set back. Such a session is also returned.
    mutating func takeDueForRedistribution(
        _ absent: ArraySlice<DurableSessionID>,
        now: Timestamp,
        latest: Timestamp
    ) -> [Redistribution] {
        var due: [Redistribution] = []
        for id in absent {
            // The record is read in place, because a copy of it would cost more.
            guard let place = records.index(forKey: id), !records.values[place].sharedSubscriptions.isEmpty else {
                continue
            }
            let record = records.values[place]
            guard record.attachment == nil, !record.hasEnded, !record.isRedistributing,
                let redistributesAt = record.redistributesAt, redistributesAt <= now || redistributesAt > latest,
                hasUnsent(record)
            else { continue }
            records.values[place].redistributesAt = now.advanced(by: Self.redistributionInterval)
            due.append(
                Redistribution(
                    id: id,
                    payer: record.payer,
                    sentUpTo: record.sentUpTo,
                    subscriptions: record.sharedSubscriptions
                )
            )
        }
        return due
    }
}
