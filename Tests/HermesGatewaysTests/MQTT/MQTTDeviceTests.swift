// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

/// An MQTT client becomes a device of its account when it opens the inbox, and not earlier.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTDeviceTests {
    private func connect(
        _ harness: GatewayHarness,
        _ clientID: String,
        _ version: MQTTVersion = .v5,
        durable: Bool = false,
        secret: String = "correct horse",
        maxPacketBytes: UInt32? = nil
    ) async throws -> MQTTTestClient {
        var connect = MQTTConnect(version: version, clientID: clientID, cleanStart: !durable, keepAlive: 60)
        connect.userName = "ann"
        connect.password = ByteBuffer(string: secret)
        if durable, version == .v5 { connect.properties = [.sessionExpiryInterval(600)] }
        if let maxPacketBytes { connect.properties = [.maximumPacketSize(maxPacketBytes)] }
        let (client, connack) = try await harness.apply(connect)
        guard connack.reason == .success else { throw Unexpected("CONNACK with \(connack.reason)") }
        return client
    }

    private func devices(_ harness: GatewayHarness, _ login: Login) async throws -> [String] {
        try await harness.messenger.accounts.devices(of: login.principal.user).map(\.description.id.rawValue)
    }

    /// Without this rule, 50 CONNECTs with empty client ids would replace the phone and revoke its token.
    @Test(arguments: MQTTVersion.allCases)
    func `clients without an ID drive nobody out`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            for _ in 0..<60 {
                let client = try await connect(harness, "", version)
                try await client.disconnect()
            }
            #expect(try await devices(harness, ann) == ["phone"])
            let token = try #require(ann.token)
            let phone = DeviceDescription(id: ann.principal.device)
            _ = try await harness.messenger.accounts.logIn(.token(token), device: phone, address: nil)
        }
    }

    /// Some of these client ids are not valid device ids: they have spaces, letters outside ASCII, or more than 64
    /// characters.
    @Test(arguments: ["sensor", "my sensor", "größe", String(repeating: "x", count: 65)])
    func `a client publishes as its account and counts for it, whatever its ID is`(_ clientID: String) async throws {
        try await GatewayHarness.with { harness in
            let ann = try await harness.register("ann")
            let user = ann.principal.user
            let member = try await harness.delimited()
            _ = try await member.register("bob")
            _ = try await member.ask(
                2,
                .room(
                    .with {
                        $0.room = "lobby"
                        $0.request = .enter(.init())
                    }
                )
            )
            var connect = MQTTConnect(version: .v5, clientID: clientID, cleanStart: true, keepAlive: 60)
            connect.userName = "ann"
            connect.password = ByteBuffer(string: "correct horse")
            let client = try await MQTTTestClient.open(port: harness.port("mqtt"))
            try await client.send(.connect(connect))
            guard case .connack(let connack) = try await client.next(), connack.reason == .success else {
                throw Unexpected("no CONNACK")
            }
            try await client.publish("room/lobby", "hello")
            #expect(try await member.ephemeral().room.uid == UInt32(user.rawValue))
            #expect(try await harness.connectionCount(of: user) == 1)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `an inbox that the client cannot have is refused, and nothing else`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.register("ann")
            let clients = try await [
                connect(harness, "my sensor", version), connect(harness, String(repeating: "x", count: 65), version),
                harness.mqtt("anonymous", version),
            ]
            for client in clients {
                let filters = ["weather/#", "hermes/v1/down", "hermes/v1/down/json", "hermes/#"]
                let suback = try await client.subscribe(filters)
                let refusal = version == .v5 ? MQTTReasonCode.notAuthorized : .unspecifiedError
                #expect(suback.reasons == [.grantedQoS2, refusal, refusal, refusal])
            }
        }
    }

    /// Only the case of the name changes, so the account keeps its name and no connection ends.
    @Test(arguments: [false, true])
    func `an inbox opens long after the login, whatever the account has done since`(isKnown: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            if isKnown {
                let first = try await connect(harness, "sensor")
                _ = try await first.subscribe("hermes/v1/down", qos: .atLeastOnce)
                try await first.disconnect()
            }
            let client = try await connect(harness, "sensor")
            let accounts = harness.messenger.accounts
            for name in ["Ann", "ANN"] {
                _ = try await accounts.changeProfile(of: ann.principal.user, nickName: name, avatarURL: nil)
                #expect(try await client.subscribe("hermes/v1/down", qos: .atLeastOnce).reasons == [.grantedQoS1])
                #expect(try await client.untilPong().isEmpty)
                let attached = harness.messenger.devices.attachments(of: ann.principal.user)
                #expect(attached.map(\.principal.nickName.rawValue) == [name])
                #expect(try await client.unsubscribe("hermes/v1/down").reasons == [.success])
            }
        }
    }

    /// DISCONNECT has fewer reason codes than CONNACK (3.14.2.1).
    @Test func `an inbox that cannot be opened ends the connection with a code that DISCONNECT has`() throws {
        for number in UInt32(1_000)...9_999 {
            let error = HermesError(HermesError.Code(rawValue: number), "")
            var bytes = ByteBuffer()
            let packet = MQTTPacket.disconnect(MQTTDisconnect(reason: MQTTTranslation.subackReason(for: error)))
            try packet.write(into: &bytes, version: .v5)
            var decoder = MQTTFrameDecoder()
            let frame = try #require(try decoder.next(from: &bytes))
            _ = try MQTTPacket(frame, version: .v5)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a device exists once the inbox is open`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let client = try await connect(harness, "sensor", version)
            #expect(try await client.subscribe("weather/#").reasons == [.grantedQoS2])
            #expect(try await devices(harness, ann) == ["phone"])
            #expect(try await client.subscribe("hermes/v1/down", qos: .atLeastOnce).reasons == [.grantedQoS1])
            #expect(try await devices(harness, ann) == ["phone", "sensor"])
            #expect(harness.messenger.devices.attachedDevices(of: ann.principal.user).map(\.rawValue) == ["sensor"])
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `an assigned ID opens no inbox`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let client = try await connect(harness, "", version)
            let suback = try await client.subscribe("weather/#", "hermes/v1/down")
            #expect(suback.reasons == [.grantedQoS2, version == .v5 ? .notAuthorized : .unspecifiedError])
            #expect(try await client.untilPong().isEmpty, "the rest goes on")
            #expect(try await devices(harness, ann) == ["phone"])
        }
    }

    /// A thief can choose any client id, but the stolen token belongs to the phone.
    @Test(arguments: ["phone", "other", String(repeating: "c", count: 70), "with space"], [true, false])
    func `the end of a token ends all that it opened`(_ clientID: String, isRemoved: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let accounts = harness.messenger.accounts
            let thief = try await connect(harness, clientID, durable: true, secret: try #require(ann.token))
            let own = try await connect(harness, "tablet")
            if isRemoved {
                try await accounts.removeDevice(ann.principal.device, of: ann.principal.user)
            } else {
                try await accounts.logOut(ann.principal, token: ann.tokenHash, removeDevice: false)
            }
            guard case .disconnect(let disconnect)? = try await thief.untilEnd().last else {
                throw Unexpected("no DISCONNECT")
            }
            #expect(disconnect.reason == .notAuthorized)
            #expect(try await own.untilPong().isEmpty, "who showed the password stays")
        }
    }

    @Test(.statements("5.0 [MQTT-3.9.2-1]"), arguments: [nil, 40] as [UInt32?])
    func `one device too many is told, with a reason string if the client takes it`(_ most: UInt32?) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let accounts = harness.messenger.accounts
            for number in 1..<50 {
                guard let id = DeviceID("d\(number)") else { continue }
                _ = try await accounts.issueToken(for: DeviceDescription(id: id), of: ann.principal.user)
            }
            let client = try await connect(harness, "sensor", maxPacketBytes: most)
            let suback = try await client.subscribe("weather/#", "hermes/v1/down")
            #expect(suback.reasons == [.grantedQoS2, .quotaExceeded])
            #expect(suback.properties.isEmpty == (most != nil))
            #expect(try await devices(harness, ann).count == 50)
            try await accounts.removeDevice(try #require(DeviceID("d1")), of: ann.principal.user)
            #expect(try await client.subscribe("hermes/v1/down", packetID: 2).reasons == [.grantedQoS2])
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a kept session opens its inbox again`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let first = try await connect(harness, "sensor", version, durable: true)
            #expect(try await first.subscribe("hermes/v1/down", qos: .atLeastOnce).reasons == [.grantedQoS1])
            try await first.drop()
            let again = try await connect(harness, "sensor", version, durable: true)
            _ = try await again.untilPong()
            #expect(harness.messenger.devices.attachedDevices(of: ann.principal.user).map(\.rawValue) == ["sensor"])
        }
    }

    /// When a node disappears, the other nodes compare these proofs with the record.
    @Test(arguments: ["sensor", "not/a/device"])
    func `the proof that a client has shown is known while it is connected`(_ clientID: String) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let user = ann.principal.user
            let first = try await connect(harness, clientID)
            let password = harness.messenger.durable.connectedAccounts[user]?.shown.first
            guard case .password? = password else { throw Unexpected("\(String(describing: password))") }
            let second = try await connect(harness, clientID + "2", secret: try #require(ann.token))
            let token = ShownProof.token(try #require(ann.tokenHash))
            #expect(harness.messenger.durable.connectedAccounts[user]?.shown.contains(token) == true)
            for client in [first, second] { try await client.disconnect() }
        }
    }

    /// A thief with the old password may use the id of the owner's device. The thief's login must not count as the
    /// owner's.
    @Test(arguments: MQTTVersion.allCases)
    func `a changed password ends every other login of the same device too`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let accounts = harness.messenger.accounts
            let thief = try await connect(harness, ann.principal.device.rawValue, version)
            let kept = try await connect(harness, "kept", version, durable: true)
            try await accounts.changePassword(of: ann.principal, old: "correct horse", new: "battery staple")
            for client in [thief, kept] { _ = try await client.untilEnd() }
        }
    }
}
