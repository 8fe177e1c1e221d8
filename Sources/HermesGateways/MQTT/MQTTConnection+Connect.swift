// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Handling of CONNECT and CONNACK (3.1, 3.2).
extension MQTTConnection {
    func connectReceived(_ frame: MQTTFrame) {
        let connect: MQTTConnect
        do throws(MQTTPacketError) {
            let packet = try MQTTPacket(fromClient: frame, version: .v5)
            connection.charge(.properties(packet.propertyCount))
            guard case .connect(let found) = packet else { return }
            connect = found
        } catch {
            // The packet is malformed, so the charge is for the largest number of properties that can have been parsed.
            let most = min(frame.body.readableBytes / MQTTPacket.minPropertyBytes, 2 * MQTTPacket.maxClientProperties)
            connection.charge(.properties(most))
            return refuse(error)
        }
        version = connect.version
        phase = .connecting
        connection.asksToAttach()
        isNative = connect.authenticationMethod == Self.nativeMethod
        connection.charge(.login)
        let authenticator = environment.authenticator
        let certificate = connection.certificateName
        let hashing = certificate == nil ? authenticator.hashing(of: connect.password) : .never
        if hashing == .always { connection.charge(.password) }
        for case .maximumPacketSize(let bytes) in connect.properties.list { outbound.maxPacketBytes = Int(bytes) }
        if let problem = problem(of: connect) { return refuseConnect(problem, connect) }
        if connect.authenticationMethod != nil { return logInNatively(connect) }
        let clientID = connect.clientID.isEmpty ? Self.randomClientID() : connect.clientID
        if connect.userName == nil, connect.password == nil, certificate == nil {
            let attempt = MQTTConnectAttempt(connect: connect, loginStamp: nil)
            return identified(authenticator.anonymous(clientID: clientID), attempt)
        }
        let attempt = MQTTConnectAttempt(
            connect: connect,
            loginStamp: environment.messenger.durable.loginBegins()
        )
        let address = connection.remoteHost
        connection.ask { () async throws(HermesError) -> ClientAuthenticator.Outcome in
            try await authenticator.logIn(
                userName: connect.userName,
                password: connect.password,
                clientID: clientID,
                certificateIdentity: certificate,
                address: address
            )
        } then: { [self] result in
            if hashing == .unlessToken, Self.isHashed(result) { connection.chargeInTheEnd(.password) }
            identified(result, attempt)
        }
    }

    /// Whether a secret was hashed as a password, because it could have been a token but was not.
    private static func isHashed(_ result: Result<ClientAuthenticator.Outcome, HermesError>) -> Bool {
        switch result {
        case .success(let outcome): !outcome.isOfToken
        case .failure(let error): error.code == .wrongCredentials
        }
    }

    /// Returns the error for the first request in a well-formed CONNECT that the server cannot fulfil; nil if there is
    /// none.
    private func problem(of connect: MQTTConnect) -> MQTTPacketError? {
        if let method = connect.authenticationMethod, method != Self.nativeMethod {
            return MQTTPacketError(
                .badAuthenticationMethod,
                "the only authentication method is \(Self.nativeMethod) [MQTT-4.12.0-1]"
            )
        }
        if connect.authenticationData != nil, connect.authenticationMethod == nil {
            return MQTTPacketError(.protocolError, "authentication data comes without a method (3.1.2.11.10)")
        }
        if connect.clientID.isEmpty, connect.version == .v311, !connect.cleanStart {
            return MQTTPacketError(
                .clientIdentifierNotValid,
                "a kept session needs a client identifier [MQTT-3.1.3-8]"
            )
        }
        guard connect.clientID.utf8.count <= gateway.settings.maxClientIDBytes else {
            return MQTTPacketError(
                .clientIdentifierNotValid,
                "the client identifier is longer than \(gateway.settings.maxClientIDBytes) bytes"
            )
        }
        do throws(MQTTPacketError) { if let will = connect.will { try check(will) } } catch { return error }
        return nil
    }

