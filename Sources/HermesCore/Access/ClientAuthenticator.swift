// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Identifies an MQTT client by the password or an access token of an account, by another issuer's token (JWT), or by
/// its certificate. A client without credentials may be anonymous.
package struct ClientAuthenticator: Sendable {
    /// The identity that was found.
    package struct Outcome: Sendable {
        package let identity: ClientIdentity
        /// The proof and the device with which the client's inbox is opened; nil if the client has no account, or if
        /// the client id is not a ``DeviceID``.
        package let device: (admission: Admission, description: DeviceDescription)?
        /// The login of the client's device, if the account already has this device.
        package let login: Login?

        /// Whether the client logged in with an access token. In that case, no password hash was computed.
        package var isOfToken: Bool { device?.admission.tokenHash != nil }

        init(
            identity: ClientIdentity,
            device: (admission: Admission, description: DeviceDescription)? = nil,
            login: Login? = nil
        ) {
            self.identity = identity
            self.device = device
            self.login = login
        }
    }

    /// The platform that the account's list of devices shows for MQTT clients.
    private static let platform = "MQTT"

    private let accounts: AccountService
    private let verifier: (any TokenVerifier)?
    private let time: any TimeSource
    private let isAnonymousAllowed: Bool

    /// - Parameters:
    ///   - accounts: checks names, passwords and tokens, and delays clients whose logins fail.
    ///   - verifier: checks tokens of other issuers; nil if there are no other issuers.
    ///   - time: the source of the time.
    ///   - isAnonymousAllowed: whether clients may be anonymous.
    package init(
        accounts: AccountService,
        verifier: (any TokenVerifier)? = nil,
        time: any TimeSource,
        isAnonymousAllowed: Bool
    ) {
        self.accounts = accounts
        self.verifier = verifier
        self.time = time
        self.isAnonymousAllowed = isAnonymousAllowed
    }

    /// Identifies a client that shows no credentials. Returns at once.
    package func anonymous(clientID: String) -> Result<Outcome, HermesError> {
        guard isAnonymousAllowed else {
            return .failure(HermesError(.notAuthenticated, "this server needs a user name and a password"))
        }
        return .success(Outcome(identity: ClientIdentity(clientID: clientID)))
    }

    /// Whether a login computes a password hash of the shown secret. If the client has a trusted certificate, the
    /// client's secret is ignored.
    package enum Hashing: Sendable, Hashable {
        case always, never
        /// The secret has the length of an access token. It is hashed only if no such token exists.
        case unlessToken
    }

    package func hashing(of password: ByteBuffer?) -> Hashing {
        guard let password, let secret = String(validating: password.readableBytesView, as: UTF8.self),
            verifier?.isToken(secret) != true
        else { return .never }
        return secret.utf8.count == AccessToken.bytes ? .unlessToken : .always
    }

    /// Identifies a client. Does not register a device.
    ///
    /// - Parameters:
    ///   - userName: the user name from CONNECT. It is ignored if the password is another issuer's token.
    ///   - password: the password field of CONNECT, which contains a password, an access token, or a JWT.
    ///   - clientID: the client id from CONNECT, or the client id that the server assigned.
    ///   - certificateIdentity: the name in the client's certificate, if the certificate is trusted; otherwise nil.
    ///   - address: the peer's address without a port, for limits; nil for local callers.
    /// - Returns: the identity, and the data for opening the client's inbox.
    /// - Throws: `.wrongCredentials`, `.invalidToken`, `.notAuthenticated`, `.accountDisabled`, `.loginDelayed`,
    ///   `.forbidden`, `.overloaded`, `.storageUnavailable`.
    package func logIn(
        userName: String?,
        password: ByteBuffer?,
        clientID: String,
        certificateIdentity: String?,
        address: String?
    ) async throws(HermesError) -> Outcome {
        if let certificateIdentity {
            return try await trusted(VerifiedToken(subject: certificateIdentity), clientID: clientID, address: address)
        }
        guard let password else {
            guard userName == nil else { throw Self.wrongCredentials }
            guard isAnonymousAllowed else {
                throw HermesError(.notAuthenticated, "this server needs a user name and a password")
            }
            return Outcome(identity: ClientIdentity(clientID: clientID))
        }
        guard let secret = String(validating: password.readableBytesView, as: UTF8.self) else {
            throw Self.wrongCredentials
        }
        if let verifier, verifier.isToken(secret) {
            let token = try await accounts.limitingFailures(of: address) { () async throws(HermesError) in
                try await verifier.verify(secret, now: time.latest())
            }
            return try await trusted(token, clientID: clientID, address: address)
        }
        guard let userName else { throw Self.wrongCredentials }
        return try await logIn(
            .passwordOrToken(nickName: userName, secret: secret),
            clientID: clientID,
            address: address
        )
    }

    /// Renews the identity of a client that has logged in with a token and shows a new token on the same connection.
    ///
    /// - Parameters:
    ///   - identity: the current identity.
    ///   - token: a token of the same subject.
    ///   - address: the peer's address without a port, for limits; nil for local callers.
    /// - Returns: the identity with the new token's permissions and expiry.
    /// - Throws: `.invalidToken` if the token is invalid or belongs to another subject; `.loginDelayed`.
    package func renewed(
        _ identity: ClientIdentity,
        with token: String,
        address: String?
    ) async throws(HermesError) -> ClientIdentity {
        guard let verifier, verifier.isToken(token) else {
            throw HermesError(.invalidToken, "show a token of the same issuer as at CONNECT")
        }
        let verified = try await accounts.limitingFailures(of: address) { () async throws(HermesError) in
            try await verifier.verify(token, now: time.latest())
        }
        guard let name = try? NickName(verified.subject), name.key == identity.userName else {
            throw HermesError(.invalidToken, "the token is another user's")
        }
        var renewed = identity
        renewed.claims = verified.claims
        renewed.expiresAt = verified.expiresAt
        return renewed
    }

    private static var wrongCredentials: HermesError { HermesError(.wrongCredentials, "wrong name or password") }

    private func logIn(
        _ credential: Credential,
        clientID: String,
        address: String?
    ) async throws(HermesError) -> Outcome {
        guard let device = DeviceID(clientID) else {
            let admission = try await accounts.admit(credential, device: nil, address: address)
            let identity = ClientIdentity(
                account: admission.account.id,
                userName: admission.account.nickName.key,
                clientID: clientID,
                tokenOwner: admission.tokenOwner,
                shown: admission.shown
            )
            return Outcome(identity: identity)
        }
        let description = DeviceDescription(id: device, name: clientID, platform: Self.platform)
        let (admission, login) = try await accounts.admit(credential, as: description, address: address)
        let identity = ClientIdentity(
            principal: admission.principal(on: device),
            userName: admission.account.nickName.key,
            clientID: clientID
        )
        return Outcome(identity: identity, device: (admission, description), login: login)
    }

    /// Returns the outcome for a name that a certificate or another issuer's token has proved. The identity has the
    /// account with this name if there is one. Otherwise the identity has only the name.
    private func trusted(
        _ token: VerifiedToken,
        clientID: String,
        address: String?
    ) async throws(HermesError) -> Outcome {
        let name: NickName
        do throws(HermesError) {
            name = try NickName(token.subject)
        } catch {
            throw HermesError(.invalidToken, "the authenticated name cannot be a user name: \(error.message)")
        }
        var outcome = Outcome(identity: ClientIdentity(userName: name.key, clientID: clientID))
        if let account = try await accounts.account(name, loggingInAt: address) {
            outcome = try await logIn(.vouched(account.id), clientID: clientID, address: address)
        }
        var identity = outcome.identity
        identity.claims = token.claims
        identity.expiresAt = token.expiresAt
        return Outcome(identity: identity, device: outcome.device, login: outcome.login)
    }
}
