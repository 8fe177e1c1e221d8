// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A permission of a key of the HTTP API.
package enum APIScope: String, Sendable, Hashable, CaseIterable {
    /// Push to users, devices, topics, rooms and everyone.
    case push
    /// Read accounts and their devices.
    case usersRead = "users:read"
    /// Create, change and delete accounts, and remove devices.
    case usersWrite = "users:write"
    /// Issue and revoke login tokens. A key with this scope can therefore act as any account.
    case tokensWrite = "tokens:write"
    /// Read conversations.
    case messagesRead = "messages:read"
    /// Send messages as any account.
    case messagesWrite = "messages:write"
    /// List rooms.
    case roomsRead = "rooms:read"
    /// Send to a room, and remove an account from it.
    case roomsWrite = "rooms:write"
    /// Read retained publications. A key that also has ``eventsRead`` can follow new publications.
    case topicsRead = "topics:read"
    /// Publish, and delete retained publications.
    case topicsWrite = "topics:write"
    /// Read statistics.
    case statsRead = "stats:read"
    /// Follow events as they happen.
    case eventsRead = "events:read"
    /// List the connected MQTT clients with their addresses.
    case clientsRead = "clients:read"
    /// End connections of MQTT clients.
    case clientsWrite = "clients:write"
    /// Read the traces of messages. A trace shows where a message went, but not its content.
    case traceRead = "trace:read"
    /// Read who administers the server, and what the administrators did.
    case auditRead = "audit:read"

    /// Parses a list such as `push,users:read`.
    ///
    /// - Throws: `.invalidArgument`; the message names the error and the allowed values.
    package static func list(_ text: String) throws(HermesError) -> Set<APIScope> {
        var scopes: Set<APIScope> = []
        for part in text.split(separator: ",") {
            guard let scope = APIScope(rawValue: String(part)) else {
                if part == "all" {
                    throw HermesError(.invalidArgument, "\"all\" stands alone: give it without other scopes.")
                }
                let allowed = allCases.map(\.rawValue).joined(separator: ", ")
                throw HermesError(.invalidArgument, "There is no scope \"\(part.prefix(64))\". Scopes: \(allowed).")
            }
            scopes.insert(scope)
        }
        guard !scopes.isEmpty else { throw HermesError(.invalidArgument, "A key needs at least one scope.") }
        return scopes
    }

    /// Returns the list in the format of ``list(_:)``, in the order of the cases.
    package static func text(_ scopes: Set<APIScope>) -> String {
        allCases.filter(scopes.contains).map(\.rawValue).joined(separator: ",")
    }
}

/// A key of the HTTP API, without its secret.
package struct APIKey: Sendable, Hashable {
    package let id: Int64
    /// The unique name of the key, for people.
    package let name: String
    package let scopes: Set<APIScope>
    package let createdAt: Timestamp
    /// The time of the key's last use, accurate to about one minute; nil if the key was never used.
    package let lastUsedAt: Timestamp?

    package init(id: Int64, name: String, scopes: Set<APIScope>, createdAt: Timestamp, lastUsedAt: Timestamp? = nil) {
        self.id = id
        self.name = name
        self.scopes = scopes
        self.createdAt = createdAt
        self.lastUsedAt = lastUsedAt
    }
}

/// A key to be stored.
package struct NewAPIKey: Sendable, Hashable {
    package let name: String
    package let scopes: Set<APIScope>
    /// The hash of the secret. The secret itself is not stored.
    package let hash: TokenHash

    package init(name: String, scopes: Set<APIScope>, hash: TokenHash) {
        self.name = name
        self.scopes = scopes
        self.hash = hash
    }
}
