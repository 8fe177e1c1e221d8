// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// A login of the native protocol in the authentication data of CONNECT.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTNativeLoginTests {
    private static let method = MQTTConnection.nativeMethod

    private func connect(
        _ body: Hermes_V1_Packet.OneOf_Body,
        clientID: String = "tablet"
    ) throws -> MQTTConnect {
        var packet = Hermes_V1_Packet()
        packet.id = 1
        packet.body = body
        return connect(data: try packet.wireBuffer(), clientID: clientID)
    }

    private func connect(data: ByteBuffer?, clientID: String = "tablet") -> MQTTConnect {
        var connect = MQTTConnect(version: .v5, clientID: clientID)
        connect.properties = [.authenticationMethod(Self.method)]
        if let data { connect.properties.list.append(.authenticationData(data)) }
        return connect
    }

    private func registration(_ name: String, password: String = "correct horse") -> Hermes_V1_Packet.OneOf_Body {
        var register = Hermes_V1_Register()
        register.nickName = name
        register.password = password
        register.device.id = "tablet"
        return .register(register)
    }

    private func authentication(
        token: String,
        epoch: UInt64 = 0,
        acknowledged: UInt64 = 0,
        newest: Hermes_V1_KnownEntry? = nil
    ) -> Hermes_V1_Packet.OneOf_Body {
        var authenticate = Hermes_V1_Authenticate()
        authenticate.token = token
        authenticate.device.id = "tablet"
        authenticate.epoch = epoch
        authenticate.acknowledgedSeq = acknowledged
        if let newest { authenticate.newest = newest }
        return .authenticate(authenticate)
    }

    private func result(_ connack: MQTTConnack) throws -> Hermes_V1_Result {
        let data = connack.properties.first { if case .authenticationData(let data) = $0 { data } else { nil } }
        let method = connack.properties.first { if case .authenticationMethod(let name) = $0 { name } else { nil } }
        #expect(method == Self.method)
        let packet = try Hermes_V1_Packet(wire: try #require(data))
        #expect(packet.id == 1)
        return packet.result
    }

    @Test(.statements("5.0 [MQTT-4.12.0-5]"))
    func `CONNACK names the method, and its data is the session; the token logs in again`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let (first, welcome) = try await harness.apply(try connect(registration("ann")))
            #expect(welcome.reason == .success)
            let session = try result(welcome).session
            #expect(session.nickName == "ann" && !session.token.isEmpty && session.epoch != 0)
            try await first.disconnect()
            let (second, again) = try await harness.apply(try connect(authentication(token: session.token)))
            #expect(try result(again).session.uid == session.uid)
            #expect(try await second.subscribe("hermes/v1/down", qos: .atMostOnce).reasons == [.success])
            var packet = Hermes_V1_Packet()
            packet.id = 9
            packet.account.get = Hermes_V1_AccountSelector()
            try await second.send(
                .publish(MQTTPublish(topic: "hermes/v1/up", payload: try packet.wireBuffer(), qos: .atMostOnce))
            )
            let answer = try Hermes_V1_Packet(wire: try await second.publication().payload)
            #expect(answer.id == 9 && answer.result.account.uid == session.uid)
        }
    }

    @Test(arguments: [
        MQTTWill(topic: "hermes/v1/up", payload: ByteBuffer()),
        MQTTWill(topic: "room/7", payload: ByteBuffer(), properties: [.userProperty("liveroom-type", "x")]),
    ])
    func `a CONNECT whose will is refused registers nobody`(will: MQTTWill) async throws {
        try await GatewayHarness.withMQTT { harness in
            var refused = try connect(registration("ann"))
            refused.will = will
            let (_, answer) = try await harness.apply(refused)
            #expect(answer.reason != .success)
            let (_, welcome) = try await harness.apply(try connect(registration("ann")))
            #expect(welcome.reason == .success)
        }
    }

    @Test
    func `the client's own cursor counts, as in a login over Delimited`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let (first, welcome) = try await harness.apply(try connect(registration("ann")))
            let session = try result(welcome).session
            try await first.disconnect()
            let user = try #require(UserID(session.uid))
            for title in ["a", "b", "c"] {
                let push = try harness.messenger.pushes.make(PushContent(title: title))
                _ = try await harness.messenger.pushes.send(push, to: .users([user]))
            }
            let login = authentication(token: session.token, epoch: session.epoch, acknowledged: 2)
            let (second, again) = try await harness.apply(try connect(login))
            #expect(try result(again).session.acknowledgedSeq == 2)
            try await second.send(
                .subscribe(
                    MQTTSubscribe(
                        packetID: 1,
                        subscriptions: [MQTTSubscription(filter: "hermes/v1/down", maximumQoS: .atMostOnce)]
                    )
                )
            )
            var newest = Hermes_V1_KnownEntry()
            while newest.seq == 0 {
                guard case .publish(let publish) = try await second.next() else { continue }
                let event = try Hermes_V1_Packet(wire: publish.payload).event
                #expect(event.push.title == "c")
                (newest.seq, newest.id, newest.serverTimeMs) = (event.seq, event.push.id, event.serverTimeMs)
            }
            // The client has got the push and not acknowledged it. Then the store has another push in its place.
            for id in [newest.id, "another"] {
                var known = newest
                known.id = id
                let login = authentication(
                    token: session.token,
                    epoch: session.epoch,
                    acknowledged: 2,
                    newest: known
                )
                let (_, answer) = try await harness.apply(try connect(login))
                #expect(try result(answer).session.inboxReset == (id != newest.id))
            }
            // A cursor above the store's head shows that the store has lost entries.
            let lost = authentication(token: session.token, epoch: session.epoch, acknowledged: 9)
            let (_, reset) = try await harness.apply(try connect(lost))
            #expect(try result(reset).session.inboxReset)
        }
    }

    @Test(.statements("5.0 [MQTT-4.12.0-4]"))
    func `a refusal has the server's own error, and closes the connection`() async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.register("ann")
            var typing = Hermes_V1_Packet()
            typing.typing.stopped = true
            let refused: [(MQTTConnect, HermesError.Code, MQTTReasonCode)] = [
                (try connect(authentication(token: "none")), .invalidToken, .badUserNameOrPassword),
                (try connect(registration("ann")), .nameTaken, .notAuthorized),
                (try connect(registration("bob"), clientID: "other"), .invalidArgument, .clientIdentifierNotValid),
                (try connect(registration("bob", password: "short")), .invalidArgument, .implementationSpecificError),
                (try connect(registration("")), .invalidArgument, .implementationSpecificError),
                (connect(data: nil), .invalidArgument, .implementationSpecificError),
                (connect(data: ByteBuffer(string: "\u{1}garbage")), .invalidArgument, .implementationSpecificError),
                (connect(data: try typing.wireBuffer()), .notAuthenticated, .notAuthorized),
            ]
            for (connect, code, reason) in refused {
                let client = try await MQTTTestClient.open(harness)
                try await client.send(.connect(connect), .pingreq)
                let packets = try await client.untilEnd()
                guard packets.count == 1, case .connack(let connack)? = packets.first else {
                    throw Unexpected("\(packets)")
                }
                #expect(connack.reason == reason)
                #expect(try result(connack).error.code == code.rawValue)
            }
        }
    }

    /// CONNACK has other reason codes than DISCONNECT (table 2-6).
    @Test func `every error of the core refuses CONNECT with a code that CONNACK has`() throws {
        for number in UInt32(1_000)...9_999 {
            let error = HermesError(HermesError.Code(rawValue: number), "")
            var bytes = ByteBuffer()
            let packet = MQTTPacket.connack(MQTTConnack(reason: MQTTTranslation.connackReason(for: error)))
            try packet.write(into: &bytes, version: .v5)
            var decoder = MQTTFrameDecoder()
            let frame = try #require(try decoder.next(from: &bytes))
            _ = try MQTTPacket(frame, version: .v5)
        }
    }

    @Test func `only an error that may pass by itself refuses CONNECT with a code that invites a retry`() {
        let passing: [HermesError.Code] = [
            .loginDelayed, .rateLimited, .overloaded, .storageUnavailable, .shuttingDown, .internalError,
        ]
        for number in UInt32(1_000)...9_999 {
            let code = HermesError.Code(rawValue: number)
            let reason = MQTTTranslation.connackReason(for: HermesError(code, ""))
            let invites = reason == .serverUnavailable || reason == .serverBusy
            #expect(invites == passing.contains(code), "\(number)")
            #expect(reason != .clientIdentifierNotValid)
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-24]"), arguments: [5, 100] as [UInt32])
    func `a registration whose CONNACK the client does not take creates no account`(_ size: UInt32) async throws {
        try await GatewayHarness.withMQTT { harness in
            var small = try connect(registration("ann"))
            small.properties.list.append(.maximumPacketSize(size))
            let (client, refusal) = try await harness.apply(small)
            #expect(refusal.reason == .packetTooLarge)
            #expect(try await client.untilEnd().isEmpty)
            let account = try await harness.messenger.accounts.account(.nickName(try NickName("ann")))
            #expect(account == nil)
            var large = try connect(registration("ann"))
            large.properties.list.append(.maximumPacketSize(1_000))
            let (_, welcome) = try await harness.apply(large)
            #expect(welcome.reason == .success)
            #expect(try result(welcome).session.nickName == "ann")
        }
    }

    @Test func `a registration that is refused because of its CONNACK says so where that fits`() async throws {
        try await GatewayHarness.withMQTT { harness in
            var small = try connect(registration(String(repeating: "n", count: 60)))
            small.properties.list.append(.maximumPacketSize(170))
            let (_, refusal) = try await harness.apply(small)
            #expect(refusal.reason == .packetTooLarge)
            #expect(refusal.properties.reasonString?.contains("Maximum Packet Size") == true)
            #expect(try result(refusal).error.code == HermesError.Code.tooLarge.rawValue)
        }
    }

    private static let reauthentications: [(MQTTAuth, MQTTReasonCode)] = [
        (
            MQTTAuth(reason: .reauthenticate, properties: [.authenticationMethod(MQTTConnection.nativeMethod)]),
            .implementationSpecificError
        ),
        (MQTTAuth(reason: .reauthenticate, properties: [.authenticationMethod("other")]), .protocolError),
        (
            MQTTAuth(reason: .continueAuthentication, properties: [.authenticationMethod(MQTTConnection.nativeMethod)]),
            .protocolError
        ),
    ]

    @Test(.statements("5.0 [MQTT-4.12.1-2]"), arguments: reauthentications)
    func `AUTH ends the connection, and the reason string is true`(
        _ auth: MQTTAuth,
        _ reason: MQTTReasonCode
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let (client, _) = try await harness.apply(try connect(registration("ann")))
            try await client.send(.auth(auth))
            let packets = try await client.untilEnd()
            guard case .disconnect(let disconnect)? = packets.first, packets.count == 1 else {
                throw Unexpected("\(packets)")
            }
            #expect(disconnect.reason == reason)
            let text = try #require(disconnect.properties.reasonString)
            #expect(!text.contains("without an authentication method"))
            #expect(text.contains("re-authentication is not supported") == (reason == .implementationSpecificError))
            let code = MQTTTranslation.code(of: disconnect.reason)
            #expect((code == HermesError.Code.unsupported.rawValue) == (reason == .implementationSpecificError))
        }
    }

    @Test func `a login whose session or will is refused gets the server's own error, too`() async throws {
        let settings = DurableSettings(sessions: SharedLimit(0))
        try await GatewayHarness.withMQTT(durableSettings: settings) { harness in
            var kept = try connect(registration("ann"))
            kept.properties.list.append(.sessionExpiryInterval(600))
            let (_, full) = try await harness.apply(kept)
            #expect(full.reason == .quotaExceeded)
            #expect(try result(full).error.code == HermesError.Code.quotaExceeded.rawValue)
            var willing = try connect(registration("bob"))
            willing.will = MQTTWill(topic: "user/other/t", payload: ByteBuffer())
            let (_, refused) = try await harness.apply(willing)
            #expect(refused.reason == .notAuthorized)
            #expect(try result(refused).error.code == HermesError.Code.forbidden.rawValue)
        }
    }

    @Test(arguments: ["write", "read"])
    func `whom the rules deny the topics of the packets is told so at once`(_ right: String) async throws {
        try await GatewayHarness.withMQTT { harness in
            harness.environment.access.replace(with: try TopicRules(parsing: "deny all \(right) hermes/#"))
            let (_, connack) = try await harness.apply(try connect(registration("ann")))
            #expect(connack.reason == .notAuthorized)
            #expect(try result(connack).error.code == HermesError.Code.forbidden.rawValue)
            #expect(try await harness.messenger.accounts.account(.nickName(try NickName("ann"))) == nil)
        }
    }

    @Test func `a registration with a will that the rules deny creates no account`() async throws {
        try await GatewayHarness.withMQTT { harness in
            harness.environment.access.replace(with: try TopicRules(parsing: "deny user ann write forbidden/#"))
            var connect = try connect(registration("ann"))
            connect.will = MQTTWill(topic: "forbidden/t", payload: ByteBuffer())
            let (_, refusal) = try await harness.apply(connect)
            #expect(refusal.reason == .notAuthorized)
            #expect(try result(refusal).error.code == HermesError.Code.forbidden.rawValue)
            #expect(try await harness.messenger.accounts.account(.nickName(try NickName("ann"))) == nil)
            connect.will = MQTTWill(topic: "user/ann/t", payload: ByteBuffer())
            #expect(try await harness.apply(connect).1.reason == .success)
        }
    }

    @Test(arguments: [true, false])
    func `the end of a connection is told in a packet before DISCONNECT`(isNative: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client: MQTTTestClient
            if isNative {
                (client, _) = try await harness.apply(try connect(registration("ann")))
            } else {
                _ = try await harness.register("ann")
                var connect = MQTTConnect(version: .v5, clientID: "tablet")
                (connect.userName, connect.password) = ("ann", ByteBuffer(string: "correct horse"))
                (client, _) = try await harness.apply(connect)
            }
            _ = try await client.subscribe("hermes/v1/down", qos: .atMostOnce)
            let account = try #require(try await harness.messenger.accounts.account(.nickName(try NickName("ann"))))
            try await harness.messenger.accounts.setDisabled(account.id, true)
            let packets = try await client.untilEnd()
            guard case .publish(let publish)? = packets.first, case .disconnect(let disconnect)? = packets.last else {
                throw Unexpected("\(packets)")
            }
            #expect(try Hermes_V1_Packet(wire: publish.payload).kicked.reason == .disabled)
            #expect(disconnect.reason == .notAuthorized)
        }
    }
}
