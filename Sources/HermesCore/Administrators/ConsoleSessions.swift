// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The sessions of the console. They are kept only in memory, so a restart ends them all. Does no I/O; the time is
/// passed in.
///
/// A session is found by the hash of its token. A session ends after a period without use, and at the latest after a
/// fixed time. The table is bounded, for each administrator and in total: if there is no room for a new session, the
/// least recently used session ends.
package struct ConsoleSessions: Sendable {
    package struct Limits: Sendable, Hashable {
        /// A session that is not used for this time ends.
        package var idle: Duration
        /// A session ends after this time even if it is used.
        package var lifetime: Duration
        package var maxOfOne: Int
        package var maxInAll: Int

        package init(
            idle: Duration = .seconds(30 * 60),
            lifetime: Duration = .seconds(12 * 3600),
            maxOfOne: Int = 8,
            maxInAll: Int = 256
        ) {
            self.idle = idle
            self.lifetime = lifetime
            self.maxOfOne = maxOfOne
            self.maxInAll = maxInAll
        }
    }

    package struct Session: Sendable, Hashable {
        package let name: AdministratorName
        package let role: AdministratorRole
        /// Every request that changes something must repeat this token. This protects against requests from pages of
        /// other origins, because those pages do not know the token.
        package let requestToken: String
        package let endsAt: Duration
        package fileprivate(set) var usedAt: Duration
        /// The number of changes that the session could still make at ``changesAt``.
        fileprivate var changes: Double
        fileprivate var changesAt: Duration
    }

    /// A session may make this many changes at once, and ``changesPerSecond`` per second in the long run. Changes are
    /// limited so that nobody floods the audit log.
    static let changeBurst = 30.0
    static let changesPerSecond = 1.0

    package let limits: Limits
    private var sessions: [TokenHash: Session] = [:]

    package init(limits: Limits = Limits()) { self.limits = limits }

    package var count: Int { sessions.count }

    /// Begins a session with a new token.
    package mutating func begin(
        _ name: AdministratorName,
        _ role: AdministratorRole,
        now: Duration
    ) -> (token: AccessToken, session: Session) {
        sessions = sessions.filter { isAlive($0.value, now: now) }
        while let oldest = oldest(of: name, beyond: limits.maxOfOne) { sessions[oldest] = nil }
        while let oldest = oldest(of: nil, beyond: limits.maxInAll) { sessions[oldest] = nil }
        let token = AccessToken()
        let session = Session(
            name: name,
            role: role,
            requestToken: AccessToken().text,
            endsAt: now + limits.lifetime,
            usedAt: now,
            changes: Self.changeBurst,
            changesAt: now
        )
        sessions[token.hash] = session
        return (token, session)
    }

    /// Returns the least recently used session if there is no room for another session; otherwise nil.
    private func oldest(of name: AdministratorName?, beyond most: Int) -> TokenHash? {
        let all = sessions.filter { name == nil || $0.value.name == name }
        guard all.count >= most else { return nil }
        return all.min { $0.value.usedAt < $1.value.usedAt }?.key
    }

    private func isAlive(_ session: Session, now: Duration) -> Bool {
        now < session.endsAt && now - session.usedAt < limits.idle
    }

    func has(_ token: TokenHash) -> Bool { sessions[token] != nil }

    /// Finds the session of a token.
    ///
    /// - Parameter isUse: false for requests that a page makes without an action of its user. Such requests do not keep
    ///   a session alive.
    package mutating func session(_ token: TokenHash, isUse: Bool, now: Duration) -> Session? {
        guard var session = sessions[token] else { return nil }
        guard isAlive(session, now: now) else {
            sessions[token] = nil
            return nil
        }
        if isUse {
            session.usedAt = now
            sessions[token] = session
        }
        return session
    }

    /// Whether a session may make a change now. If so, the change counts against the session's limit.
    package mutating func mayChange(_ token: TokenHash, now: Duration) -> Bool {
        guard var session = sessions[token] else { return false }
        let returned = (now - session.changesAt) / .seconds(1) * Self.changesPerSecond
        session.changes = min(Self.changeBurst, session.changes + max(0, returned))
        session.changesAt = now
        defer { sessions[token] = session }
        guard session.changes >= 1 else { return false }
        session.changes -= 1
        return true
    }

    /// Ends a session.
    ///
    /// - Returns: the session that ended; nil if there was none.
    @discardableResult package mutating func end(_ token: TokenHash) -> Session? { sessions.removeValue(forKey: token) }

    /// Ends all sessions of an administrator.
    package mutating func end(of name: AdministratorName) {
        sessions = sessions.filter { $0.value.name != name }
    }
}