    /// Checks everything about a will that does not depend on the client's identity. This happens before the login,
    /// so that a refused CONNECT changes nothing.
    private func check(_ will: MQTTWill) throws(MQTTPacketError) {
        guard let topic = TopicName(will.topic), !MQTTInbox.isForServer(topic) else { throw Self.willNotAuthorized }
        try gateway.check(will.qos, isRetained: will.retain, of: "the will")
        try Self.check(will.properties)
        let publication = publication(of: will, to: topic, sender: nil)
        guard willBytes(publication) <= gateway.settings.maxWillBytes else {
            throw MQTTPacketError(
                .packetTooLarge,
                "the will is longer than \(gateway.settings.maxWillBytes) bytes (mqtt.maxWillBytes)"
            )
        }
        let parts = ApplicationTopics.partCount(of: topic, will.payload)
        connection.charge(.parts(parts))
        if ApplicationTopics.contains(will.topic) { connection.charge(.json(will.payload.readableBytes)) }
        let kind = MQTTTranslation.kind(of: publication) { connection.charge(.parts($0)) }
        guard parts <= MessageParts.max, kind != nil else { throw Self.willDoesNotFit }
        do throws(HermesError) {
            try ApplicationTopics.check(topic, will.payload)
        } catch {
            throw MQTTPacketError(.payloadFormatInvalid, "the will: \(error.message)")
        }
    }

    private func willBytes(_ publication: Publication) -> Int {
        publication.topic.rawValue.utf8.count + publication.payload.readableBytes + (publication.details?.weight ?? 0)
    }

    private func publication(of will: MQTTWill, to topic: TopicName, sender: UserID?) -> Publication {
        Publication(
            topic: topic,
            payload: will.payload,
            kind: Publication.plainKind,
            sender: sender,
            qos: MQTTTranslation.qos(will.qos),
            retain: will.retain,
            details: MQTTTranslation.details(of: will.properties, now: now())
        )
    }

    static let willNotAuthorized = MQTTPacketError(
        .notAuthorized,
        "the will's topic may not be published to"
    )
    private static let willDoesNotFit = MQTTPacketError(
        .payloadFormatInvalid,
        "the will does not fit its liveroom-type"
    )

    private static func randomClientID() -> String {
        let letters = "0123456789abcdefghjkmnpqrstvwxyz"
        return "auto-" + String((0..<20).compactMap { _ in letters.randomElement() })
    }

    private func identified(
        _ result: Result<ClientAuthenticator.Outcome, HermesError>,
        _ attempt: MQTTConnectAttempt
    ) {
        guard phase == .connecting else { return }
        switch result {
        case .failure(let error):
            refuseConnect(error, attempt.connect, user: attempt.connect.userName)
        case .success(let outcome):
            accept(outcome, attempt)
        }
    }

    private func accept(_ outcome: ClientAuthenticator.Outcome, _ attempt: MQTTConnectAttempt) {
        let account = outcome.device.map {
            MQTTAccountState(
                admission: $0.admission,
                device: $0.description,
                isIDAssigned: attempt.isIDAssigned,
                login: outcome.login
            )
        }
        accept(outcome.identity, account, attempt)
    }

