// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The load and the permissions of a durable session. Any thread can read them.
final class DurableLoad: Sendable {
    /// The source that pays for the waiting publications.
    let owner: CommitSource
    let isOnline = Atomic(false)
    /// Whether the session has ended. Lists of members may still contain it for a while.
    let hasEnded = Atomic(false)
    /// The number of waiting or unacknowledged publications.
    let queued = Atomic(0)
    /// The number of times that ``queued`` was set to a count from the store.
    let readings = Atomic(0)
    /// The number of uncommitted publications that shared subscriptions have assigned to this session.
    let chosen = Atomic(0)
    /// The permissions of the last connection. No other code is called while the lock is held.
    private let reader = Mutex<(any TopicReader)?>(nil)
    private let maxMessageBytes = Atomic(Int.max)

    init(owner: CommitSource) { self.owner = owner }

    var current: Int { queued.load(ordering: .relaxed) + chosen.load(ordering: .relaxed) }

    /// Sets the number of waiting or unacknowledged publications to a count that was read from the store.
    func read(_ count: Int) {
        queued.store(count, ordering: .relaxed)
        readings.add(1, ordering: .relaxed)
    }

    /// Sets the permissions of the last connection; nil if they are unknown.
    func setReader(_ new: (any TopicReader)?) {
        reader.withLock { $0 = new }
        maxMessageBytes.store(new?.maxMessageBytes ?? .max, ordering: .relaxed)
    }

    /// Whether the client of the last connection accepts a message of this length, in bytes. Returns true if the
    /// client's limit is unknown.
    func fits(_ bytes: Int) -> Bool { bytes <= maxMessageBytes.load(ordering: .relaxed) }

    /// Removes the permissions that depend on a name (``NickName/key``), because the session's account no longer has
    /// the name.
    func lost(_ name: String) {
        guard let old = reader.withLock({ $0 }) else { return }
        let new = old.without(name)
        // If a connection has got the session meanwhile, it has set newer permissions.
        reader.withLock { if $0 === old { $0 = new } }
    }

    /// Whether a connection to this process has set the permissions.
    var isReaderKnown: Bool { reader.withLock { $0 != nil } }

    func mayRead(_ topic: TopicName) -> Bool { reader.withLock { $0 }?.mayRead(topic) ?? true }
}

