// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The identity of a client that publishes and subscribes to topics. ``TopicRules`` are evaluated for it.
package struct ClientIdentity: Sendable, Hashable {
    /// The account and device; nil without an account, or if the client id is not a ``DeviceID``.
    package var principal: Principal?
    /// The account, even if the client id is not a ``DeviceID``; nil without an account.
    package var account: UserID?
    /// The name of the account or the subject of the token, in its compared form (``NickName/key``); nil: anonymous.
    package var userName: String?
    /// The client id as sent by the client or assigned by the server.
    package var clientID: String
    /// The device whose token the client showed; nil if it showed no token. When the server ends that device's
    /// connections, it also ends this client's connection.
    package var tokenOwner: DeviceID?
    /// The token's own restrictions; nil: only the rules decide.
    package var claims: TopicClaims?
    /// The name of the API key, for a request of the HTTP API; otherwise nil. Of the configured ``TopicRules``, only
    /// those that name this key apply to such requests.
    package var apiKey: String?
    /// When the token expires and ends the connection; nil: never.
    package var expiresAt: Timestamp?

    package init(
        principal: Principal? = nil,
        account: UserID? = nil,
        userName: String? = nil,
        clientID: String,
        tokenOwner: DeviceID? = nil,
        claims: TopicClaims? = nil,
        apiKey: String? = nil,
        expiresAt: Timestamp? = nil
    ) {
        self.principal = principal
        self.account = account ?? principal?.user
        self.userName = userName
        self.clientID = clientID
        self.tokenOwner = tokenOwner ?? principal?.tokenOwner
        self.claims = claims
        self.apiKey = apiKey
        self.expiresAt = expiresAt
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
