// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Two simultaneous logins of one client. The login that began later stays, although the check of the earlier login
/// takes longer.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct LoginOrderTests {
    /// Runs `body` with an account whose password takes a long time to check, while its token does not.
    ///
    /// There is one event loop, so the first connection's login is read before the second connection is accepted.
    private static func with(
        _ gateway: any Gateway.Type,
        _ body: (_ harness: GatewayHarness, _ ann: Login, _ token: String) async throws -> Void
    ) async throws {
        let store = MemoryStore()
        try await GatewayHarness.with(gateway, store: store) { harness in
            let ann = try await harness.register("ann")
            let slow = PasswordHasher(parameters: PasswordHasher.Parameters(ln: 15, r: 8, p: 2))
            let change = AccountChange(password: try await slow.hash("correct horse"))
            _ = try await store.update(ann.principal.user, change)
            try await body(harness, ann, try #require(ann.token))
        }
    }

    @Test(arguments: [false, true]) func `over MQTT, the later CONNECT has the session`(isKept: Bool) async throws {
        try await Self.with(MQTTGateway.self) { harness, _, token in
            var connect = MQTTConnect(version: .v5, clientID: "phone", cleanStart: !isKept)
            if isKept { connect.properties = [.sessionExpiryInterval(600)] }
            connect.userName = "ann"
            connect.password = ByteBuffer(string: "correct horse")
            let earlier = try await MQTTTestClient.open(harness, .v5)
            try await earlier.send(.connect(connect))
            connect.password = ByteBuffer(string: token)
            let (later, connack) = try await harness.apply(connect)
            #expect(connack.reason == .success)
            let last = try await earlier.untilEnd().last
            switch last {
            case .connack(let refusal): #expect(refusal.reason == .notAuthorized)
            // The check of the earlier login was fast after all.
            case .disconnect(let end): #expect(end.reason == .sessionTakenOver)
            default: Issue.record("the earlier connection ended with \(String(describing: last))")
            }
            try await later.send(.pingreq)
            guard case .pingresp = try await later.next() else { throw Unexpected("the later connection has ended") }
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a connection that waits for its session is told that a later one has it`(_ version: MQTTVersion) async throws
    {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            var connect = MQTTConnect(version: version, clientID: "one", cleanStart: false)
            if version == .v5 { connect.properties = [.sessionExpiryInterval(600)] }
            store.close()
            let earlier = try await MQTTTestClient.open(harness, version)
            try await earlier.send(.connect(connect))
            while harness.messenger.durable.statistics.commits.waiting == 0 { await Task.yield() }
            let later = try await MQTTTestClient.open(harness, version)
            try await later.send(.connect(connect))
            let last = try await earlier.untilEnd().last
            guard case .connack(let refusal)? = last else { throw Unexpected("no CONNACK") }
            #expect(refusal.reason == .notAuthorized)
            store.open()
            guard case .connack(let connack) = try await later.next() else { throw Unexpected("no CONNACK") }
            #expect(connack.reason == .success)
        }
    }

    @Test func `over the native protocol, the device that logged in later stays`() async throws {
        try await Self.with(DelimitedGateway.self) { harness, ann, token in
            var request = Hermes_V1_Authenticate()
            request.password.nickName = "ann"
            request.password.password = "correct horse"
            request.device.id = "phone"
            let earlier = try await DelimitedTestClient.connect(port: harness.listener.port)
            try await earlier.write(1, .authenticate(request))
            let later = try await DelimitedTestClient.connect(port: harness.listener.port)
            _ = try await later.authenticate(token: token, device: "phone")
            #expect(try await earlier.kicked().reason == .replaced)
            try await later.send("hello", to: UInt32(ann.principal.user.rawValue), id: 2)
            _ = try await later.receipt(2)
        }
    }

    @Test func `an inbox over MQTT is opened when it is subscribed to, and replaces the device`() async throws {
        try await GatewayHarness.with { harness in
            let ann = try await harness.register("ann")
            let token = try #require(ann.token)
            var connect = MQTTConnect(version: .v5, clientID: "phone", cleanStart: true)
            connect.userName = "ann"
            connect.password = ByteBuffer(string: token)
            let client = try await MQTTTestClient.open(port: harness.port("mqtt"), .v5)
            try await client.send(.connect(connect))
            guard case .connack(let connack) = try await client.next() else { throw Unexpected("no CONNACK") }
            #expect(connack.reason == .success)
            let native = try await harness.delimited()
            _ = try await native.authenticate(token: token, device: "phone")
            #expect(try await client.subscribe("hermes/v1/down", qos: .atLeastOnce).reasons == [.grantedQoS1])
            #expect(try await native.kicked().reason == .replaced)
        }
    }
}
