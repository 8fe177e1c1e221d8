// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The identity of a client that publishes and subscribes to topics. ``TopicRules`` apply to an identity.
package struct ClientIdentity: Sendable, Hashable {
    /// The client id that the client sent or the server assigned.
    package var clientID: String
    /// The details; nil for an anonymous client. This saves memory, because there may be very many anonymous clients.
    private var shared: SharedDetails?

    /// The values that an anonymous client does not have.
    private struct Details: Sendable, Hashable {
        var principal: Principal?
        var account: UserID?
        var userName: String?
        var tokenOwner: DeviceID?
        var claims: TopicClaims?
        var apiKey: String?
        var expiresAt: Timestamp?
    }

    /// The details that the copies of an identity share.
    private final class SharedDetails: Sendable, Hashable {
        let details: Details
        /// The proof that the client showed, if the client has no principal. The proof is not part of the identity.
        let shown: ShownProof

        init(_ details: Details, _ shown: ShownProof) {
            self.details = details
            self.shown = shown
        }

        static func == (left: SharedDetails, right: SharedDetails) -> Bool {
            left === right || left.details == right.details
        }

        func hash(into hasher: inout Hasher) { hasher.combine(details) }
    }

    private var details: Details {
        get { shared?.details ?? Details() }
        set { set(newValue, shown: shared?.shown ?? .other) }
    }

    private mutating func set(_ details: Details, shown: ShownProof) {
        shared = details == Details() ? nil : SharedDetails(details, shown)
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
        shown: ShownProof = .other
    ) {
        self.clientID = clientID
        let details = Details(
            principal: principal,
            account: account ?? principal?.user,
            userName: userName,
            tokenOwner: tokenOwner ?? principal?.tokenOwner,
            claims: claims,
            apiKey: apiKey,
            expiresAt: expiresAt
        )
        set(details, shown: shown)
    }

    /// The account and device; nil if there is no account, or if the client id is not a ``DeviceID``.
    package var principal: Principal? { shared?.details.principal }

    /// The account, even if the client id is not a ``DeviceID``; nil if there is no account.
    package var account: UserID? {
        get { shared?.details.account }
        set { details.account = newValue }
    }

    /// The name of the account or the subject of the token, in the form for comparison (``NickName/key``); nil if the
    /// client is anonymous.
    package var userName: String? {
        get { shared?.details.userName }
        set { details.userName = newValue }
    }

    /// The device whose token the client showed; nil if it showed no token. When the server ends that device's
    /// connections, it also ends this client's connection.
    package var tokenOwner: DeviceID? { shared?.details.tokenOwner }

    /// The last proof that the client showed, at its login or later. This proof is not part of the identity.
    package var shown: ShownProof { shared?.details.principal?.shown ?? shared?.shown ?? .other }

    /// The token's own restrictions; nil if only the rules decide.
    package var claims: TopicClaims? {
        get { shared?.details.claims }
        set { details.claims = newValue }
    }

    /// The name of the API key for a request of the HTTP API; otherwise nil. A configured rule of ``TopicRules``
    /// applies to such a request only if the rule names this key.
    package var apiKey: String? { shared?.details.apiKey }

    /// The time at which the token expires and the connection ends; nil if the token does not expire.
    package var expiresAt: Timestamp? {
        get { shared?.details.expiresAt }
        set { details.expiresAt = newValue }
    }

    /// Creates the identity of a request of the HTTP API.
    package init(apiKey name: String) { self.init(clientID: "", apiKey: name) }

    /// The owner of the client's sessions.
    package var owner: SessionOwner {
        if let account { return .account(account) }
        return userName.map(SessionOwner.subject) ?? .anonymous
    }

    /// The key of the client's session.
    package var sessionKey: SessionKey { SessionKey(owner: owner, clientID: clientID) }

    /// The same client with a name that no client has. This identity has exactly the permissions that do not depend on
    /// the name.
    package var underNoName: ClientIdentity {
        var other = self
        // No ``NickName`` contains this character.
        other.userName = "\u{1}"
        return other
    }
}

/// The topics that a token allows. The token denies all other topics, and the rules may deny more.
package struct TopicClaims: Sendable, Hashable {
    /// The topics that the client may publish to; nil if the token does not restrict them.
    package var publish: [TopicFilter]?
    /// The topics that the client may subscribe to; nil if the token does not restrict them.
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
