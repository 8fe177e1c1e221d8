// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Registers accounts, logs them in, keeps their devices and tokens. Safe to call from anywhere.
///
/// Passwords are hashed off the event loops, a bounded number at once; failed logins are delayed per account and per
/// address (``LoginThrottle``).
package final class AccountService: Sendable {
    /// Creates an account and opens its first device.
    ///
    /// - Parameter address: the peer's address without port, for limits; nil for local callers.
    /// - Throws: `.nameTaken`, `.invalidArgument`, `.registrationClosed`, `.storageUnavailable`.
    package func register(
        nickName: String,
        password: String,
        device: DeviceDescription,
        address: String?
    ) async throws(HermesError) -> Login {
        throw HermesError(.unsupported, "not yet")
    }

    /// Logs in by name and password, or by token, and opens the device.
    ///
    /// - Throws: `.wrongCredentials`, `.invalidToken`, `.accountDisabled`, `.loginDelayed`, `.storageUnavailable`.
    package func logIn(
        _ credential: Credential,
        device: DeviceDescription,
        address: String?
    ) async throws(HermesError) -> Login {
        throw HermesError(.unsupported, "not yet")
    }

    /// Finds an account; nil if there is none.
    package func account(_ key: AccountKey) async throws(HermesError) -> Account? { nil }

    /// Revokes the token of this session, and removes its device if asked.
    package func logOut(_ principal: Principal, token: TokenHash?, removeDevice: Bool) async throws(HermesError) {}

    /// The devices of an account, oldest first.
    package func devices(of user: UserID) async throws(HermesError) -> [Device] { [] }

    /// Removes a device, revokes its tokens and ends its session.
    package func removeDevice(_ device: DeviceID, of user: UserID) async throws(HermesError) {}

    /// Changes the profile.
    package func changeProfile(
        of user: UserID,
        nickName: String?,
        avatarURL: String?
    ) async throws(HermesError) -> Account {
        throw HermesError(.unsupported, "not yet")
    }

    /// Changes the password after checking the old one; revokes all other tokens and ends the other sessions.
    package func changePassword(of principal: Principal, old: String, new: String) async throws(HermesError) {}

    /// Sets a password without the old one (administration); revokes all tokens and ends all sessions.
    package func setPassword(of user: UserID, to password: String) async throws(HermesError) {}

    /// Disables or enables an account; disabling ends its sessions.
    package func setDisabled(_ user: UserID, _ isDisabled: Bool) async throws(HermesError) {}

    /// Accounts, ascending by id.
    package func accounts(after id: UserID?, limit: Int) async throws(HermesError) -> [Account] { [] }

    init() {}
}

/// What a client proves who it is with.
package enum Credential: Sendable {
    case password(nickName: String, password: String)
    case token(String)
}

/// A successful login.
package struct Login: Sendable {
    package let principal: Principal
    /// A new token for the next login, in the clear; nil if the login itself was by token.
    package let token: String?
    /// The hash of the token this session stands on, for ``AccountService/logOut(_:token:removeDevice:)``.
    package let tokenHash: TokenHash?
    package let device: Device
    package let position: InboxPosition
}
