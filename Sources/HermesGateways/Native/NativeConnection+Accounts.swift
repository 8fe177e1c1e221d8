// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

/// Requests about accounts and devices.
extension NativeConnection {
    func register(_ request: Hermes_V1_Register, id: UInt64) {
        do throws(HermesError) { logIn(try NativeLogin(request), id: id) } catch { fail(id, error) }
    }

    func authenticate(_ request: Hermes_V1_Authenticate, id: UInt64) {
        do throws(HermesError) { logIn(try NativeLogin(request), id: id) } catch { fail(id, error) }
    }

    private func logIn(_ request: NativeLogin, id: UInt64) {
        connection.charge(request.cost)
        connection.asksToAttach()
        let accounts = messenger.accounts
        let address = connection.remoteHost
        connection.ask { () async throws(HermesError) in
            try await request.perform(by: accounts, address: address)
        } then: { [self] result in
            switch result {
            case .failure(let error):
                connection.loginFailed(error.code, user: request.userName, client: request.device.id.rawValue)
                fail(id, error)
            case .success(let outcome):
                let (session, cursor) = request.welcome(outcome, on: connection, in: environment)
                succeed(id, .session(session))
                authenticated(outcome.login, after: cursor)
            }
        }
    }

    func logOut(_ request: Hermes_V1_LogOut, id: UInt64, from sender: Sender) {
        let accounts = messenger.accounts
        let principal = sender.principal
        let token = sender.login.tokenHash
        loggingOut = id
        connection.ask { () async throws(HermesError) in
            try await accounts.logOut(principal, token: token, removeDevice: request.removeDevice)
        } then: { [self] result in
            loggingOut = nil
            switch result {
            case .failure(let error): fail(id, error)
            case .success:
                succeed(id)
                connection.end(.finished)
            }
        }
    }

    func account(_ request: Hermes_V1_AccountRequest, id: UInt64, from sender: Sender) {
        let accounts = messenger.accounts
        let contacts = messenger.contacts
        let principal = sender.principal
        switch request.request {
        case .get(let selector):
            let key: AccountKey
            do throws(HermesError) {
                key = try NativeTranslation.accountKey(selector, own: principal.user)
            } catch {
                return fail(id, error)
            }
            connection.ask { () async throws(HermesError) in
                guard let account = try await accounts.account(key, for: .account(principal.user)) else {
                    throw HermesError(.notFound, "there is no such account")
                }
                return (account, try await !contacts.online(among: [account.id], for: principal.user).isEmpty)
            } then: { [self] (result: Result<(account: Account, isOnline: Bool), HermesError>) in
                answer(id, result, own: principal.user)
            }
        case .changeProfile(let change):
            connection.ask { () async throws(HermesError) in
                let account = try await accounts.changeOwnProfile(
                    of: principal.user,
                    nickName: change.hasNickName ? change.nickName : nil,
                    avatarURL: change.hasAvatarURL ? change.avatarURL : nil
                )
                return (account, true)
            } then: { [self] (result: Result<(account: Account, isOnline: Bool), HermesError>) in
                answer(id, result, own: principal.user)
            }
        case .changePassword(let change):
            // This is charged twice, because the server checks the old password and hashes the new one.
            connection.charge(.password)
            connection.charge(.password)
            let token = sender.login.tokenHash
            connection.ask { () async throws(HermesError) in
                try await accounts.changePassword(
                    of: principal,
                    old: change.oldPassword,
                    new: change.newPassword,
                    keeping: token
                )
            } then: { [self] result in
                answer(id, result)
            }
        case .revokeTokens:
            let token = sender.login.tokenHash
            connection.ask { () async throws(HermesError) in
                try await accounts.revokeOtherTokens(of: principal, keeping: token)
            } then: { [self] result in
                answer(id, result)
            }
        case nil:
            fail(id, HermesError(.unsupported, "the server does not know this account request"))
        }
    }

    private func answer(
        _ id: UInt64,
        _ result: Result<(account: Account, isOnline: Bool), HermesError>,
        own: UserID
    ) {
        switch result {
        case .failure(let error): fail(id, error)
        case .success(let (account, isOnline)):
            succeed(id, .account(NativeTranslation.account(account, isOnline: isOnline, isOwn: account.id == own)))
        }
    }

    func answer(_ id: UInt64, _ result: Result<Void, HermesError>) {
        switch result {
        case .failure(let error): fail(id, error)
        case .success: succeed(id)
        }
    }

    func device(_ request: Hermes_V1_DeviceRequest, id: UInt64, from sender: Sender) {
        let accounts = messenger.accounts
        let principal = sender.principal
        switch request.request {
        case .list:
            let registry = messenger.devices
            connection.ask { () async throws(HermesError) in
                (try await accounts.devices(of: principal.user), await registry.connectedDevices(of: principal.user))
            } then: { [self] result in
                switch result {
                case .failure(let error): fail(id, error)
                case .success((let devices, let online)):
                    succeed(
                        id,
                        .devices(NativeTranslation.devices(devices, online: online, current: principal.device))
                    )
                }
            }
        case .remove(let remove):
            let device: DeviceID
            do throws(HermesError) {
                device = try RequestedIDs.device(remove.deviceID)
            } catch {
                return fail(id, error)
            }
            connection.ask { () async throws(HermesError) in
                try await accounts.removeOwnDevice(device, of: principal.user)
            } then: { [self] result in
                answer(id, result)
            }
        case .setPushToken(let request):
            setPushToken(request, id: id, of: principal)
        case .clearPushToken_p:
            let tokens = messenger.pushTokens
            connection.ask { () async throws(HermesError) in
                try await tokens.set(nil, of: principal)
            } then: { [self] result in
                answer(id, result)
            }
        case nil:
            fail(id, HermesError(.unsupported, "the server does not know this device request"))
        }
    }

    private func setPushToken(_ request: Hermes_V1_PushToken, id: UInt64, of principal: Principal) {
        let service: PushToken.Service
        switch request.service {
        case .apns: service = .apns
        case .apnsSandbox: service = .apnsSandbox
        case .fcm: service = .fcm
        case .webPush: service = .webPush
        case .unspecified, .UNRECOGNIZED:
            return fail(id, HermesError(.invalidArgument, "the server does not know this push service"))
        }
        let token: PushToken
        do throws(HermesError) {
            token = try PushToken(service, text: request.token, appID: request.appID)
        } catch {
            return fail(id, error)
        }
        let tokens = messenger.pushTokens
        connection.ask { () async throws(HermesError) in
            try await tokens.set(token, of: principal)
        } then: { [self] result in
            answer(id, result)
        }
    }
}
