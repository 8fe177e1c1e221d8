// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Creates administrators, logs them in to the console, and keeps the audit log. Thread-safe.
///
/// State: one `Mutex` around the limits of logins and the sessions; nothing is called while it is locked.
package final class AdministratorService: Sendable {
    /// The number of recovery codes of a second factor.
    static let recoveryCodes = 8
    /// The minimum length of a password, in characters. The limit is higher than the default for accounts, because an
    /// administrator's password gives access to everything.
    package static let minPasswordCharacters = 10
    package static let maxPasswordBytes = 256

    /// A new second factor, in the form that its owner sees only once.
    package struct NewSecondFactor: Sendable {
        /// The `otpauth` address that authenticator apps read.
        package let address: String
        /// The secret as text, for typing it into an app.
        package let secret: String
        package let recovery: [String]
    }

    package enum LoginResult: Sendable {
        case session(AccessToken, ConsoleSessions.Session)
        /// The name and the password are right; the code of the second factor is missing.
        case codeNeeded
    }

    /// An administrator at a network address.
    struct Place: Sendable, Hashable {
        let name: AdministratorName
        let address: String
    }

    struct State {
        var throttle: LoginThrottle
        /// For each administrator and address, the charge of the last attempt that lacked only the code of the second
        /// factor.
        var codesNeeded: [Place: LoginThrottle.Charge] = [:]
        var sessions: ConsoleSessions
        var known: Set<Place> = []
        /// The administrators as they were when their sessions began, by the hash of the session's token. Some of these
        /// sessions may have ended.
        var standings: [TokenHash: Administrator] = [:]
        /// Whether ``standings`` must be compared with the store.
        var mustCompare = false
        /// Whether a task is comparing ``standings`` with the store.
        var isComparing = false

        /// - Returns: the administrators to compare with the store; nil if no comparison is needed.
        mutating func beginComparing() -> [TokenHash: Administrator]? {
            isComparing = mustCompare
            mustCompare = false
            return isComparing ? standings : nil
        }

        mutating func began(_ session: TokenHash, of administrator: Administrator) {
            standings = standings.filter { sessions.has($0.key) }
            standings[session] = administrator
        }
    }

    private static let maxKnownPlaces = 1_000

    let store: any AdministratorStore
    let time: any TimeSource
    let cluster: ClusterMember?
    /// The gate for reads. The reads of logins take turns by address.
    let reads = ReadGate(maxRunning: 1, maxWaiting: .max)
    private let hasher: PasswordHasher
    private let auditLimits: AuditLimits
    let state: Mutex<State>
    /// Called when an event was stored in the audit log, or when storing the event failed (`failure`).
    package let recorded = Hook<(event: AuditEvent, failure: HermesError?)>()

    /// - Parameters:
    ///   - passwordCost: the cost of password hashes; only tests use a lower cost.
    ///   - cluster: the other nodes; nil if there are no other nodes.
    package init(
        store: any AdministratorStore,
        time: any TimeSource,
        sessions: ConsoleSessions.Limits = ConsoleSessions.Limits(),
        throttle: LoginThrottle.Limits = LoginThrottle.Limits(maxEntries: 4_096),
        audit: AuditLimits = AuditLimits(),
        passwordCost: PasswordHasher.Parameters = .standard,
        cluster: ClusterMember? = nil
    ) {
        self.store = store
        self.time = time
        self.cluster = cluster
        auditLimits = audit
        hasher = PasswordHasher(parameters: passwordCost, maxConcurrent: 1, maxWaiting: 64, maxWaitingOfOne: 4)
        state = Mutex(State(throttle: LoginThrottle(limits: throttle), sessions: ConsoleSessions(limits: sessions)))
        observe(cluster)
    }

    // MARK: Administrators

    package func administrators() async throws(HermesError) -> [Administrator] {
        try await reads.turn(of: .server) { () async throws(HermesError) in try await store.administrators() }
    }

    /// - Throws: `.invalidArgument`, `.nameTaken`, `.overloaded`, `.storageUnavailable`.
    package func create(
        name: String,
        role: AdministratorRole,
        password: String
    ) async throws(HermesError) -> Administrator {
        let name = try AdministratorName(name)
        try Self.check(newPassword: password)
        let administrator = Administrator(
            name: name,
            role: role,
            password: try await hasher.hash(password),
            createdAt: time.now()
        )
        try await store.create(administrator)
        return administrator
    }

    /// Removes an administrator and ends all sessions of that administrator.
    package func remove(_ name: AdministratorName) async throws(HermesError) {
        try await store.remove(administrator: name)
        endSessions(of: name)
    }

    /// Sets an administrator's password and ends all sessions of that administrator.
    package func setPassword(of name: AdministratorName, to password: String) async throws(HermesError) {
        try Self.check(newPassword: password)
        try await store.change(name, .password(try await hasher.hash(password)))
        endSessions(of: name)
    }

    /// Changes the role of an administrator and ends all sessions of that administrator, because they have the old
    /// role.
    package func setRole(of name: AdministratorName, to role: AdministratorRole) async throws(HermesError) {
        try await store.change(name, .role(role))
        endSessions(of: name)
    }

    /// Gives an administrator a new second factor, and ends all sessions of that administrator. Every login needs the
    /// second factor from now on.
    package func newSecondFactor(of name: AdministratorName) async throws(HermesError) -> NewSecondFactor {
        let secret = randomBytes(TimeCode.secretBytes)
        // Each recovery code has 80 random bits. Nobody can guess it, so its hash needs no salt.
        let codes = (0..<Self.recoveryCodes).map { _ in TimeCode.base32(randomBytes(10)).lowercased() }
        let factor = SecondFactor(secret: secret, recovery: codes.compactMap(TokenHash.init(ofToken:)))
        try await store.change(name, .secondFactor(factor))
        endSessions(of: name)
        return NewSecondFactor(
            address: TimeCode.address(of: name, secret: secret),
            secret: TimeCode.base32(secret),
            recovery: codes
        )
    }

    package func removeSecondFactor(of name: AdministratorName) async throws(HermesError) {
        try await store.change(name, .secondFactor(nil))
        endSessions(of: name)
    }

    private static func check(newPassword password: String) throws(HermesError) {
        guard
            password.count >= minPasswordCharacters, password.utf8.count <= maxPasswordBytes,
            PasswordHasher.isAllowed(password)
        else {
            throw HermesError(
                .ofValue(password.utf8.count, atMost: maxPasswordBytes),
                "An administrator's password has at least \(minPasswordCharacters) characters and at most "
                    + "\(maxPasswordBytes) bytes."
            )
        }
    }

    // MARK: Logging in

    /// Logs an administrator in and begins a new session.
    ///
    /// - Parameters:
    ///   - code: a code of the second factor, or a recovery code; nil if no code was given.
    ///   - address: the network address, for limits and the audit log.
    ///   - replacing: the session that the client has before the login. It ends if the login succeeds.
    /// - Throws: `.wrongCredentials`, `.loginDelayed`, `.overloaded`, `.storageUnavailable`.
    package func logIn(
        name text: String,
        password: String,
        code: String?,
        address: String,
        replacing old: TokenHash?
    ) async throws(HermesError) -> LoginResult {
        let name = try? AdministratorName(text)
        let network = NetworkAddress.key(of: address)
        let charge = try begin(name, network)
        let administrator: Administrator?
        let verification: PasswordHasher.Verification
        do throws(HermesError) {
            administrator =
                if let name {
                    try await reads.turn(of: .address(network)) { () async throws(HermesError) in
                        try await store.administrator(name)
                    }
                } else { nil }
            verification = try await hasher.verify(
                String(decoding: password.utf8.prefix(Self.maxPasswordBytes + 1), as: UTF8.self),
                against: administrator?.password,
                .stranger(address: network)
            )
        } catch {
            takeBack(charge)
            throw error
        }
        guard let administrator, verification.isRight else {
            cluster?.tell(failed: charge)
            throw await refused(text, address, "wrong name or password")
        }
        if let factor = administrator.secondFactor {
            guard let code = code.map({ $0.filter { !$0.isWhitespace } }), !code.isEmpty else {
                // The attempt stays charged until the right code follows. Otherwise somebody with a stolen password
                // could try codes without end. The answer `codeNeeded` reveals that the password is right. So the
                // attempt is recorded in the audit log, where the password's owner can see it.
                withoutCode(Place(name: administrator.name, address: network), charge)
                let result = "right password, no code yet"
                await recordRefusal(of: text, address, result, nil)
                return .codeNeeded
            }
            let isRight: Bool
            do throws(HermesError) {
                isRight = try await self.isRight(code, factor, administrator)
            } catch {
                takeBack(charge)
                throw error
            }
            guard isRight else {
                cluster?.tell(failed: charge)
                throw await refused(text, address, "wrong code")
            }
        }
        let now = time.uptime()
        let (token, session) = state.withLock { state in
            state.throttle.takeBack(charge)
            let place = Place(name: administrator.name, address: network)
            if let earlier = state.codesNeeded.removeValue(forKey: place) { state.throttle.takeBack(earlier) }
            if state.known.count >= Self.maxKnownPlaces { state.known.removeAll() }
            state.known.insert(place)
            if let old { state.sessions.end(old) }
            return state.sessions.begin(administrator.name, administrator.role, now: now)
        }
        // A change of this administrator may have just ended the old sessions without ending this new session.
        let current: Administrator?
        do throws(HermesError) {
            current = try await reads.turn(of: .address(network)) { () async throws(HermesError) in
                try await store.administrator(administrator.name)
            }
        } catch {
            logOut(token.hash)
            throw error
        }
        guard administrator.isSame(as: current) else {
            logOut(token.hash)
            throw await refused(text, address, "changed meanwhile")
        }
        if cluster != nil { state.withLock { $0.began(token.hash, of: administrator) } }
        // If one of these writes fails, the login still succeeds, and the next login tries again.
        if let renewed = verification.renewed {
            try? await store.change(administrator.name, .renewedPassword(renewed, of: administrator.password))
            state.withLock { $0.standings[token.hash]?.password = renewed }
        }
        try? await store.change(administrator.name, .loggedIn(time.now()))
        await record(AuditEvent(who: administrator.name.rawValue, address: address, action: "logIn", result: "done"))
        return .session(token, session)
    }

    private func begin(_ name: AdministratorName?, _ network: String) throws(HermesError) -> LoginThrottle.Charge {
        let now = time.uptime()
        let decision = state.withLock { state in
            let isKnown = name.map { state.known.contains(Place(name: $0, address: network)) } ?? false
            let attempt = LoginThrottle.Attempt(
                account: name?.rawValue,
                address: network,
                isAddressKnown: isKnown
            )
            return state.throttle.begin(attempt, now: now)
        }
        switch decision {
        case .go(let charge): return charge
        case .wait(let delay):
            throw HermesError(
                .loginDelayed,
                "Too many failed logins to the console; try again in \(Int((delay / .seconds(1)).rounded(.up))) s.",
                retryAfter: delay
            )
        }
    }

    /// Notes an attempt that lacked only the code.
    private func withoutCode(_ place: Place, _ charge: LoginThrottle.Charge) {
        state.withLock { state in
            if state.codesNeeded.count >= Self.maxKnownPlaces { state.codesNeeded.removeAll() }
            state.codesNeeded[place] = charge
        }
    }

    private func takeBack(_ charge: LoginThrottle.Charge) { state.withLock { $0.throttle.takeBack(charge) } }

    private func isRight(
        _ code: String,
        _ factor: SecondFactor,
        _ administrator: Administrator
    ) async throws(HermesError) -> Bool {
        let step = TimeCode.step(
            of: code,
            secret: factor.secret,
            now: time.latest(),
            after: administrator.usedStep
        )
        if let step { return try await store.use(.step(step), of: administrator.name) }
        guard let hash = TokenHash(ofToken: code.lowercased()), factor.recovery.contains(hash) else { return false }
        return try await store.use(.recovery(hash), of: administrator.name)
    }

    private func refused(_ name: String, _ address: String, _ reason: String) async -> HermesError {
        await recordRefusal(of: name, address, reason, .wrongCredentials)
        return HermesError(.wrongCredentials, "The name, the password or the code is wrong.")
    }

    private func recordRefusal(
        of name: String,
        _ address: String,
        _ reason: String,
        _ code: HermesError.Code?
    ) async {
        await record(
            AuditEvent(
                who: name,
                address: address,
                action: "logIn",
                result: reason,
                code: code,
                isRefused: true
            )
        )
    }

    // MARK: Sessions

    /// Returns the session of a token; nil if there is none.
    ///
    /// - Parameter isUse: false for requests that a page makes without an action of its user. Such requests do not keep
    ///   a session alive.
    package func session(_ token: TokenHash, isUse: Bool) -> ConsoleSessions.Session? {
        let now = time.uptime()
        return state.withLock { $0.sessions.session(token, isUse: isUse, now: now) }
    }

    /// Whether a session may make a change now. If so, the change counts against the session's limit.
    package func mayChange(_ token: TokenHash) -> Bool {
        let now = time.uptime()
        return state.withLock { $0.sessions.mayChange(token, now: now) }
    }

    package func logOut(_ token: TokenHash) { state.withLock { _ = $0.sessions.end(token) } }

    // MARK: The audit log

    /// Records an event about an operation that is already done. If the event cannot be recorded, no error is thrown,
    /// but ``recorded`` reports the failure.
    package func record(_ event: AuditEvent) async {
        let expiry = time.expiryTime()
        var limits = auditLimits
        // A clock that is not confirmed may be wrong, so no entries are deleted because of their age.
        if expiry.storedSince != nil { limits.age = nil }
        var failure: HermesError?
        do throws(HermesError) {
            try await store.record(event, at: expiry.now, keeping: limits)
        } catch {
            failure = error
        }
        recorded((event, failure))
    }

    /// Returns entries of the audit log, with the newest entry first.
    package func auditLog(before id: Int64?, limit: Int) async throws(HermesError) -> [AuditEntry] {
        try await reads.turn(of: .server) { () async throws(HermesError) in
            try await store.auditLog(before: id, limit: limit)
        }
    }
}
