// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// The login of the native protocol in CONNECT (4.12). The authentication data of CONNECT is a packet with `register`
/// or `authenticate`. The authentication data of CONNACK is the answer: a packet with the session or the error.
extension MQTTConnection {
    static let nativeMethod = "hermes.v1"

    func logInNatively(_ connect: MQTTConnect) {
        let request: NativeLogin
        do {
            request = try nativeLogin(connect)
        } catch {
            return refuseNatively((error as? HermesError) ?? HermesError(.invalidArgument, "\(error)"), connect)
        }
        guard request.device.id.rawValue == connect.clientID else {
            let error = HermesError(.invalidArgument, "the client identifier and device.id have to be the same")
            return refuseNatively(error, with: .clientIdentifierNotValid, connect)
        }
        let attempt = MQTTConnectAttempt(
            connect: connect,
            loginStamp: environment.messenger.durable.loginBegins()
        )
        if outbound.maxPacketBytes < .max, let answer = request.longestWelcome(on: connection, in: environment),
            !fits(answer, attempt)
        {
            // The text is short, so that it fits into a CONNACK that is too small for the session.
            let error = HermesError(.tooLarge, "registering needs a larger Maximum Packet Size")
            return refuseNatively(error, with: .packetTooLarge, connect)
        }
        if let name = request.newName, let problem = refusal(of: name, attempt) {
            return refuseNatively(problem, connect, user: request.userName)
        }
        connection.charge(request.cost)
        let accounts = environment.messenger.accounts
        let address = connection.remoteHost
        connection.ask { () async throws(HermesError) in
            try await request.perform(by: accounts, address: address)
        } then: { [self] result in
            guard phase == .connecting else { return }
            switch result {
            case .failure(let error):
                refuseNatively(error, connect, user: request.userName)
            case .success(let outcome): loggedInNatively(outcome, request, attempt)
            }
        }
    }

    /// Reads the login from the authentication data.
    ///
    /// - Throws: HermesError or WireError if CONNECT does not contain a valid login.
    private func nativeLogin(_ connect: MQTTConnect) throws -> NativeLogin {
        guard let data = connect.authenticationData else {
            throw HermesError(.invalidArgument, "the authentication data has to be a hermes.v1.Packet")
        }
        let packet = try Hermes_V1_Packet(wire: data) { connection.charge(.parts($0)) }
        guard let request = try NativeLogin(packet) else {
            throw HermesError(.notAuthenticated, "the packet in CONNECT has to register or to authenticate")
        }
        return request
    }

    /// Whether the client accepts a CONNACK with this session [MQTT-3.1.2-24]. A registration must not create an
    /// account before this is known.
    private func fits(_ session: Hermes_V1_Session, _ attempt: MQTTConnectAttempt) -> Bool {
        let connect = attempt.connect
        let granted = grants(attempt, clientID: connect.clientID, sessionExpiry: sessionExpiry(of: connect))
        let properties = MQTTProperties(granted + native(.session(session)))
        return bytes(of: .connack(MQTTConnack(reason: .success, properties: properties))) != nil
    }

    private func loggedInNatively(
        _ outcome: NativeLogin.Outcome,
        _ request: NativeLogin,
        _ attempt: MQTTConnectAttempt
    ) {
        let login = outcome.login
        let identity = ClientIdentity(
            principal: login.principal,
            userName: login.principal.nickName.key,
            clientID: attempt.connect.clientID
        )
        guard allowsNativePackets(environment.access.current.bound(to: identity)) else {
            return refuseNatively(Self.deniedPackets, attempt.connect, user: identity.userName)
        }
        let (session, cursor) = request.welcome(outcome, on: connection, in: environment)
        let account = MQTTAccountState(admission: nil, device: request.device, isIDAssigned: false, login: login)
        let inbox = MQTTInbox(MQTTInbox.Form(isJSON: false, qos: .atMostOnce), cursor: cursor)
        inbox.welcome = session
        account.inbox = inbox
        accept(identity, account, attempt)
    }

    private static let deniedPackets = HermesError(
        .forbidden,
        "the rules of this server deny this client \(MQTTInbox.Topic.up) and \(MQTTInbox.Topic.down)"
    )

    private func allowsNativePackets(_ rules: BoundTopicRules) -> Bool {
        rules.allows(.publish, MQTTInbox.Topic.up) && rules.allows(.subscribe, MQTTInbox.Topic.down)
    }

    /// Returns the reason why the rules refuse a client that registers, or its will; nil if there is none. This must be
    /// known before the account is created. The account's number is not known yet, so no rule for it applies.
    private func refusal(of name: NickName, _ attempt: MQTTConnectAttempt) -> HermesError? {
        let account = UserID(rawValue: .max)
        let identity = ClientIdentity(account: account, userName: name.key, clientID: attempt.connect.clientID)
        let rules = environment.access.current.bound(to: identity)
        guard allowsNativePackets(rules) else { return Self.deniedPackets }
        guard let will = attempt.connect.will, !rules.allows(.publish, will.topic) else { return nil }
        return HermesError(.forbidden, Self.willNotAuthorized.message)
    }

    /// Returns CONNACK's properties for a client that logged in with a packet of the native protocol; empty for other
    /// clients.
    func nativeWelcome(_ client: MQTTClientState) -> [MQTTProperty] {
        guard let inbox = client.inbox, let session = inbox.welcome else { return [] }
        inbox.welcome = nil
        return native(.session(session))
    }

    /// Refuses CONNECT. If the reason is the client's credentials or rights, the refusal counts as a failed login.
    ///
    /// - Parameters:
    ///   - reason: the reason code of CONNACK; nil if the error determines it.
    ///   - user: the name that the client gave; nil if it gave none.
    private func refuseNatively(
        _ error: HermesError,
        with reason: MQTTReasonCode? = nil,
        _ connect: MQTTConnect,
        user: String? = nil
    ) {
        connection.loginFailed(error.code, user: user, client: connect.clientID)
        giveReason(reason ?? MQTTTranslation.connackReason(for: error), error.message, error)
        connection.end(.loginRefused(error.code))
    }

    /// Returns CONNACK's properties for a refused client whose CONNECT has the native protocol's authentication method;
    /// empty for other clients.
    func nativeRefusal(_ parting: Parting) -> [MQTTProperty] {
        guard isNative else { return [] }
        let error = parting.error ?? HermesError(HermesError.Code(rawValue: parting.code), parting.text)
        var result = Hermes_V1_Result()
        result.error = NativeTranslation.error(error)
        return native(result)
    }

    private func native(_ value: Hermes_V1_Result.OneOf_Value) -> [MQTTProperty] {
        var result = Hermes_V1_Result()
        result.value = value
        return native(result)
    }

    /// Returns the properties for the authentication method [MQTT-4.12.0-5] and for the result. The result is in a
    /// packet with the id 1, regardless of the id of the client's packet.
    private func native(_ result: Hermes_V1_Result) -> [MQTTProperty] {
        var packet = Hermes_V1_Packet()
        packet.id = 1
        packet.result = result
        guard let data = try? packet.wireBuffer() else { return [] }
        return [.authenticationMethod(Self.nativeMethod), .authenticationData(data)]
    }
}

extension MQTTConnect {
    var authenticationMethod: String? { properties.authenticationMethod }

    var authenticationData: ByteBuffer? { properties.authenticationData }
}
