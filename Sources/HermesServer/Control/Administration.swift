// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import HermesCore

/// An administrator's operations. They are the same in a running server, which gets them over the control socket, and
/// in a command that has opened the data directory itself.
package struct Administration: Sendable {
    private static let pageSize = 1000

    let messenger: Messenger
    let accounts: AccountService
    let devices: DeviceRegistry
    let store: any MessageStore
    let keys: APIKeyService
    let administrators: AdministratorService
    /// The running server; nil if a command works on the data directory itself.
    let running: RunningServer?

    package init(
        messenger: Messenger,
        store: any MessageStore,
        keys: APIKeyService,
        administrators: AdministratorService,
        running: RunningServer? = nil
    ) {
        self.running = running
        self.keys = keys
        self.administrators = administrators
        self.messenger = messenger
        accounts = messenger.accounts
        devices = messenger.devices
        self.store = store
    }

    /// Carries out one request. An error becomes a response, because the response goes to another process.
    package func perform(_ request: ControlRequest) async -> ControlResponse {
        do throws(HermesError) {
            return try await respond(to: request)
        } catch {
            return .failed(code: error.code.rawValue, message: error.message)
        }
    }

    private func respond(to request: ControlRequest) async throws(HermesError) -> ControlResponse {
        switch request {
        case .addUser(let nickName, let password):
            let account = try await accounts.createAccount(nickName: nickName, password: password)
            return .users([user(account)])
        case .listUsers(let after):
            let page = try await accounts.accounts(after: UserID(rawValue: after), limit: Self.pageSize)
            return .users(page.map(user))
        case .setPassword(let nickName, let password):
            try await accounts.setPassword(of: find(nickName).id, to: password)
            return .done
        case .setDisabled(let nickName, let isDisabled):
            try await accounts.setDisabled(find(nickName).id, isDisabled)
            return .done
        case .deleteUser(let nickName):
            try await messenger.deleteAccount(find(nickName).id)
            return .done
        case .listDevices(let nickName):
            let account = try await find(nickName)
            let online = await devices.connectedDevices(of: account.id)
            let devices = try await accounts.devices(of: account.id)
            return .devices(devices.map { device($0, isOnline: online.contains($0.description.id)) })
        case .removeDevice(let nickName, let device):
            let account = try await find(nickName)
            guard
                let id = DeviceID(device),
                try await accounts.devices(of: account.id).contains(where: { $0.description.id == id })
            else { throw HermesError(.notFound, "\(account.nickName) has no device \"\(device)\".") }
            try await accounts.removeDevice(id, of: account.id)
            return .done
        case .listConversations(let nickName, let place, let limit):
            return try await conversations(of: find(nickName), after: place, limit: limit)
        case .listClients, .disconnectClient, .figureHistory:
            return try await respond(toListRequest: request, assembly())
        case .createAPIKey(let name, let scopes):
            let scopes = scopes == "all" ? Set(APIScope.allCases) : try APIScope.list(scopes)
            return .apiKeyCreated(secret: try await keys.create(name: name, scopes: scopes).secret)
        case .listAPIKeys:
            return .apiKeys(try await keys.keys().map(apiKey))
        case .revokeAPIKey(let name):
            try await keys.revoke(name: name)
            return .done
        case .createInvitation(let name, let uses, let days):
            return .invitationCreated(
                code: try await accounts.invitations.create(name: name, uses: uses, days: days).code
            )
        case .listInvitations:
            return .invitations(try await accounts.invitations.invitations().map(invitation))
        case .revokeInvitation(let name):
            try await accounts.invitations.revoke(name: name)
            return .done
        case .addAdministrator, .listAdministrators, .removeAdministrator, .setAdministratorPassword,
            .setAdministratorRole, .newSecondFactor, .removeSecondFactor, .auditLog:
            return try await respond(toAdministratorsRequest: request)
        case .trace, .stats, .deliveries:
            return try respond(toViewRequest: request)
        case .backup(let path):
            let accounts = try await store.backup(to: path)
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            return .backedUp(accounts: accounts, bytes: (attributes?[.size] as? NSNumber)?.int64Value ?? 0)
        }
    }

    private func find(_ nickName: String) async throws(HermesError) -> Account {
        let name = try NickName(nickName)
        guard let account = try await accounts.account(.nickName(name)) else {
            throw HermesError(.notFound, "There is no account \"\(name)\".")
        }
        return account
    }

    private func user(_ account: Account) -> ControlUser {
        ControlUser(
            id: account.id.rawValue,
            nickName: account.nickName.rawValue,
            isDisabled: account.isDisabled,
            createdAt: account.createdAt.rawValue,
            isOnline: devices.isOnline(account.id)
        )
    }

    private func apiKey(_ key: APIKey) -> ControlAPIKey {
        ControlAPIKey(
            name: key.name,
            scopes: APIScope.text(key.scopes),
            createdAt: key.createdAt.rawValue,
            lastUsedAt: key.lastUsedAt?.rawValue
        )
    }

    private func invitation(_ invitation: Invitation) -> ControlInvitation {
        ControlInvitation(
            name: invitation.name,
            uses: invitation.uses,
            used: invitation.used,
            createdAt: invitation.createdAt.rawValue,
            expiresAt: invitation.expiresAt?.rawValue
        )
    }

    private func device(_ device: Device, isOnline: Bool) -> ControlDevice {
        ControlDevice(
            id: device.description.id.rawValue,
            name: device.description.name,
            platform: device.description.platform,
            lastSeenAt: device.lastSeenAt.rawValue,
            cursor: device.cursor,
            isOnline: isOnline
        )
    }
}
