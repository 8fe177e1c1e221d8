// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Method 0: registering, logging in and out, reading accounts.
extension IMPBConnection {
    /// The device id of a client that does not send a device id.
    static let defaultDevice = "impb"

    func user(_ message: IMPB_User_msg, seq: UInt32) {
        switch message.cmd {
        case .signIn:
            guard link == nil else { return refuseSecond(seq) }
            guard let request: IMPB_signin_request = parse(message.body, seq) else { return }
            register(request, seq: seq)
        case .login:
            guard link == nil else { return refuseSecond(seq) }
            guard let request: IMPB_login_request = parse(message.body, seq) else { return }
            logIn(request, seq: seq)
        case .logout:
            guard let sender else { return fail(seq, HermesError(.notAuthenticated, "log in first")) }
            guard let _: IMPB_logout_request = parse(message.body, seq) else { return }
            logOut(seq: seq, from: sender)
        case .userInfo:
            guard let sender else { return fail(seq, HermesError(.notAuthenticated, "log in first")) }
            guard let request: IMPB_User_info_request = parse(message.body, seq) else { return }
            userInfo(request, seq: seq, from: sender)
        case .unused, .UNRECOGNIZED:
            fail(seq, HermesError(.invalidArgument, "user command \(message.cmd.rawValue) has no meaning"))
        }
    }

    private func refuseSecond(_ seq: UInt32) {
        fail(seq, HermesError(.alreadyAuthenticated, "this connection is logged in; use another one"))
    }

    /// Registers an account. The published app logs in afterwards, so the connection stays unauthenticated.
    private func register(_ request: IMPB_signin_request, seq: UInt32) {
        guard let id = DeviceID(Self.defaultDevice) else { return }
        connection.charge(.password)
        let accounts = messenger.accounts
        let address = connection.remoteHost
        connection.ask { () async throws(HermesError) in
            try await accounts.register(
                nickName: request.nickName,
                password: request.pwd,
                invitation: request.invitation,
                device: DeviceDescription(id: id),
                address: address
            )
        } then: { [self] result in
            switch result {
            case .failure(let error):
                connection.loginFailed(error.code, user: request.nickName)
                fail(seq, error)
            case .success(let login):
                registration = login
                var answer = IMPB_sigin_response()
                answer.uid = UInt32(login.principal.user.rawValue)
                answer.token = login.token ?? ""
                succeed(seq, answer)
            }
        }
    }

    private func logIn(_ request: IMPB_login_request, seq: UInt32) {
        let id: DeviceID
        do throws(HermesError) {
            id = try RequestedIDs.device(request.deviceID.isEmpty ? Self.defaultDevice : request.deviceID)
        } catch {
            return fail(seq, error)
        }
        let device = DeviceDescription(id: id, name: request.deviceName, appVersion: request.version)
        let credential: Credential =
            request.token.isEmpty
            ? .password(nickName: request.nickName, password: request.pwd) : .token(request.token)
        let (accounts, devices) = (messenger.accounts, messenger.devices)
        let address = connection.remoteHost
        let registration = registration
        connection.charge(request.token.isEmpty ? .password : .login)
        connection.asksToAttach()
        connection.ask { () async throws(HermesError) in
            let login = try await accounts.logIn(credential, device: device, address: address)
            // This removes the device that the registration created, so that no entries wait for it. The device is
            // kept if another client is connected as this device. A client that uses the device, but is not connected
            // now, loses the device and its token. If the removal fails, the login is still valid.
            if let registration, registration.principal.user == login.principal.user,
                registration.principal.device != login.principal.device,
                await !devices.connectedDevices(of: login.principal.user).contains(registration.principal.device)
            {
                try? await accounts.logOut(registration.principal, token: registration.tokenHash, removeDevice: true)
            }
            return login
        } then: { [self] result in
            switch result {
            case .failure(let error):
                connection.loginFailed(error.code, user: request.nickName, client: id.rawValue)
                fail(seq, error)
            case .success(let login): loggedIn(login, request, seq: seq)
            }
        }
    }

    private func loggedIn(_ login: Login, _ request: IMPB_login_request, seq: UInt32) {
        registration = nil
        var answer = IMPB_login_response()
        answer.uid = UInt32(login.principal.user.rawValue)
        answer.token = login.token ?? request.token
        answer.epoch = login.position.epoch
        answer.headSeq = login.position.head
        answer.acknowledgedSeq = login.device.cursor
        succeed(seq, answer)
        if let waiting = IMPBTranslation.waiting(login) { notify(waiting) }
        var address = DirectAddress(local: request.ip, reported: "", observed: connection.remoteHost)
        address.localPort = UInt16(exactly: request.port) ?? 0
        address.observedPort = UInt16(clamping: connection.remoteAddress?.port ?? 0)
        authenticated(login, at: address)
    }

    private func logOut(seq: UInt32, from sender: Sender) {
        let accounts = messenger.accounts
        let principal = sender.principal
        let token = sender.login.tokenHash
        connection.ask { () async throws(HermesError) in
            try await accounts.logOut(principal, token: token, removeDevice: false)
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success:
                succeed(seq)
                connection.end(.finished)
            }
        }
    }

    private func userInfo(_ request: IMPB_User_info_request, seq: UInt32, from sender: Sender) {
        let user: UserID
        do throws(HermesError) { user = try RequestedIDs.user(request.uid) } catch { return fail(seq, error) }
        let messenger = messenger
        let viewer = sender.principal.user
        connection.ask { () async throws(HermesError) in
            let account = try await messenger.accounts.account(.id(user), for: .account(viewer))
            return (account, try await !messenger.contacts.online(among: [user], for: viewer).isEmpty)
        } then: { [self] (result: Result<(account: Account?, isOnline: Bool), HermesError>) in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success((nil, _)): fail(seq, HermesError(.notFound, "there is no account \(user)"))
            case .success(let (account?, isOnline)):
                var answer = IMPB_User_info_response()
                answer.userInfo = IMPBTranslation.userInfo(account, isOnline: isOnline)
                if user == sender.principal.user, let address = sender.link.attachment.directAddress {
                    answer.userInfo.ipInfo = IMPBTranslation.addresses(address)
                }
                succeed(seq, answer)
            }
        }
    }
}
