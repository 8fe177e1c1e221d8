// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The connected devices of this node: the attachments of each user, by device. Presence follows from these
/// attachments. If there are several nodes, it follows from the record of all nodes (``ClusterRoster``).
///
/// State: ``Shard``s by user, each a `Mutex` around a struct, and a ``PresenceBudget``. No attachment is called under a lock, and no lock is
/// taken inside another.
package final class DeviceRegistry: Sendable {
    /// The most users that one attachment can watch.
    package static let maxWatchedUsers = 1000
    /// The number of changes of one user's presence that watchers get within a second. Of further changes they get only
    /// the last one.
    package static let maxToldPerSecond = 4
    /// The time between two parts of the notices that wait; each part keeps the event loops busy for some milliseconds.
    package static let lateInterval = Duration.milliseconds(50)

    private let shards: [Shard]
    private let ends = RecentEnds<UserID>()
    private let time: any TimeSource
    private let budget: PresenceBudget
    /// The order in which notices began to wait.
    private let lateCount = Atomic<UInt64>(0)
    /// The other nodes; nil: there are none.
    let roster: ClusterRoster?
    /// A user has come online or gone offline. If there are several nodes, the node that made the transition reports
    /// it.
    package let presenceChanged = Hook<(user: UserID, isOnline: Bool)>()

    /// Creates an empty registry.
    ///
    /// - Parameters:
    ///   - time: for the time a user was last seen.
    ///   - uptime: a clock that never goes back, for rates.
    ///   - shardCount: the number of locks over which users are spread.
    package convenience init(
        time: any TimeSource,
        uptime: @escaping @Sendable () -> Duration = DeviceRegistry.uptime(),
        shardCount: Int = 64
    ) {
        self.init(time: time, uptime: uptime, shardCount: shardCount, roster: nil)
    }

    init(
        time: any TimeSource,
        uptime: @escaping @Sendable () -> Duration = DeviceRegistry.uptime(),
        shardCount: Int = 64,
        roster: ClusterRoster?
    ) {
        self.time = time
        self.roster = roster
        budget = PresenceBudget(uptime: uptime)
        shards = (0..<max(1, shardCount)).map { _ in Shard() }
    }

    package static func uptime() -> @Sendable () -> Duration {
        let start = ContinuousClock.now
        return { start.duration(to: .now) }
    }

    private func shard(of user: UserID) -> Shard { shards[Int(user.rawValue) % shards.count] }

    // MARK: Attaching

    /// Adds an attachment. One with the same user and device is ended with ``AttachmentEnd/replaced``.
    ///
    /// Watchers are told if the user was offline. If the account was disabled, the device removed or the like after the
    /// login began, the attachment is ended for that reason instead.
    ///
    /// - Parameter source: who pays for the notices that watchers get at once.
    /// - Returns: the number of watchers that were told; 0 where there are several nodes, because they are told later.
    @discardableResult
    package func attach(_ attachment: any Attachment, by source: CommitSource = .server) -> Int {
        let principal = attachment.principal
        let shard = shard(of: principal.user)
        let (replaced, isFirst, connection) = shard.attach(attachment, principal)
        if let roster, connection > 0 { roster.attached(attachment, connection: connection) }
        if let replaced {
            unwatchAll(replaced)
            replaced.ended(.replaced)
        }
        // Checked after the addition: a later end finds it; an earlier end is found here.
        if let reason = reason(toEnd: principal) {
            let told = detach(attachment, by: source)
            attachment.ended(reason)
            return told
        }
        return isFirst ? tellOwnPresence(of: principal.user, by: source) : 0
    }

    /// Removes an attachment; does nothing if it was replaced.
    ///
    /// - Returns: the number of watchers that were told.
    @discardableResult
    package func detach(_ attachment: any Attachment, by source: CommitSource = .server) -> Int {
        let (told, watched) = leave(attachment, by: source)
        for user in watched { shard(of: user).removeWatcher(attachment, of: user) }
        return told
    }

    /// Removes an attachment as ``detach(_:)`` does, but leaves what it watched to the caller, who calls
    /// ``unwatch(_:by:)`` for some at a time.
    ///
    /// - Returns: the number of watchers that were told, and the users that it watched.
    package func leave(
        _ attachment: any Attachment,
        by source: CommitSource = .server
    ) -> (told: Int, watched: [UserID]) {
        let user = attachment.principal.user
        let watched = shard(of: user).takeWatched(by: attachment)
        let isOffline = shard(of: user).detach(attachment, user)
        roster?.detached(attachment)
        return (isOffline ? tellOwnPresence(of: user, by: source) : 0, Array(watched))
    }

    /// Whether any device of the user is connected, to any node.
    package func isOnline(_ user: UserID) -> Bool {
        !attachments(of: user).isEmpty || roster?.isOnline(user) == true
    }

    /// The devices of the user that are connected to any node. Those of a node that does not answer are missing.
    package func connectedDevices(of user: UserID) async -> Set<DeviceID> {
        let answers = await roster?.askAll(.devices(of: user)) ?? []
        return answers.reduce(into: Set(attachedDevices(of: user))) { all, answer in
            if case .devices(let devices)? = answer { all.formUnion(devices) }
        }
    }

    /// The devices of the user that are connected to this node.
    package func attachedDevices(of user: UserID) -> [DeviceID] { attachments(of: user).map(\.principal.device) }

    /// Records whether the app behind an attachment is in the foreground; initially it is.
    package func setResting(_ isResting: Bool, _ attachment: any Attachment) {
        let principal = attachment.principal
        shard(of: principal.user).setResting(isResting, attachment, principal)
    }

    /// The connected devices of the user whose apps are in the foreground.
    package func awakeDevices(of user: UserID) -> [DeviceID] { shard(of: user).awakeDevices(of: user) }

    /// Whether a device of the user may be connected to another node.
    func mayBeElsewhere(_ user: UserID) -> Bool {
        roster.map { $0.isOnline(user) && !$0.peers.isEmpty } ?? false
    }

    /// All connections of the user to this node.
    package func attachments(of user: UserID) -> [any Attachment] { shard(of: user).attachments(of: user) }

    /// The connections of the user to this node that take entries and events.
    package func takers(of user: UserID) -> [any Attachment] { attachments(of: user).filter(\.takesEvents) }

    /// Whether the account may have another connection to this node that takes no events. There is a limit, because
    /// every call that ends or reads the account's connections looks at all of them.
    package func mayWatch(_ principal: Principal, limit: Int) -> Bool {
        let others = attachments(of: principal.user).filter { !$0.takesEvents }
        return others.count < limit || others.contains { $0.principal.device == principal.device }
    }

    /// The total number of connections to this node.
    package var count: Int { shards.reduce(0) { $0 + $1.count } }

    // MARK: Ending

    /// Ends the connections of a user for which `matching` is true.
    package func end(_ user: UserID, _ reason: AttachmentEnd, where matching: (Principal) -> Bool = { _ in true }) {
        let (ended, isOffline) = shard(of: user).remove(user, where: matching)
        for attachment in ended {
            unwatchAll(attachment)
            roster?.detached(attachment)
            attachment.ended(reason)
        }
        // The operator does this, or an account that has paid for it otherwise.
        if isOffline { _ = tellOwnPresence(of: user, by: .server) }
    }

    /// Ends one connection.
    func end(_ attachment: any Attachment, _ reason: AttachmentEnd) {
        detach(attachment)
        attachment.ended(reason)
    }

    /// Ends connections of a user on all nodes, including logins under way.
    ///
    /// - Parameter kept: the device whose own connection stays, because that connection ends itself.
    func end(_ user: UserID, _ reason: AttachmentEnd, _ devices: EndedDevices, but kept: DeviceID? = nil) {
        endHere(user, reason, devices, but: kept)
        roster?.tell(.devices(user, reason, devices))
    }

    /// As ``end(_:_:_:but:)``, on this node alone.
    func endHere(_ user: UserID, _ reason: AttachmentEnd, _ devices: EndedDevices, but kept: DeviceID? = nil) {
        ends.record(user, reason, devices)
        end(user, reason) { $0.device != kept && devices.contains($0) }
    }

    /// The account has another name: its connections have it from now on. Logins under way, which may have read the old
    /// name, are ended.
    func rename(_ user: UserID, to name: NickName) {
        renameHere(user, to: name)
        roster?.tell(.renamed(user, name))
    }

    /// As ``rename(_:to:)``, on this node alone.
    func renameHere(_ user: UserID, to name: NickName) {
        ends.record(user, .accountRenamed, .all)
        for attachment in attachments(of: user) { attachment.principal.rename(to: name) }
    }

    private func reason(toEnd principal: Principal) -> AttachmentEnd? {
        guard let stamp = principal.loginStamp else { return nil }
        return ends.reason(toEnd: principal.user, since: stamp) { $0.contains(principal) }
    }

    /// A stamp for a login that begins now: ``Principal/loginStamp``.
    func stamp() -> UInt64 { ends.stamp() }

    // MARK: Events that matter only now

    /// Passes an ephemeral event to all attachments of a user, on every node.
    ///
    /// - Returns: the number of attachments on this node that took it; 1 if the event went only to other nodes, where it may be
    ///   lost.
    package func notify(_ user: UserID, _ event: EphemeralEvent) -> Int {
        let count = notifyHere(user, event)
        guard let roster, roster.hint(user, event) else { return count }
        return max(count, 1)
    }

    /// Passes an ephemeral event to all attachments of a user on this node.
    ///
    /// - Returns: the number of those that took it.
    func notifyHere(_ user: UserID, _ event: EphemeralEvent) -> Int {
        takers(of: user).count { $0.ephemeralArrived(event) }
    }

    /// Sends the attachment presence events of these users from now on; at most 1,000 per attachment.
    ///
    /// Further users are left out. The present states are not sent: call ``isOnline(_:)`` afterwards.
    package func watch(_ users: [UserID], by attachment: any Attachment) {
        let own = attachment.principal.user
        let added = shard(of: own).addWatched(users, by: attachment, own, limit: Self.maxWatchedUsers)
        for user in added { shard(of: user).addWatcher(attachment, of: user) }
        // Detached meanwhile: nothing else would remove it from the lists.
        if !attachments(of: own).contains(where: { $0 === attachment }) {
            unwatchAll(attachment)
            for user in added { shard(of: user).removeWatcher(attachment, of: user) }
        }
    }

    /// The number of users that the attachment watches.
    package func watchedCount(by attachment: any Attachment) -> Int {
        shard(of: attachment.principal.user).watchedCount(by: attachment)
    }

    /// The approximate memory of one watched user.
    package static let bytesOfWatched = 240

    /// Ends the presence events of these users.
    package func unwatch(_ users: [UserID], by attachment: any Attachment) {
        shard(of: attachment.principal.user).removeWatched(users, by: attachment)
        for user in users { shard(of: user).removeWatcher(attachment, of: user) }
    }

    /// Hides the user's presence from another user. The last event that the other user gets is that the user is
    /// offline.
    package func hide(_ user: UserID, from viewer: UserID) {
        hideHere(user, from: viewer)
        roster?.tell(.hidden(user, from: viewer))
    }

    /// As ``hide(_:from:)``, on this node alone.
    func hideHere(_ user: UserID, from viewer: UserID) {
        for attachment in attachments(of: viewer) where shard(of: viewer).watches(user, attachment) {
            unwatch([user], by: attachment)
            _ = attachment.ephemeralArrived(.presence(user, isOnline: false, lastSeen: nil))
        }
    }

    private func unwatchAll(_ attachment: any Attachment) {
        for user in shard(of: attachment.principal.user).takeWatched(by: attachment) {
            shard(of: user).removeWatcher(attachment, of: user)
        }
    }

    /// Tells watchers and observers about users of whom they were not told at once; called every ``lateInterval`` while
    /// notices wait, else about once a second.
    ///
    /// - Returns: whether notices wait.
    @discardableResult
    package func tellLate() -> Bool {
        let now = time.now()
        var waiting: [(user: UserID, late: Shard.Late)] = []
        for shard in shards {
            for (user, late) in shard.takeLate(now: now) {
                if late.isReported { tellPresence(of: user, by: nil, isTold: false) }
                if late.isTold { waiting.append((user, late)) }
            }
        }
        guard !waiting.isEmpty else { return shards.contains(where: \.hasLate) }
        let isTold = budget.tellsLate(waiting.map { (shard(of: $0.user).watcherCount(of: $0.user), $0.late.since) })
        for ((user, late), isTold) in zip(waiting, isTold) {
            if isTold {
                shard(of: user).toldLate(of: user, now: now)
                tellPresence(of: user, by: nil, isReported: false)
            } else {
                shard(of: user).tellLater(of: user, Shard.Late(isTold: true, since: late.since))
            }
        }
        return shards.contains(where: \.hasLate)
    }

    /// The user came online or went offline because of a connection of this node. If there are several nodes, the
    /// record of all nodes decides, and ``presenceTurned(of:)`` follows.
    ///
    /// - Returns: the number of watchers that were told.
    private func tellOwnPresence(of user: UserID, by source: CommitSource) -> Int {
        roster == nil ? tellPresence(of: user, by: source) : 0
    }

    /// The user came online or went offline, by the record of all nodes.
    ///
    /// - Parameters:
    ///   - isTold: whether the watchers of this node hear of it.
    ///   - isReported: whether observers do, because this node made the transition.
    func presenceTurned(of user: UserID, isTold: Bool = true, isReported: Bool = false) {
        tellPresence(of: user, by: .server, isTold: isTold, isReported: isReported)
    }

    private func presence(of user: UserID) -> Shard.Presence {
        let own = shard(of: user).presence(of: user)
        guard let version = roster?.presenceVersion(of: user) else { return own }
        return Shard.Presence(isOnline: version & 1 == 1, watchers: own.watchers, version: version)
    }

    /// Tells watchers and observers the user's state, and again if it changed meanwhile, so that their last notice is
    /// right.
    ///
    /// - Parameter source: who pays for the notices; nil: they have waited, and are paid for.
    /// - Returns: the number of watchers that were told.
    @discardableResult
    private func tellPresence(
        of user: UserID,
        by source: CommitSource?,
        isTold: Bool = true,
        isReported: Bool = true
    ) -> Int {
        let shard = shard(of: user)
        var late = Shard.Late()
        if let source {
            // A change may go to many watchers, and into a queue: within a second only the last state matters.
            if !shard.mayTell(of: user, now: time.now()) {
                late = Shard.Late(isTold: isTold, isReported: isReported)
            } else if isTold, !budget.tellsAtOnce(shard.watcherCount(of: user), by: source) {
                late.isTold = true
            }
        }
        var presence = self.presence(of: user)
        // All or none: whoever is told again and again must not keep others from being told.
        if isTold, !late.isTold, presence.watchers.contains(where: \.isBehind) { late.isTold = true }
        let (isTold, isReported) = (isTold && !late.isTold, isReported && !late.isReported)
        var told = 0
        while true {
            let lastSeen = presence.isOnline ? nil : time.now()
            let event = EphemeralEvent.presence(user, isOnline: presence.isOnline, lastSeen: lastSeen)
            if isTold {
                for watcher in presence.watchers { _ = watcher.ephemeralArrived(event) }
                told += presence.watchers.count
            }
            if isReported { presenceChanged((user, presence.isOnline)) }
            let latest = self.presence(of: user)
            if latest.version == presence.version { break }
            presence = latest
        }
        if late.isTold || late.isReported {
            late.since = lateCount.wrappingAdd(1, ordering: .relaxed).newValue
            shard.tellLater(of: user, late)
        }
        return told
    }
}
