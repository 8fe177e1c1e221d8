// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a key of the HTTP API may do.
package enum APIScope: String, Sendable, Hashable, CaseIterable {
    /// Push to users, devices, topics, rooms and everyone.
    case push
    /// Read accounts and their devices.
    case usersRead = "users:read"
    /// Create, change and delete accounts, remove devices.
    case usersWrite = "users:write"
    /// Issue and revoke login tokens: act as anybody.
    case tokensWrite = "tokens:write"
    /// Read conversations.
    case messagesRead = "messages:read"
    /// Send messages as anybody.
    case messagesWrite = "messages:write"
    /// See which rooms there are.
    case roomsRead = "rooms:read"
    /// Say something in a room, remove somebody from it.
    case roomsWrite = "rooms:write"
    /// Read retained publications.
    case topicsRead = "topics:read"
    /// Publish, delete retained publications.
    case topicsWrite = "topics:write"
    /// Read statistics.
    case statsRead = "stats:read"

    /// Reads a list as people write it, `push,users:read`.
    ///
    /// - Throws: `.invalidArgument`; the message names what is wrong and what is allowed.
    package static func list(_ text: String) throws(HermesError) -> Set<APIScope> {
        var scopes: Set<APIScope> = []
        for part in text.split(separator: ",") {
            guard let scope = APIScope(rawValue: String(part)) else {
                let allowed = allCases.map(\.rawValue).joined(separator: ", ")
                throw HermesError(.invalidArgument, "There is no scope \"\(part.prefix(64))\". Scopes: \(allowed).")
            }
            scopes.insert(scope)
        }
        guard !scopes.isEmpty else { throw HermesError(.invalidArgument, "A key needs a scope at least.") }
        return scopes
    }

    /// The list as ``list(_:)`` reads it, in the order of the cases.
    package static func text(_ scopes: Set<APIScope>) -> String {
        allCases.filter(scopes.contains).map(\.rawValue).joined(separator: ",")
    }
}

/// A key of the HTTP API, without its secret.
package struct APIKey: Sendable, Hashable {
    package let id: Int64
    /// For people; no two are the same.
    package let name: String
    package let scopes: Set<APIScope>
    package let createdAt: Timestamp
    /// About a minute exact; nil: never.
    package let lastUsedAt: Timestamp?

    package init(id: Int64, name: String, scopes: Set<APIScope>, createdAt: Timestamp, lastUsedAt: Timestamp? = nil) {
        self.id = id
        self.name = name
        self.scopes = scopes
        self.createdAt = createdAt
        self.lastUsedAt = lastUsedAt
    }
}

/// A key that is to be stored.
package struct NewAPIKey: Sendable, Hashable {
    package let name: String
    package let scopes: Set<APIScope>
    /// All that is kept of the secret.
    package let hash: TokenHash

    package init(name: String, scopes: Set<APIScope>, hash: TokenHash) {
        self.name = name
        self.scopes = scopes
        self.hash = hash
    }
}