    /// - Parameter account: the state of a client with an account; nil for a client without an account.
    func accept(_ identity: ClientIdentity, _ account: MQTTAccountState?, _ attempt: MQTTConnectAttempt) {
        let connect = attempt.connect
        let settings = gateway.settings
        let client = MQTTClientState(
            identity: identity,
            key: identity.sessionKey,
            sessionExpiry: sessionExpiry(of: connect),
            inbound: MQTTInbound(version, receiveMaximum: settings.receiveMaximum),
            maxPacketBytes: outbound.maxPacketBytes,
            access: environment.access
        )
        client.account = account
        var receiveMaximum = settings.maxInflight
        var maxAlias: UInt16 = 0
        for property in connect.properties.list {
            switch property {
            case .receiveMaximum(let count):
                account?.receiveMaximum = Int(count)
                receiveMaximum = min(receiveMaximum, Int(count))
            case .topicAliasMaximum(let count): maxAlias = min(count, settings.topicAliasMaximum)
            case .requestProblemInformation(let isWanted): client.wantsProblemInformation = isWanted
            default: break
            }
        }
        if let account {
            receiveMaximum = max(1, min(receiveMaximum, account.receiveMaximum - 1))
            account.ownSlots = account.receiveMaximum - receiveMaximum
            account.inbox?.accepted(ownSlots: account.ownSlots)
        }
        outbound.accepted(receiveMaximum: receiveMaximum, maxAlias: maxAlias)
        if let will = connect.will {
            do throws(MQTTPacketError) { client.will = try pendingWill(will, of: client) } catch {
                return refuseConnect(error, connect, user: identity.userName)
            }
        }
        var attempt = attempt
        if version == .v5 {
            let granted = grants(attempt, clientID: client.key.clientID, sessionExpiry: client.sessionExpiry)
            attempt.granted = MQTTProperties(granted + nativeWelcome(client))
        }
        // The length does not depend on the session, so it is checked before the session is opened. A client that is
        // refused must neither end another connection nor change a session.
        if outbound.maxPacketBytes < .max {
            let connack = MQTTPacket.connack(connack(attempt, sessionPresent: false))
            guard bytes(of: connack) != nil else { return refuse(Self.tooLarge(connack)) }
        }
        self.client = client
        publisher = client.key.publisher
        // This also counts the memory of the will.
        measureMemory()
        connection.keepAlive(keepAliveTimeout(connect.keepAlive))
        attach(client, attempt)
    }

    /// Returns the time for which the session outlives its connection.
    func sessionExpiry(of connect: MQTTConnect) -> Duration {
        switch connect.version {
        case .v311:
            return connect.cleanStart ? .zero : gateway.settings.maxSessionExpiry
        case .v5:
            return gateway.settings.sessionExpiry(connect.properties.sessionExpiryInterval ?? 0)
        }
    }

    /// Checks a will by the rules for PUBLISH, at the time when the client gives the will.
    private func pendingWill(
        _ will: MQTTWill,
        of client: MQTTClientState
    ) throws(MQTTPacketError) -> PendingWill {
        guard let topic = TopicName(will.topic), client.access(environment.access).allows(.publish, will.topic) else {
            throw Self.willNotAuthorized
        }
        var delay = Duration.zero
        for property in will.properties.list {
            if case .willDelayInterval(let seconds) = property { delay = .seconds(Int64(seconds)) }
        }
        var kept = will
        // The payload is copied, because a slice would keep the whole read buffer in memory.
        kept.payload = ByteBuffer(bytes: will.payload.readableBytesView)
        let publication = publication(of: kept, to: topic, sender: client.identity.account)
        guard let kind = MQTTTranslation.kind(of: publication) else { throw Self.willDoesNotFit }
        return PendingWill(
            publication: publication.ofKind(kind),
            givenAt: now(),
            delay: delay,
            source: source(of: client),
            identity: client.identity
        )
    }

    /// Returns one and a half times the keep alive [MQTT-3.1.2-22]; nil without a keep alive.
    private func keepAliveTimeout(_ seconds: UInt16) -> Duration? {
        let granted = grantedKeepAlive(seconds)
        return granted == 0 ? nil : .milliseconds(Int64(granted) * 1_500)
    }

    private func grantedKeepAlive(_ seconds: UInt16) -> UInt16 {
        let most = gateway.settings.maxKeepAlive
        // In 3.1.1 the server cannot tell the client to use another keep alive.
        guard most > 0, version == .v5 else { return seconds }
        return seconds == 0 ? most : min(seconds, most)
    }

