// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import Hermes
import HermesProtocols
import HermesWire
import NIOCore
import SwiftProtobuf

/// The clients of the SDK, and what an app does with each.
enum Victim: UInt8 {
    case delimited, webSocket, mqtt311, mqtt5, impb, liveRoom, qsiop

    /// What a server says to a good login; empty where nothing is said.
    var welcome: [UInt8] {
        do {
            switch self {
            case .delimited, .webSocket:
                var packet = Hermes_V1_Packet()
                packet.id = 1
                packet.result.session.uid = 7
                packet.result.session.nickName = "ann"
                packet.result.session.epoch = 1
                packet.result.session.headSeq = 5
                packet.result.session.maxFrameBytes = 4_096
                var buffer = ByteBuffer()
                try DelimitedFrame.write(packet, into: &buffer)
                let bytes = Array(buffer.readableBytesView)
                // One binary message of a server (RFC 6455, section 5.2).
                return self == .webSocket ? [0x82, UInt8(bytes.count)] + bytes : bytes
            case .mqtt311: return [0x20, 0x02, 0x00, 0x00]
            case .mqtt5: return [0x20, 0x03, 0x00, 0x00, 0x00]
            case .impb:
                var login = IMPB_login_response()
                login.uid = 7
                login.epoch = 1
                login.headSeq = 5
                var reply = IMPB_CommonRespon()
                reply.isSuc = true
                reply.respon = try login.serializedBytes()
                var buffer = ByteBuffer()
                try IMPBFrame.write(reply, seq: 1, type: .request, into: &buffer)
                return Array(buffer.readableBytesView)
            case .qsiop:
                var buffer = ByteBuffer()
                try QSIOPFrame(.response, body: ByteBuffer(string: "code:0\n")).write(into: &buffer)
                return Array(buffer.readableBytesView)
            case .liveRoom: return []
            }
        } catch {
            broken("\(error)")
        }
    }

    /// Connects, asks for this and that, takes what comes until the connection has ended for good, and closes.
    func meet(port: Int, conditions: DeviceConditions) async throws {
        var address = ServerAddress(port: port, connectTimeout: .seconds(20))
        if self == .webSocket { address.webSocketPath = "/ws" }
        switch self {
        case .delimited, .webSocket: try await meetHermes(address, conditions)
        case .mqtt311: try await meetMQTT(address, conditions, .v311)
        case .mqtt5: try await meetMQTT(address, conditions, .v5)
        case .impb: try await meetIMPB(address, conditions)
        case .liveRoom: try await meetLiveRoom(address, conditions)
        case .qsiop: try await meetQSIOP(address, conditions)
        }
    }

    private func meetHermes(_ address: ServerAddress, _ conditions: DeviceConditions) async throws {
        var configuration = HermesClient.Configuration(server: address, device: DeviceDescription(id: "fuzz"))
        configuration.reconnect = .never
        configuration.conditions = conditions
        configuration.loginTimeout = .seconds(20)
        configuration.maxFrameBytes = 65_536
        let client = try HermesClient(configuration)
        let other = UserID(rawValue: 2)
        async let work: Void = {
            guard (try? await client.logIn(.token("token"))) != nil else { return }
            // Their packets have the ids from 16 on, in some order.
            async let contacts = try? client.contacts()
            async let sent = try? client.send("hello", to: .user(other)).receipt()
            async let history = try? client.history(of: .user(other))
            async let conversations = try? client.conversations()
            async let entered = try? client.enterRoom("lobby", as: RoomUser(name: "ann"))
            async let visit: Void? = try? client.enterRoom("den", as: RoomUser(name: "ann")) { events in
                for await _ in events {}
            }
            async let watched = try? client.watchPresence(of: [other])
            async let account = try? client.account(id: other)
            _ = await (contacts, sent, history, conversations, entered, watched, account, visit)
        }()
        async let ephemeral: Void = { for await _ in client.ephemeralEvents {} }()
        for await _ in client.events {}
        _ = await (work, ephemeral)
        await client.close()
    }

    private func meetMQTT(
        _ address: ServerAddress,
        _ conditions: DeviceConditions,
        _ version: MQTTClient.Version
    ) async throws {
        var configuration = MQTTClient.Configuration(server: address, clientID: "fuzz")
        configuration.version = version
        configuration.reconnect = .never
        configuration.conditions = conditions
        configuration.cleanStart = false
        configuration.maxPacketBytes = 65_536
        configuration.maxQueuedBytes = 1 << 20
        let client = try MQTTClient(configuration)
        async let work: Void = {
            guard (try? await client.connect()) != nil else { return }
            async let subscribed = try? client.subscribe(to: "#", qos: .exactlyOnce)
            async let once = try? client.publish("x", to: "y", qos: .exactlyOnce)
            async let atLeastOnce = try? client.publish("x", to: "y", qos: .atLeastOnce)
            async let left = try? client.unsubscribe(from: "#")
            async let scope: Void? = try? client.subscribe(to: "+/y", qos: .exactlyOnce) { messages in
                for await _ in messages {}
            }
            _ = await (subscribed, once, atLeastOnce, left, scope)
        }()
        for await _ in client.messages {}
        await work
        await client.close()
    }

    private func meetIMPB(_ address: ServerAddress, _ conditions: DeviceConditions) async throws {
        var configuration = IMPBClient.Configuration(server: address, device: DeviceDescription(id: "fuzz"))
        configuration.reconnect = .never
        configuration.conditions = conditions
        let client = try IMPBClient(configuration)
        async let work: Void = {
            guard (try? await client.logIn(.password(nickName: "ann", password: "secret"))) != nil else { return }
            async let account = try? client.account(id: UserID(rawValue: 3))
            async let sent = try? client.send("hello", to: UserID(rawValue: 3))
            async let link = try? client.requestLink(to: UserID(rawValue: 3), from: UserID(rawValue: 7))
            _ = await (account, sent, link)
        }()
        for await _ in client.events {}
        await work
        await client.close()
    }

    private func meetLiveRoom(_ address: ServerAddress, _ conditions: DeviceConditions) async throws {
        var configuration = LiveRoomClient.Configuration(server: address, user: RoomUser(name: "ann"), room: "lobby")
        configuration.reconnect = .never
        configuration.conditions = conditions
        let client = try LiveRoomClient(configuration)
        async let work: Void = {
            guard (try? await client.join()) != nil else { return }
            try? await client.say("hello")
        }()
        for await _ in client.events {}
        await work
        await client.close()
    }

    private func meetQSIOP(_ address: ServerAddress, _ conditions: DeviceConditions) async throws {
        var configuration = QSIOPClient.Configuration(server: address, identity: .init(uid: UserID(rawValue: 7)))
        configuration.reconnect = .never
        configuration.conditions = conditions
        let client = try QSIOPClient(configuration)
        async let work: Void = {
            guard (try? await client.connect()) != nil else { return }
            _ = try? await client.ping()
        }()
        for await _ in client.pushes {}
        await work
        await client.close()
    }
}
