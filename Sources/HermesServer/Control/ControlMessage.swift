// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A request of a command, such as `hermes user` or `hermes stats`: one line of JSON over the control socket.
package enum ControlRequest: Codable, Sendable, Hashable {
    case addUser(nickName: String, password: String)
    /// Accounts with an id above `after`, at most 1,000.
    case listUsers(after: Int32)
    case setPassword(nickName: String, password: String)
    case setDisabled(nickName: String, isDisabled: Bool)
    case deleteUser(nickName: String)
    case listDevices(nickName: String)
    /// Conversations after a place such as `user:7`; nil starts with the first conversation.
    case listConversations(nickName: String, after: String?, limit: Int)
    case removeDevice(nickName: String, device: String)
    /// Connected MQTT clients with a number above `after`, whose client ids or owners contain the text.
    case listClients(after: UInt64, text: String, limit: Int)
    case disconnectClient(number: UInt64)
    /// The figures with these names over time; all figures if there are no names.
    case figureHistory(names: [String], isMonth: Bool)
    /// Scopes separated by commas, or "all".
    case createAPIKey(name: String, scopes: String)
    case listAPIKeys
    case revokeAPIKey(name: String)
    /// An invitation for this number of accounts, for this number of days; 0 days means forever.
    case createInvitation(name: String, uses: Int, days: Int)
    case listInvitations
    case revokeInvitation(name: String)
    /// The role is a name of ``AdministratorRole``.
    case addAdministrator(name: String, role: String, password: String)
    case listAdministrators
    case removeAdministrator(name: String)
    case setAdministratorPassword(name: String, password: String)
    case setAdministratorRole(name: String, role: String)
    /// Replaces the second factor.
    case newSecondFactor(name: String)
    case removeSecondFactor(name: String)
    /// The entries of the audit log before the entry with this number, the newest first; nil starts with the newest
    /// entry.
    case auditLog(before: Int64?, limit: Int)
    /// The steps of the messages with this id or client id.
    case trace(id: String)
    /// The figures of the console for a ``DeliveryHistory/Period``; nil means the last hour.
    case stats(period: String?)
    /// The reports of clients about deliveries for a ``DeliveryHistory/Period``; nil means the last hour.
    case deliveries(period: String?)
    /// Writes a backup to an absolute path at which there is no file yet.
    case backup(path: String)
}

/// The answer to a request, also one line of JSON.
package enum ControlResponse: Codable, Sendable, Hashable {
    case done
    case users([ControlUser])
    case devices([ControlDevice])
    /// `next` is the place after which the next page begins; nil if this is the last page.
    case conversations([ControlConversation], next: String?)
    case clients([ControlMQTTClient])
    case disconnected(clientID: String)
    case figureHistory(ControlHistory)
    case apiKeyCreated(secret: String)
    case apiKeys([ControlAPIKey])
    case invitationCreated(code: String)
    case invitations([ControlInvitation])
    case administrators([ControlAdministrator])
    /// The secret for authenticator apps, and the codes that replace a lost app.
    case secondFactor(address: String, secret: String, recovery: [String])
    case auditEntries([ControlAuditEntry])
    case traces([ControlTrace])
    case stats(ControlStats)
    case deliveries([ControlDeliveries])
    /// A backup was written. `accounts` is the number of its accounts; nil if it is unknown. `bytes` is the size of
    /// its file.
    case backedUp(accounts: Int?, bytes: Int64)
    /// The code is a number of `docs/errors.md`.
    case failed(code: UInt32, message: String)
}

/// An account as `hermes user list` shows it.
package struct ControlUser: Codable, Sendable, Hashable {
    package var id: Int32
    package var nickName: String
    package var isDisabled: Bool
    /// In milliseconds since 1970.
    package var createdAt: Int64
    package var isOnline: Bool
}

/// A device as `hermes user devices` shows it.
package struct ControlDevice: Codable, Sendable, Hashable {
    package var id: String
    package var name: String
    package var platform: String
    /// In milliseconds since 1970.
    package var lastSeenAt: Int64
    /// The number of the last inbox entry that the device has acknowledged.
    package var cursor: UInt64
    package var isOnline: Bool
}

/// An invitation as `hermes invitation list` shows it.
package struct ControlInvitation: Codable, Sendable, Hashable {
    package var name: String
    package var uses: Int
    package var used: Int
    /// In milliseconds since 1970.
    package var createdAt: Int64
    /// In milliseconds since 1970; nil means never.
    package var expiresAt: Int64?
}

/// A key of the HTTP API as `hermes apikey list` shows it.
package struct ControlAPIKey: Codable, Sendable, Hashable {
    package var name: String
    /// The scopes, separated by commas.
    package var scopes: String
    /// In milliseconds since 1970.
    package var createdAt: Int64
    /// In milliseconds since 1970; nil means never.
    package var lastUsedAt: Int64?
}

/// An administrator as `hermes admin list` shows it.
package struct ControlAdministrator: Codable, Sendable, Hashable {
    package var name: String
    package var role: String
    package var hasSecondFactor: Bool
    /// In milliseconds since 1970.
    package var createdAt: Int64
    /// In milliseconds since 1970; nil means never.
    package var lastLoginAt: Int64?
}

/// An entry of the audit log as `hermes admin audit` shows it.
package struct ControlAuditEntry: Codable, Sendable, Hashable {
    package var id: Int64
    /// In milliseconds since 1970.
    package var time: Int64
    package var who: String
    package var address: String
    package var action: String
    package var target: String
    package var result: String
}
