// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Who a client of the topic plane is: what ``TopicRules`` are asked about.
package struct ClientIdentity: Sendable, Hashable {
    /// The account and device; nil for those without an account, and where the client id is no ``DeviceID``.
    package var principal: Principal?
    /// The name of the account or the subject of the token, in its compared form (``NickName/key``); nil: anonymous.
    package var userName: String?
    /// As the client said it, or as the server assigned it.
    package var clientID: String
    /// What a token allows beside the rules; nil: the rules alone decide.
    package var claims: TopicClaims?
    /// The name of the key, for a request of the HTTP API; nil for everybody else. ``TopicRules`` for clients do not concern
    /// keys, only those that name one do.
    package var apiKey: String?
    /// When the token ends, and the connection with it; nil: never.
    package var expiresAt: Timestamp?

    package init(
        principal: Principal? = nil,
        userName: String? = nil,
        clientID: String,
        claims: TopicClaims? = nil,
        apiKey: String? = nil,
        expiresAt: Timestamp? = nil
    ) {
        self.principal = principal
        self.userName = userName
        self.clientID = clientID
        self.claims = claims
        self.apiKey = apiKey
        self.expiresAt = expiresAt
    }

    /// Whose sessions the client's are: the account's, or nobody's ("") for all anonymous clients.
    package var owner: String { userName ?? "" }
}

/// The topics that a token allows. What it does not allow is denied; what it allows the rules may still deny.
package struct TopicClaims: Sendable, Hashable {
    /// What may be published to; nil: the token says nothing about it.
    package var publish: [TopicFilter]?
    /// What may be subscribed to; nil: the token says nothing about it.
    package var subscribe: [TopicFilter]?

    package init(publish: [TopicFilter]? = nil, subscribe: [TopicFilter]? = nil) {
        self.publish = publish
        self.subscribe = subscribe
    }
}

/// What a client wants to do with a topic.
package enum TopicAction: Sendable, Hashable, CaseIterable {
    case publish
    case subscribe
}