    /// Sends CONNACK after the session is attached.
    func connected(_ client: MQTTClientState, _ attempt: MQTTConnectAttempt, sessionPresent: Bool) {
        guard phase == .connecting, connection.isOpen else { return }
        phase = .connected
        connection.account = client.identity.account
        write(.connack(connack(attempt, sessionPresent: sessionPresent)))
        connection.authenticated()
        environment.brokerStatistics.count(connection.listener.metrics)
        lookAtExpiry()
        leaveRooms(client)
    }

    /// Returns the CONNACK that accepts a client.
    private func connack(_ attempt: MQTTConnectAttempt, sessionPresent: Bool) -> MQTTConnack {
        var packet = MQTTConnack(sessionPresent: sessionPresent, reason: .success)
        packet.properties = attempt.granted
        return packet
    }

    /// Returns the properties of CONNACK: the values that differ from the client's request or from the standard's
    /// defaults.
    func grants(_ attempt: MQTTConnectAttempt, clientID: String, sessionExpiry: Duration) -> [MQTTProperty] {
        let connect = attempt.connect
        let settings = gateway.settings
        var list: [MQTTProperty] = [
            .receiveMaximum(UInt16(clamping: settings.receiveMaximum)),
            .maximumPacketSize(UInt32(clamping: settings.maxPacketBytes)),
            .topicAliasMaximum(settings.topicAliasMaximum),
        ]
        if let most = MQTTQoS(rawValue: gateway.maximumQoS.rawValue), most < .exactlyOnce {
            list.append(.maximumQoS(most))
        }
        if !settings.isRetainAvailable { list.append(.retainAvailable(false)) }
        let asked = connect.properties.sessionExpiryInterval ?? 0
        let granted = UInt32(clamping: sessionExpiry.components.seconds)
        if asked != granted { list.append(.sessionExpiryInterval(granted)) }
        if attempt.isIDAssigned { list.append(.assignedClientIdentifier(clientID)) }
        let keepAlive = grantedKeepAlive(connect.keepAlive)
        if keepAlive != connect.keepAlive { list.append(.serverKeepAlive(keepAlive)) }
        if connect.properties.requestResponseInformation == true,
            // A client identifier may contain characters that are invalid in a topic name.
            let topic = TopicName("response/\(clientID)")
        {
            list.append(.responseInformation(topic.rawValue))
        }
        return list
    }

    /// Refuses CONNECT because of an error of the core.
    ///
    /// - Parameter user: the client's name; nil if it has none.
    func refuseConnect(_ error: HermesError, _ connect: MQTTConnect, user: String?) {
        let problem = MQTTPacketError(MQTTTranslation.connackReason(for: error), error.message)
        refuseConnect(problem, because: error, connect, user: user)
    }

    /// Refuses CONNECT. If the reason is the client's credentials or rights, the refusal counts as a failed login.
    ///
    /// - Parameters:
    ///   - cause: the core's error that is the cause; nil if there is none.
    ///   - user: the client's name; nil if it has none, or if the name was not examined.
    func refuseConnect(
        _ error: MQTTPacketError,
        because cause: HermesError? = nil,
        _ connect: MQTTConnect,
        user: String? = nil
    ) {
        if case .loginRefused(let code) = MQTTTranslation.closeReason(for: error, because: cause) {
            connection.loginFailed(code, user: user ?? connect.userName, client: connect.clientID)
        }
        refuse(error, because: cause)
    }

    /// Writes a CONNACK that refuses the client and gives the reason, before the connection closes [MQTT-3.1.4-2].
    func connack(refusal parting: Parting) {
        let packet = MQTTConnack(reason: parting.reason)
        var telling = packet
        if version == .v5 {
            telling.properties = MQTTProperties(nativeRefusal(parting) + [.reasonString(parting.text)])
        }
        writeLast(.connack(telling), orShorter: .connack(packet))
    }
}
