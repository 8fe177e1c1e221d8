// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The identity of a client that publishes and subscribes to topics. ``TopicRules`` are evaluated for it.
package struct ClientIdentity: Sendable, Hashable {
    /// The client id as sent by the client or assigned by the server.
    package var clientID: String
    /// The proof of who the client is; nil for an anonymous client, of which there may be very many.
    private var proof: Proof?

    /// The values that an anonymous client does not have.
    private struct Proven: Sendable, Hashable {
        var principal: Principal?
        var account: UserID?
        var userName: String?
        var tokenOwner: DeviceID?
        var claims: TopicClaims?
        var apiKey: String?
        var expiresAt: Timestamp?
        var shown: ShownProof?
    }

    /// Values that the copies of an identity share.
    private final class Proof: Sendable, Hashable {
        let values: Proven

        init(_ values: Proven) { self.values = values }

        static func == (left: Proof, right: Proof) -> Bool { left === right || left.values == right.values }

        func hash(into hasher: inout Hasher) { hasher.combine(values) }
    }

    private var proven: Proven {
        get { proof?.values ?? Proven() }
        set { proof = newValue == Proven() ? nil : Proof(newValue) }
    }

    package init(
        principal: Principal? = nil,
        account: UserID? = nil,
        userName: String? = nil,
        clientID: String,
        tokenOwner: DeviceID? = nil,
        claims: TopicClaims? = nil,
        apiKey: String? = nil,
        expiresAt: Timestamp? = nil,
        shown: ShownProof? = nil
    ) {
        self.clientID = clientID
        proven = Proven(
            principal: principal,
            account: account ?? principal?.user,
            userName: userName,
            tokenOwner: tokenOwner ?? principal?.tokenOwner,
            claims: claims,
            apiKey: apiKey,
            expiresAt: expiresAt,
            shown: shown
        )
    }

    /// The account and device; nil without an account, or if the client id is not a ``DeviceID``.
    package var principal: Principal? { proof?.values.principal }

    /// The account, even if the client id is not a ``DeviceID``; nil without an account.
    package var account: UserID? {
        get { proof?.values.account }
        set { proven.account = newValue }
    }

    /// The name of the account or the subject of the token, in its compared form (``NickName/key``); nil: anonymous.
    package var userName: String? {
        get { proof?.values.userName }
        set { proven.userName = newValue }
    }

    /// The device whose token the client showed; nil if it showed no token. When the server ends that device's
    /// connections, it also ends this client's connection.
    package var tokenOwner: DeviceID? { proof?.values.tokenOwner }

    /// The proof that the client showed at its login.
    package var shown: ShownProof { proof?.values.principal?.shown ?? proof?.values.shown ?? .other }

    /// The token's own restrictions; nil: only the rules decide.
    package var claims: TopicClaims? {
        get { proof?.values.claims }
        set { proven.claims = newValue }
    }

    /// The name of the API key, for a request of the HTTP API; otherwise nil. Of the configured ``TopicRules``, only
    /// those that name this key apply to such requests.
    package var apiKey: String? { proof?.values.apiKey }

    /// When the token expires and ends the connection; nil: never.
    package var expiresAt: Timestamp? {
        get { proof?.values.expiresAt }
        set { proven.expiresAt = newValue }
    }

    /// Creates the identity of a request of the HTTP API.
    package init(apiKey name: String) { self.init(clientID: "", apiKey: name) }

    /// The owner of the client's sessions.
    package var owner: SessionOwner {
        if let account { return .account(account) }
        return userName.map(SessionOwner.subject) ?? .anonymous
    }

    /// The same client under a name that nobody has. It has exactly the permissions that do not depend on the name.
    package var underNoName: ClientIdentity {
        var other = self
        // No ``NickName`` contains this character.
        other.userName = "\u{1}"
        return other
    }
}

/// The topics that a token allows. The token denies all other topics, and the rules may deny more.
package struct TopicClaims: Sendable, Hashable {
    /// The topics that the client may publish to; nil: the token does not restrict them.
    package var publish: [TopicFilter]?
    /// The topics that the client may subscribe to; nil: the token does not restrict them.
    package var subscribe: [TopicFilter]?

    package init(publish: [TopicFilter]? = nil, subscribe: [TopicFilter]? = nil) {
        self.publish = publish
        self.subscribe = subscribe
    }
}

/// An action of a client on a topic.
package enum TopicAction: Sendable, Hashable, CaseIterable {
    case publish
    case subscribe
}
