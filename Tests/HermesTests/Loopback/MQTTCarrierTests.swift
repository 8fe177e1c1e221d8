// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// The differences between MQTT and separate frames, for a client that MQTT carries.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct MQTTCarrierTests {
    private static func configuration(_ address: ServerAddress, device: String = "one") -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(server: address, device: DeviceDescription(id: device))
        configuration.conditions = DeviceConditions()
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(10)], maxAdvisedWindow: .zero)
        return configuration
    }

    @Test(arguments: [Carrier.mqtt, .mqttOverWebSocket])
    func `logins of every kind, and their refusals with the server's own codes`(carrier: Carrier) async throws {
        try await withServer { server in
            let client = try HermesClient(Self.configuration(carrier.address(of: server)))
            let session = try await client.logIn(.register(nickName: "ann", password: "secret"))
            #expect(session.nickName == "ann" && !session.token.isEmpty && session.epoch != 0)
            #expect(try await client.devices().map(\.id) == ["one"])
            await client.close()
            #expect(try await client.logIn(.token(session.token)).uid == session.uid)
            await client.close()
            #expect(try await client.logIn(.password(nickName: "Ann", password: "secret")).uid == session.uid)
            let refused: [(Credential, HermesClientError.Code)] = [
                (.password(nickName: "ann", password: "wrong-one"), .wrongCredentials),
                (.token("none"), .invalidToken),
                (.register(nickName: "ann", password: "secret"), .nameTaken),
                (.register(nickName: "bob", password: "short"), .invalidArgument),
            ]
            for (credential, code) in refused {
                let error = await #expect(throws: HermesClientError.self) { try await client.logIn(credential) }
                #expect(error?.code == code)
            }
            await client.close()
        }
    }

    @Test func `a log-out ends the token, and a stopping server tells when to come back`() async throws {
        try await withServer { server in
            let configuration = Self.configuration(Carrier.mqtt.address(of: server))
            let client = try HermesClient(configuration)
            let session = try await client.logIn(.register(nickName: "ann", password: "secret"))
            let states = client.states
            async let ends: Void = {
                for await state in states {
                    guard case .waiting(let error, _) = state else { continue }
                    #expect(error.message.contains("stopping"), "\(error)")
                    break
                }
            }()
            try await server.restart()
            await ends
            _ = try await client.account(named: "ann")
            try await client.logOut()
            let again = try HermesClient(configuration)
            let error = await #expect(throws: HermesClientError.self) { try await again.logIn(.token(session.token)) }
            #expect(error?.code == .invalidToken)
        }
    }

    @Test func `another device over Delimited replaces the one over MQTT, and MQTT says so itself`() async throws {
        try await withServer { server in
            let old = try HermesClient(Self.configuration(Carrier.mqtt.address(of: server)))
            let session = try await old.logIn(.register(nickName: "ann", password: "secret"))
            let new = try HermesClient(Self.configuration(Carrier.delimited.address(of: server)))
            _ = try await new.logIn(.token(session.token))
            let error = await #expect(throws: HermesClientError.self) { try await old.run() }
            #expect(error?.code == .replaced)
            await new.close()
        }
    }

    @Test func `a message above the server's Maximum Packet Size is refused here, and the next one goes`() async throws
    {
        try await withServer { server in
            let client = try HermesClient(Self.configuration(Carrier.mqtt.address(of: server)))
            let session = try await client.logIn(.register(nickName: "ann", password: "secret"))
            let long = String(repeating: "x", count: 1 << 20)
            let error = await #expect(throws: HermesClientError.self) {
                try await client.sendDirectly(.text(long), to: .user(session.uid))
            }
            #expect(error?.code == .notEncodable)
            _ = try await client.sendDirectly(.text("short"), to: .user(session.uid))
            #expect(await client.driver.attempt == 1)
            await client.close()
        }
    }

    // MARK: Servers that are not Hermes, or not its friend

    /// Accepts the login with the given keep alive and limits.
    private static func accept(_ connection: FakeMQTTServer.Connection, _ properties: [MQTTProperty] = []) {
        var packet = Hermes_V1_Packet()
        packet.id = 1
        packet.result.session.uid = 7
        packet.result.session.epoch = 1
        packet.result.session.token = "token-1"
        guard let data = try? packet.wireBuffer() else { return }
        connection.accept(MQTTProperties([.authenticationMethod("hermes.v1"), .authenticationData(data)] + properties))
    }

    @Test func `heartbeats are PINGREQs, CONNECT tells their interval, and the end is a DISCONNECT`() async throws {
        let packets = Log<MQTTPacket>()
        let server = try await FakeMQTTServer.scripted { packet, connection in
            packets.append(packet)
            switch packet {
            case .connect: Self.accept(connection, [.serverKeepAlive(40)])
            case .subscribe: connection.send(.suback(MQTTSuback(packetID: 1, reasons: [.success])))
            case .pingreq: connection.send(.pingresp)
            default: break
            }
        }
        var configuration = Self.configuration(Carrier.mqtt.address(port: server.port), device: "d")
        configuration.heartbeat = HeartbeatPolicy(interval: .milliseconds(20), answerTimeout: .seconds(5))
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let pings = await server.firstPacket { number, packet in if case .pingreq = packet { true } else { false } }
        #expect(pings != nil)
        await client.close()
        let end = await server.firstPacket { _, packet in if case .disconnect = packet { true } else { false } }
        #expect(end != nil)
        guard case .connect(let connect) = packets.all.first else {
            Issue.record("\(packets.all)")
            return
        }
        #expect(connect.clientID == "d" && connect.cleanStart && connect.keepAlive == 2 && connect.userName == nil)
        guard case .subscribe(let subscribe) = packets.all.dropFirst().first else {
            Issue.record("\(packets.all)")
            return
        }
        #expect(subscribe.subscriptions.map(\.filter) == ["hermes/v1/down"])
        try await server.stop()
    }

    @Test(arguments: [
        (MQTTReasonCode.badAuthenticationMethod, 500 + 0x8C as UInt32), (.notAuthorized, 500 + 0x87),
    ])
    func `a broker that is not Hermes is named as such by its reason`(
        reason: MQTTReasonCode,
        code: UInt32
    ) async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            connection.send(.connack(MQTTConnack(reason: reason)))
            connection.close()
        }
        let client = try HermesClient(Self.configuration(Carrier.mqtt.address(port: server.port)))
        let error = await #expect(throws: HermesClientError.self) { try await client.logIn(.token("t")) }
        #expect(error?.code.rawValue == code)
        try await server.stop()
    }

    @Test func `a refused subscription refuses the login`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect: Self.accept(connection)
            case .subscribe: connection.send(.suback(MQTTSuback(packetID: 1, reasons: [.notAuthorized])))
            default: break
            }
        }
        let client = try HermesClient(Self.configuration(Carrier.mqtt.address(port: server.port)))
        let error = await #expect(throws: HermesClientError.self) { try await client.logIn(.token("t")) }
        #expect(error?.mqttReason == .notAuthorized)
        try await server.stop()
    }

    @Test(arguments: [MQTTReasonCode.useAnotherServer, .serverMoved])
    func `the client goes where the server sends it`(reason: MQTTReasonCode) async throws {
        let other = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect: Self.accept(connection)
            case .subscribe: connection.send(.suback(MQTTSuback(packetID: 1, reasons: [.success])))
            default: break
            }
        }
        let first = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            let properties: MQTTProperties = [.serverReference("127.0.0.1:\(other.port)")]
            connection.send(.connack(MQTTConnack(reason: reason, properties: properties)))
            connection.close()
        }
        let client = try HermesClient(Self.configuration(Carrier.mqtt.address(port: first.port)))
        #expect(try await client.logIn(.token("t")).uid.rawValue == 7)
        await client.close()
        try await first.stop()
        try await other.stop()
    }

    @Test func `an app that lost the answer to its registration gets the account that it made`() async throws {
        try await withServer { server in
            // The connection is cut in the middle of the answer.
            let cut = try await FaultyProxy(to: server.port("mqtt")) { number in
                FaultyProxy.Fault(end: number == 1 ? .cut(afterBytes: 200) : .never)
            }
            let client = try HermesClient(Self.configuration(Carrier.mqtt.address(port: cut.port)))
            let session = try await client.logIn(.register(nickName: "ann", password: "secret"))
            #expect(session.nickName == "ann")
            await client.close()
            try await cut.stop()
        }
    }
}