/// The durable sessions that share one subscription. Each publication goes to one member of the group: to one of these
/// sessions, or to a connected client whose session is not kept.
package final class DurableGroup: Sendable {
    /// The position in the rotation of the members. The position is kept when the members change and a new group
    /// replaces this one.
    final class Turn: Sendable {
        let number = Atomic<UInt64>(0)
    }

    /// The result of a choice.
    enum Choice: Sendable {
        case kept(DurableMember)
        case live(SharedGroups.Choice)
        /// No member was chosen, because the queues of all members that could be chosen are full.
        case full
    }

    /// The members that must not be chosen.
    struct Exclusions: Sendable {
        var sessions: Set<DurableSessionID> = []
        /// Whether members without a connection are excluded.
        var absent = false
        /// Whether sessions that have ended are excluded. The first choice may be an ended session. The commit then
        /// shows that the session is gone, and another member is chosen. If ended sessions were excluded from the
        /// start, no member could be chosen in a group that still lists only ended members.
        var ended = false
        /// Whether members that may not accept a publication of this length are excluded. A connected member is also
        /// excluded if its limit is not known.
        var tooSmall = false
        var doubtful = Doubtful.asUsual
    }

    /// The treatment of members that may lose a publication: members that may not accept a publication of this length,
    /// and clean members that get the publication at most once.
    enum Doubtful: Sendable {
        /// The treatment for a new publication: the members that most likely do not accept its length come last.
        case asUsual
        /// The members are chosen only if no other member can be chosen. The publication leaves its queue in any case.
        case last
        /// The members are not chosen. If no other member can be chosen, the publication stays in its queue.
        case never
    }

    /// The order in which members are chosen. A member with a lower rank is preferred.
    private enum Rank: Int, Comparable {
        case connected
        /// The member is absent, and its permissions have become known since the start of the server.
        case absent
        /// The member is absent, and its permissions are not known.
        case absentUnknown
        /// The member is connected, but gets the publication at most once, and may lose it: the publication moves, or
        /// the member processes publications more slowly than they arrive.
        case connectedAtMostOnce
        /// The member is absent, and most likely does not accept a publication of this length. But it may have a higher
        /// limit when it returns.
        case absentTooSmall
        /// The member is connected, but does not accept a publication of this length.
        case connectedTooSmall

        init(isOffline: Bool, isKnown: Bool, fits: Bool) {
            self =
                if !fits {
                    isOffline ? .absentTooSmall : .connectedTooSmall
                } else if isOffline {
                    isKnown ? .absent : .absentUnknown
                } else {
                    .connected
                }
        }

        /// Whether the search can end with a member of this rank.
        ///
        /// - Parameter isMove: whether the publication comes from another member's queue.
        func endsSearch(isMove: Bool) -> Bool {
            switch self {
            case .connected: true
            case .connectedAtMostOnce, .connectedTooSmall: !isMove
            case .absent, .absentUnknown, .absentTooSmall: false
            }
        }

        static func < (left: Rank, right: Rank) -> Bool { left.rawValue < right.rawValue }
    }

    static let window = SharedGroup.window

    /// The text of the subscription: "$share/name/filter".
    package let share: String
    /// The key of the group (``SharedGroups/key(group:filter:)``).
    let key: TopicFilter
    package let members: [DurableMember]
    private let turn: Turn

    init(name: String, filter: TopicFilter, members: [DurableMember], turn: Turn) {
        key = SharedGroups.key(group: name, filter: filter)
        share = SharedFilter.text(key)
        self.members = members
        self.turn = turn
    }

    /// Chooses the least busy of the connected members; members that are equally busy take turns. If no member is
    /// connected, it chooses among the absent members. It prefers absent members whose permissions have become known
    /// since the start of the server. A connected member that does not keep up, and gets the publication at most once,
    /// is chosen only if no absent member can be chosen. Members that do not accept a publication of this length are
    /// chosen only if no other member can be chosen. A publication that moves from another member's queue was promised
    /// to the publisher, so fewer members can be chosen for it (``Doubtful``).
    ///
    /// It excludes members that are not permitted to read the topic. It also excludes members whose queue or whose
    /// owner's share is full, and absent members that would get the publication at most once. It looks at ``window``
    /// members first. If a connected member is the best choice among them, it does not look at the others, even if that
    /// member does not keep up or does not accept the publication's length. For a publication that moves, that member
    /// must accept the publication's length, and acknowledge the publication. If an absent member is the best choice,
    /// it also looks at the others, until a connected member is the best choice.
    ///
    /// - Parameters:
    ///   - live: the connected members of all event loops.
    ///   - queues: the limits of the queues; nil if the limits are not checked.
    func choose(
        for publication: StoredPublication,
        live groups: SharedGroups?,
        in queues: QueueBudget?,
        excluding excluded: Exclusions = Exclusions()
    ) -> Choice? {
        let live = groups?.members(of: key)
        let seats = live?.seats ?? []
        let count = members.count + seats.count
        guard count > 0 else { return nil }
        let question = Publication(publication)
        let isMove = excluded.doubtful != .asUsual
        let bytes = isMove ? question.mostMessageBytes : question.leastMessageBytes
        let mustFit = excluded.tooSmall || excluded.doubtful == .never
        let start = Int(turn.number.add(1, ordering: .relaxed).oldValue % UInt64(count))
        var best: (place: Int, rank: Rank, load: Int)?
        var fullOwner: CommitSource?
        var isFull = false
        for offset in 0..<count {
            if offset >= Self.window, let best, best.rank.endsSearch(isMove: isMove) { break }
            let place = (start + offset) % count
            let rank: Rank
            let load: Int
            if place < members.count {
                let member = members[place]
                let isOffline = !member.load.isOnline.load(ordering: .relaxed)
                guard min(member.options.others.qos, publication.qos) > .atMostOnce, !(isOffline && excluded.absent),
                    !excluded.sessions.contains(member.session),
                    !(excluded.ended && member.load.hasEnded.load(ordering: .relaxed))
                else { continue }
                guard member.load.owner != fullOwner, member.load.current < queues?.maxEntriesPerQueue ?? .max else {
                    isFull = true
                    continue
                }
                let (fits, isKnown) = (member.load.fits(bytes), member.load.isReaderKnown)
                guard fits || !mustFit, !excluded.tooSmall || isKnown || isOffline else { continue }
                rank = Rank(isOffline: isOffline, isKnown: isKnown, fits: fits)
                load = member.load.current
            } else {
                let seat = seats[place - members.count]
                let fits = seat.fits(bytes)
                let mayLose = (isMove || seat.load.isBehind) && !seat.isBusied(by: question)
                guard fits || !mustFit, !mayLose || excluded.doubtful != .never else { continue }
                guard seat.canTake(question), groups?.isReachable(seat) ?? false else {
                    isFull = isFull || seat.load.isFull && seat.isBusied(by: question)
                    continue
                }
                rank = !fits ? .connectedTooSmall : mayLose ? .connectedAtMostOnce : .connected
                load = seat.load.current
            }
            if let best, (best.rank, best.load) <= (rank, load) { continue }
            if place < members.count {
                let member = members[place].load
                guard member.mayRead(publication.topic) else { continue }
                let holding = Holding(entries: 1, bytes: publication.weight)
                guard queues?.hasRoom(for: holding, of: member.owner) ?? true else {
                    fullOwner = member.owner
                    isFull = true
                    continue
                }
            }
            best = (place, rank, load)
        }
        guard let best else { return isFull ? .full : nil }
        if best.place < members.count { return .kept(members[best.place]) }
        return live.map { .live(SharedGroups.Choice(group: $0.group, seat: seats[best.place - members.count])) }
    }

    /// Whether at least one of the durable sessions still exists.
    var hasMembers: Bool { members.contains { !$0.load.hasEnded.load(ordering: .relaxed) } }

    /// Whether a member is connected that acknowledges publications.
    func hasOnline(live groups: SharedGroups?) -> Bool {
        members.contains { $0.options.others.qos > .atMostOnce && $0.load.isOnline.load(ordering: .relaxed) }
            || groups?.members(of: key)?.seats.contains { !$0.isKept && $0.acknowledges && !$0.isLeaving } ?? false
    }
}
