// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Who is connected: the attachments of each user, by device. Also presence, which follows from it.
///
/// State: ``Shard``s by user, each a `Mutex` around a struct. No attachment is called under a lock, and no lock is taken
/// inside another.
package final class SessionRegistry: Sendable {
    /// The most users that one attachment can watch.
    package static let maxWatchedUsers = 1000
    /// How many changes of one user's presence watchers are told within a second; then of the last.
    package static let maxToldPerSecond = 4

    private let shards: [Shard]
    private let ends = RecentEnds<UserID>()
    private let time: any TimeSource
    private let observer = Mutex<(@Sendable (UserID, Bool) -> Void)?>(nil)

    /// Creates an empty registry.
    ///
    /// - Parameters:
    ///   - time: stamps the moment somebody was last seen.
    ///   - shardCount: how many locks the users are spread over.
    package init(time: any TimeSource, shardCount: Int = 64) {
        self.time = time
        shards = (0..<max(1, shardCount)).map { _ in Shard() }
    }

    private func shard(of user: UserID) -> Shard { shards[Int(user.rawValue) % shards.count] }

    // MARK: Attaching

    /// Adds an attachment. One with the same user and device is ended with ``SessionEnd/replaced``.
    ///
    /// Watchers of the user's presence are told if it was offline. An attachment whose login began before its account
    /// was disabled, its device removed and so on is not added but ended for that reason.
    package func attach(_ attachment: any Attachment) {
        let principal = attachment.principal
        let shard = shard(of: principal.user)
        let (replaced, isFirst) = shard.attach(attachment, principal)
        if let replaced {
            unwatchAll(replaced)
            replaced.ended(.replaced)
        }
        // After it was added: an end that comes later finds it, one that came before is found here.
        if let reason = reason(toEnd: principal) {
            detach(attachment)
            attachment.ended(reason)
            return
        }
        if isFirst { tellPresence(of: principal.user) }
    }

    /// Removes an attachment; does nothing if it was replaced.
    package func detach(_ attachment: any Attachment) {
        let user = attachment.principal.user
        unwatchAll(attachment)
        if shard(of: user).detach(attachment, user) { tellPresence(of: user) }
    }

    /// Whether any device of the user is connected.
    package func isOnline(_ user: UserID) -> Bool { !attachments(of: user).isEmpty }

    /// The devices of the user that are connected.
    package func attachedDevices(of user: UserID) -> [DeviceID] { attachments(of: user).map(\.principal.device) }

    /// Notes whether the app behind an attachment is in front of its user; it is until it says otherwise.
    package func setResting(_ isResting: Bool, _ attachment: any Attachment) {
        let principal = attachment.principal
        shard(of: principal.user).setResting(isResting, attachment, principal)
    }

    /// The devices of the user that are connected and whose apps are in front of the user.
    package func awakeDevices(of user: UserID) -> [DeviceID] { shard(of: user).awakeDevices(of: user) }

    /// All connections of the user.
    package func attachments(of user: UserID) -> [any Attachment] { shard(of: user).attachments(of: user) }

    /// How many connections there are in total.
    package var count: Int { shards.reduce(0) { $0 + $1.count } }

    /// From now on `observer` learns when somebody comes online (true) or goes offline; it must not block.
    package func observePresence(_ observer: @escaping @Sendable (UserID, Bool) -> Void) {
        self.observer.withLock { $0 = observer }
    }

    // MARK: Ending

    /// Ends sessions of a user: those for which `matching` holds.
    package func end(_ user: UserID, _ reason: SessionEnd, where matching: (Principal) -> Bool = { _ in true }) {
        let (ended, isOffline) = shard(of: user).remove(user, where: matching)
        for attachment in ended {
            unwatchAll(attachment)
            attachment.ended(reason)
        }
        if isOffline { tellPresence(of: user) }
    }

    /// Ends sessions of a user, and those whose login is under way at this moment.
    func end(_ user: UserID, _ reason: SessionEnd, _ devices: EndedDevices) {
        ends.record(user, reason, devices)
        end(user, reason) { devices.contains($0.device) }
    }

    /// Ends all sessions.
    package func endAll(_ reason: SessionEnd) {
        for shard in shards {
            for attachment in shard.removeAll() { attachment.ended(reason) }
        }
    }

    private func reason(toEnd principal: Principal) -> SessionEnd? {
        guard let stamp = principal.loginStamp else { return nil }
        return ends.reason(toEnd: principal.user, since: stamp) { $0.contains(principal.device) }
    }

    /// A stamp for a login that begins now: ``Principal/loginStamp``.
    func stamp() -> UInt64 { ends.stamp() }

    // MARK: Events that matter only now

    /// Passes an ephemeral event to all attachments of a user.
    /// - Returns: how many there were.
    @discardableResult
    package func notify(_ user: UserID, _ event: EphemeralEvent) -> Int {
        let attachments = attachments(of: user)
        for attachment in attachments { attachment.ephemeralArrived(event) }
        return attachments.count
    }

    /// From now on the attachment gets presence events of these users; at most 1,000 per attachment.
    ///
    /// What is beyond that is left out. How the users stand now is not told: ask ``isOnline(_:)`` afterwards.
    package func watch(_ users: [UserID], by attachment: any Attachment) {
        let own = attachment.principal.user
        let added = shard(of: own).addWatched(users, by: attachment, own, limit: Self.maxWatchedUsers)
        for user in added { shard(of: user).addWatcher(attachment, of: user) }
        // Detached meanwhile: then nobody else takes it out of the lists again.
        if !attachments(of: own).contains(where: { $0 === attachment }) {
            unwatchAll(attachment)
            for user in added { shard(of: user).removeWatcher(attachment, of: user) }
        }
    }

    /// No more presence events of these users.
    package func unwatch(_ users: [UserID], by attachment: any Attachment) {
        shard(of: attachment.principal.user).removeWatched(users, by: attachment)
        for user in users { shard(of: user).removeWatcher(attachment, of: user) }
    }

    /// Another is not told of the user's presence any more; what it saw last is that the user went.
    package func hide(_ user: UserID, from viewer: UserID) {
        for attachment in attachments(of: viewer) where shard(of: viewer).watches(user, attachment) {
            unwatch([user], by: attachment)
            attachment.ephemeralArrived(.presence(user, isOnline: false, lastSeen: nil))
        }
    }

    private func unwatchAll(_ attachment: any Attachment) {
        for user in shard(of: attachment.principal.user).takeWatched(by: attachment) {
            shard(of: user).removeWatcher(attachment, of: user)
        }
    }

    /// Tells watchers of those who came and went too often for them to be told each time; to be called about once a
    /// second.
    package func tellLate() {
        for shard in shards {
            for user in shard.takeLate() { tellPresence(of: user, isLate: true) }
        }
    }

    /// Tells watchers how the user stands; again if that changed meanwhile, so that the last they hear is right.
    private func tellPresence(of user: UserID, isLate: Bool = false) {
        let shard = shard(of: user)
        // Each change goes to up to all who watch: of many within a second only the last matters to them.
        let isTold = isLate || shard.mayTell(of: user, now: time.now())
        var presence = shard.presence(of: user)
        while true {
            let lastSeen = presence.isOnline ? nil : time.now()
            let event = EphemeralEvent.presence(user, isOnline: presence.isOnline, lastSeen: lastSeen)
            if isTold { for watcher in presence.watchers { watcher.ephemeralArrived(event) } }
            if !isLate { observer.withLock { $0 }?(user, presence.isOnline) }
            let latest = shard.presence(of: user)
            if latest.version == presence.version { return }
            presence = latest
        }
    }
}
