// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The connected devices of this node: the attachments of each user, by device. These attachments determine which users
/// are online. If there are several nodes, the record that all nodes share determines this instead (``ClusterRoster``).
///
/// State: ``Shard``s by user, each a `Mutex` around a struct; a ``PresenceBudget``; and the state that ``tellLate()``
/// keeps between two calls. No attachment is called while a lock is held, and no lock is acquired while another lock is
/// held.
package final class DeviceRegistry: Sendable {
    /// The largest number of users that one attachment can watch.
    package static let maxWatchedUsers = 1000
    /// The largest number of changes of one user's presence of which watchers are notified within a second. If there
    /// are more changes, watchers are notified only of the last change.
    package static let maxToldPerSecond = 4
    /// Waiting notices of presence are sent in parts. This is the time between two parts. Sending a part keeps the
    /// event loops busy for some milliseconds.
    package static let lateInterval = Duration.milliseconds(50)

    private let shards: [Shard]
    private let ends = RecentEnds<UserID>()
    private let time: any TimeSource
    private let budget: PresenceBudget
    private let late = Mutex(Late())
    /// The other nodes; nil if there are none.
    let roster: ClusterRoster?
    /// Called when an account has a new name. The names may differ only in their spelling.
    let nameChanged = Hook<(user: UserID, name: NickName)>()
    /// Called when a user has come online or gone offline. If there are several nodes, the node that made the
    /// transition reports it.
    package let presenceChanged = Hook<(user: UserID, isOnline: Bool)>()

    /// Creates an empty registry.
    ///
    /// - Parameters:
    ///   - time: the source of the times at which users were last seen, and of the time for rates.
    ///   - shardCount: the number of locks over which users are spread.
    package convenience init(time: any TimeSource, shardCount: Int = 64) {
        self.init(time: time, shardCount: shardCount, roster: nil)
    }

    init(time: any TimeSource, shardCount: Int = 64, roster: ClusterRoster?) {
        self.time = time
        self.roster = roster
        budget = PresenceBudget(time: time)
        shards = (0..<max(1, shardCount)).map { _ in Shard() }
    }

    private func shard(of user: UserID) -> Shard { shards[Int(user.rawValue) % shards.count] }

    // MARK: Attaching

    /// Adds an attachment. Another attachment of the same user and device is ended with ``AttachmentEnd/replaced``. If
    /// the client of that other attachment asked later (``Attachment/order``), the new attachment is ended instead.
    ///
    /// If the user was offline, watchers are told that the user is online. If the server ended connections of the
    /// account or device after the login began (for example because the device was removed), the attachment is ended
    /// for the same reason instead.
    ///
    /// - Parameter source: the source that is charged for the notices that watchers get at once.
    /// - Returns: the number of watchers that are notified, at once or later; 0 if there are several nodes.
    @discardableResult
    package func attach(_ attachment: any Attachment, by source: @autoclosure () -> CommitSource = .server) -> Int {
        let principal = attachment.principal
        let shard = shard(of: principal.user)
        let (replaced, isFirst, connection) = shard.attach(attachment, principal, now: time.now())
        if let roster, connection > 0 { roster.attached(attachment, connection: connection) }
        if let replaced {
            unwatchAll(replaced)
            replaced.ended(.replaced)
            if replaced === attachment { return 0 }
        }
        // This is checked after the addition. A later end finds the attachment, and an earlier end is found here.
        if let reason = reason(toEnd: principal) {
            let told = detach(attachment, by: source())
            attachment.ended(reason)
            return told
        }
        return isFirst ? tellOwnPresence(of: principal.user, by: source()) : 0
    }

    /// Removes an attachment. Does nothing if the attachment was replaced.
    ///
    /// - Returns: the number of watchers that are notified, at once or later.
    @discardableResult
    package func detach(_ attachment: any Attachment, by source: @autoclosure () -> CommitSource = .server) -> Int {
        let (told, watched) = leave(attachment, by: source())
        for user in watched { shard(of: user).removeWatcher(attachment, of: user) }
        return told
    }

    /// Removes an attachment like ``detach(_:by:)``, but does not remove the attachment from the users that it watched.
    /// The caller must pass these users to ``unwatch(_:by:)``, all at once or in parts.
    ///
    /// - Returns: the number of watchers that are notified, at once or later, and the users that the attachment
    ///   watched.
    package func leave(
        _ attachment: any Attachment,
        by source: @autoclosure () -> CommitSource = .server
    ) -> (told: Int, watched: [UserID]) {
        let user = attachment.principal.user
        let isOffline = shard(of: user).detach(attachment, user, now: time.now())
        // A detached attachment cannot watch further users, so nothing is left behind.
        let watched = shard(of: user).takeWatched(by: attachment)
        roster?.detached(attachment)
        return (isOffline ? tellOwnPresence(of: user, by: source()) : 0, Array(watched))
    }

    /// Whether any device of the user is connected to any node.
    package func isOnline(_ user: UserID) -> Bool {
        !attachments(of: user).isEmpty || roster?.isOnline(user) == true
    }

    /// Returns the devices of the user that are connected to any node. Devices on a node that does not answer are
    /// missing.
    package func connectedDevices(of user: UserID) async -> Set<DeviceID> {
        let answers = await roster?.askAll(.devices(of: user)) ?? []
        return answers.reduce(into: Set(attachedDevices(of: user))) { all, answer in
            if case .devices(let devices)? = answer { all.formUnion(devices) }
        }
    }

    /// Returns the devices of the user that are connected to this node.
    package func attachedDevices(of user: UserID) -> [DeviceID] { attachments(of: user).map(\.principal.device) }

    /// Records whether the app of an attachment is in the foreground. Initially, it is.
    package func setResting(_ isResting: Bool, _ attachment: any Attachment) {
        let principal = attachment.principal
        shard(of: principal.user).setResting(isResting, attachment, principal)
    }

    /// Returns those connected devices of the user whose apps are in the foreground.
    package func awakeDevices(of user: UserID) -> [DeviceID] { shard(of: user).awakeDevices(of: user) }

    /// Whether a device of the user may be connected to another node.
    func mayBeElsewhere(_ user: UserID) -> Bool {
        roster.map { $0.isOnline(user) && !$0.peers.isEmpty } ?? false
    }

    /// Returns all connections of the user to this node.
    package func attachments(of user: UserID) -> [any Attachment] { shard(of: user).attachments(of: user) }

    /// Returns those connections of the user to this node that receive entries and events.
    package func takers(of user: UserID) -> [any Attachment] { attachments(of: user).filter(\.takesEvents) }

    /// Whether the account may have another connection to this node if the connection receives no events. There is a
    /// limit, because every call that ends or reads the account's connections looks at all of them.
    package func mayWatch(_ principal: Principal, limit: Int) -> Bool {
        let others = attachments(of: principal.user).filter { !$0.takesEvents }
        return others.count < limit || others.contains { $0.principal.device == principal.device }
    }

    /// The total number of connections to this node.
    package var count: Int { shards.reduce(0) { $0 + $1.count } }

    // MARK: Ending

    /// Ends those connections of a user for which `matching` returns true.
    package func end(_ user: UserID, _ reason: AttachmentEnd, where matching: (Principal) -> Bool = { _ in true }) {
        let (ended, isOffline) = shard(of: user).remove(user, now: time.now(), where: matching)
        for attachment in ended {
            unwatchAll(attachment)
            roster?.detached(attachment)
            attachment.ended(reason)
        }
        // The server is charged: connections are ended by an operator, or by an account that is charged for this in
        // another way.
        if isOffline { _ = tellOwnPresence(of: user, by: .server) }
    }

    /// Ends one connection.
    func end(_ attachment: any Attachment, _ reason: AttachmentEnd) {
        detach(attachment)
        attachment.ended(reason)
    }

    /// Ends connections of a user on all nodes, including logins that are under way.
    ///
    /// - Parameter kept: the login whose own connection to this node stays, because that connection ends itself; nil if
    ///   no connection stays. Other connections of the same device are ended, because they may belong to somebody else.
    func end(_ user: UserID, _ reason: AttachmentEnd, _ devices: EndedDevices, but kept: LoginNumber? = nil) {
        endHere(user, reason, devices, but: kept)
        roster?.tell(.devices(user, reason, devices))
    }

    /// Works like ``end(_:_:_:but:)``, but only on this node.
    func endHere(_ user: UserID, _ reason: AttachmentEnd, _ devices: EndedDevices, but kept: LoginNumber? = nil) {
        ends.record(user, reason, devices)
        end(user, reason) { (kept == nil || $0.login != kept) && devices.contains($0) }
    }

    /// Gives the account's new name to the account's connections on all nodes. Ends logins that are under way, because
    /// they may have read the old name.
    func rename(_ user: UserID, to name: NickName) {
        renameHere(user, to: name)
        roster?.tell(.renamed(user, name))
    }

    /// Works like ``rename(_:to:)``, but only on this node.
    func renameHere(_ user: UserID, to name: NickName) {
        ends.record(user, .accountRenamed, .all)
        for attachment in attachments(of: user) {
            attachment.principal.rename(to: name)
            attachment.renamed()
        }
        nameChanged((user, name))
    }

    private func reason(toEnd principal: Principal) -> AttachmentEnd? {
        guard let stamp = principal.loginStamp else { return nil }
        return ends.reason(toEnd: principal.user, since: stamp) { $0.contains(principal) }
    }

    /// Returns a stamp for a login that begins now (``Principal/loginStamp``).
    func stamp() -> UInt64 { ends.stamp() }

    // MARK: Events that matter only now

    /// Passes an ephemeral event to all attachments of a user, on every node.
    ///
    /// - Returns: the number of attachments on this node that accepted the event; 1 if the event went only to other
    ///   nodes, where the event may get lost.
    package func notify(_ user: UserID, _ event: EphemeralEvent) -> Int {
        let count = notifyHere(user, event)
        guard let roster, roster.hint(user, event) else { return count }
        return max(count, 1)
    }

    /// Passes an ephemeral event to all attachments of a user on this node.
    ///
    /// - Returns: the number of attachments that accepted the event.
    func notifyHere(_ user: UserID, _ event: EphemeralEvent) -> Int {
        takers(of: user).count { $0.ephemeralArrived(event) }
    }

    /// Makes the attachment a watcher of these users. From now on, the attachment gets the presence events of these
    /// users. One attachment can watch at most ``maxWatchedUsers`` users.
    ///
    /// Further users are left out. The present states are not sent. To get them, call ``isOnline(_:)`` afterwards.
    ///
    /// - Returns: the users that the attachment did not watch before.
    @discardableResult
    package func watch(_ users: [UserID], by attachment: any Attachment) -> [UserID] {
        let own = attachment.principal.user
        let added = shard(of: own).addWatched(users, by: attachment, own, limit: Self.maxWatchedUsers)
        for user in added { shard(of: user).addWatcher(attachment, of: user) }
        // If the attachment was detached meanwhile, nothing else removes it from the lists.
        if !attachments(of: own).contains(where: { $0 === attachment }) {
            unwatchAll(attachment)
            for user in added { shard(of: user).removeWatcher(attachment, of: user) }
        }
        return added
    }

    /// Returns the number of users that the attachment watches.
    package func watchedCount(by attachment: any Attachment) -> Int {
        shard(of: attachment.principal.user).watchedCount(by: attachment)
    }

    /// The approximate memory for one watched user, in bytes.
    package static let bytesOfWatched = 240

    /// Ends the presence events of these users for an attachment.
    package func unwatch(_ users: [UserID], by attachment: any Attachment) {
        shard(of: attachment.principal.user).removeWatched(users, by: attachment)
        for user in users { shard(of: user).removeWatcher(attachment, of: user) }
    }

    /// Hides a user's presence from another user. The last event that the other user gets says that the user is
    /// offline.
    package func hide(_ user: UserID, from viewer: UserID) {
        hideHere(user, from: viewer)
        roster?.tell(.hidden(user, from: viewer))
    }

    /// Works like ``hide(_:from:)``, but only on this node.
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

    /// Sends the notices that were not sent to watchers and observers at once, as far as the rate allows. One caller
    /// calls this every ``lateInterval`` while users wait for such notices.
    ///
    /// - Returns: whether any users still wait.
    @discardableResult
    package func tellLate() -> Bool {
        forgetChanges()
        while let user = budget.nextReport() { tell(user, isTold: false, isReported: true) }
        var crowd = late.withLock { late in
            defer { late.crowd = nil }
            return late.crowd
        }
        tellSome(of: &crowd)
        while let user = budget.next(.fewestWatchers) { tellLate(user, .fewestWatchers, &crowd) }
        // If a user has very many watchers, these watchers are a crowd. Crowds are notified one after the other: a
        // crowd keeps the turn until all its watchers are notified.
        while crowd == nil, let user = budget.next(.turns) { tellLate(user, .turns, &crowd) }
        return late.withLock { late in
            late.crowd = crowd
            return crowd != nil
        } || budget.isWaiting
    }

    /// Sends at once all notices that were to be sent to observers later. This is for the end of the process, after all
    /// connections were closed.
    package func tellObservers() {
        while let user = budget.nextReport(isEarly: true) { tell(user, isTold: false, isReported: true) }
    }

    /// The state that ``tellLate()`` keeps between two calls.
    private struct Late: Sendable {
        var crowd: Crowd?
        /// The time at which old changes were last forgotten.
        var forgotAt: Duration?
    }

    /// A user with very many watchers, and the watchers that are still to be notified. Each part of the notices goes to
    /// some of them.
    private struct Crowd: Sendable {
        let user: UserID
        var watchers: ArraySlice<any Attachment>
        /// Whether some watchers were left out, because their event loops were behind.
        var isIncomplete = false
    }

    private func forgetChanges() {
        let now = time.uptime()
        let isDue = late.withLock { late in
            if let last = late.forgotAt, now - last < PresenceLine.rest { return false }
            late.forgotAt = now
            return true
        }
        if isDue { for shard in shards { shard.forgetChanges(now: now) } }
    }

    private func tellLate(_ user: UserID, _ order: PresenceBudget.Order, _ crowd: inout Crowd?) {
        let watchers = shard(of: user).presence(of: user).watchers
        let isCrowd = watchers.count > PresenceBudget.maxAtOnce
        if isCrowd, crowd == nil {
            crowd = Crowd(user: user, watchers: Array(watchers)[...])
            tellSome(of: &crowd)
        } else if isCrowd || watchers.contains(where: \.isBehind) {
            tellAgain(user, watchers.count)
        } else {
            budget.charge(watchers.count, to: order)
            tell(user, isTold: true, isReported: false)
        }
    }

    /// Notifies the next watchers of a crowd, if the rate allows it. If the event loops of some watchers are behind,
    /// the whole crowd is notified again later.
    private func tellSome(of crowd: inout Crowd?) {
        guard var begun = crowd, budget.mayTell(.turns) else { return }
        let next = begun.watchers.prefix(PresenceBudget.maxAtOnce)
        let some = next.filter { !$0.isBehind }
        budget.charge(some.count, to: .turns)
        tell(begun.user, some[...], isTold: true, isReported: false)
        begun.watchers = begun.watchers.dropFirst(next.count)
        if some.count < next.count { begun.isIncomplete = true }
        crowd = begun.watchers.isEmpty ? nil : begun
        if crowd == nil, begun.isIncomplete {
            tellAgain(begun.user, shard(of: begun.user).presence(of: begun.user).watchers.count)
        }
    }

    /// Notifies the user's watchers again of the user's presence, a second later at the earliest.
    private func tellAgain(_ user: UserID, _ watchers: Int) {
        budget.tellLater(of: user, watchers: watchers, isReported: false, by: .server)
    }

    /// Tells watchers and observers that the user came online or went offline because of a connection to this node. If
    /// there are several nodes, this does nothing. Then the record of all nodes decides, and
    /// ``presenceTurned(of:isTold:isReported:)`` is called.
    ///
    /// - Returns: the number of watchers that are notified, at once or later.
    private func tellOwnPresence(of user: UserID, by source: @autoclosure () -> CommitSource) -> Int {
        roster == nil ? tellPresence(of: user, by: source()) : 0
    }

    /// Tells watchers and observers that the user came online or went offline according to the record of all nodes.
    ///
    /// - Parameters:
    ///   - isTold: whether the watchers on this node are notified.
    ///   - isReported: whether observers are notified, because this node made the transition.
    func presenceTurned(of user: UserID, isTold: Bool = true, isReported: Bool = false) {
        _ = tellPresence(of: user, by: .server, isTold: isTold, isReported: isReported)
    }

    private func presence(of user: UserID) -> Shard.Presence {
        let own = shard(of: user).presence(of: user)
        guard let version = roster?.presenceVersion(of: user) else { return own }
        // This node does not know the time of a change on another node.
        let isOnline = version & 1 == 1
        return Shard.Presence(
            isOnline: isOnline,
            watchers: own.watchers,
            version: version,
            changedAt: isOnline == own.isOnline ? own.changedAt : nil,
            removals: own.removals
        )
    }

    /// Notifies watchers and observers of a change, at once if the rates allow it.
    ///
    /// - Parameter source: the source that causes the notices. It is evaluated only if there are notices.
    /// - Returns: the number of watchers that are notified, at once or later.
    private func tellPresence(
        of user: UserID,
        by source: @autoclosure () -> CommitSource,
        isTold: Bool = true,
        isReported: Bool = true
    ) -> Int {
        let change = shard(of: user).countChange(of: user, now: time.uptime())
        let watchers = isTold ? change.watchers : 0
        // A change may cause notices to many watchers and an event in a queue. So if there are too many changes within
        // a second, only the last state is reported.
        guard change.mayTell else {
            let source = watchers > 0 ? source() : .server
            budget.tellLater(of: user, watchers: watchers, isReported: isReported, by: source)
            return watchers
        }
        guard watchers > 0 else {
            // Somebody may have begun to watch meanwhile.
            tell(user, isTold: isTold, isReported: isReported)
            return 0
        }
        let source = source()
        // Either all watchers are notified at once or none of them, because the registry does not remember which of
        // them were notified.
        let isNow =
            watchers <= PresenceBudget.maxAtOnce
            && !shard(of: user).presence(of: user).watchers.contains(where: \.isBehind)
            && budget.tellsAtOnce(watchers, by: source)
        tell(user, isTold: isNow, isReported: isReported)
        // The user is added to the line after the change. So the call that removes the user from the line reads this
        // state or a later state.
        if !isNow { budget.tellLater(of: user, watchers: watchers, isReported: false, by: source) }
        return watchers
    }

    private func event(of user: UserID, _ presence: Shard.Presence) -> EphemeralEvent {
        let lastSeen = presence.isOnline ? nil : presence.changedAt ?? time.now()
        return .presence(user, isOnline: presence.isOnline, lastSeen: lastSeen)
    }

    /// Notifies watchers and observers of the user's state. If the state changed meanwhile, notifies them again, so
    /// that their last notice is right.
    ///
    /// - Parameter some: the watchers to be notified; nil if all are to be notified.
    private func tell(
        _ user: UserID,
        _ some: ArraySlice<any Attachment>? = nil,
        isTold: Bool,
        isReported: Bool
    ) {
        guard isTold || isReported else { return }
        let shard = shard(of: user)
        var presence = self.presence(of: user)
        while true {
            let watchers = isTold ? some.map { shard.watching(user, among: $0) } ?? Array(presence.watchers) : []
            let event = event(of: user, presence)
            for watcher in watchers { _ = watcher.ephemeralArrived(event) }
            if isReported { presenceChanged((user, presence.isOnline)) }
            let latest = self.presence(of: user)
            if latest.removals != presence.removals, presence.isOnline {
                // The user may have been hidden from some of these watchers meanwhile: their last event must be that
                // the user is offline.
                let rest = Set(shard.watching(user, among: watchers[...]).map { ObjectIdentifier($0) })
                for watcher in watchers where !rest.contains(ObjectIdentifier(watcher)) {
                    _ = watcher.ephemeralArrived(.presence(user, isOnline: false, lastSeen: nil))
                }
            }
            if latest.version == presence.version { return }
            presence = latest
        }
    }
}
