// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Synchronization
import Testing

@testable import HermesGateways

/// A connection that was accepted because of a token of another issuer ends with the token.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTExpiryTests {
    /// Accepts tokens of the form "jwt:SUBJECT:EXPIRY:FILTER", optionally followed by ":FILTERS". EXPIRY is in
    /// milliseconds since 1970, or -1 for no expiry. FILTER allows publishing. FILTERS, separated by spaces, allow
    /// subscribing.
    private struct Verifier: TokenVerifier {
        func isToken(_ text: String) -> Bool { text.hasPrefix("jwt:") }

        func verify(_ text: String, now: Timestamp) async throws(HermesError) -> VerifiedToken {
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count >= 4, let end = Int64(parts[2]), end == -1 || end > now.rawValue else {
                throw HermesError(.invalidToken, "the token cannot be used: it has expired")
            }
            let heard = parts.dropFirst(4).first?.split(separator: " ").compactMap { TopicFilter(String($0)) }
            return VerifiedToken(
                subject: String(parts[1]),
                claims: TopicClaims(publish: TopicFilter(String(parts[3])).map { [$0] }, subscribe: heard),
                expiresAt: end == -1 ? nil : Timestamp(rawValue: end)
            )
        }
    }

    private func token(_ subject: String, for time: Duration, publish: String = "") -> String {
        let end = SystemTime().now().advanced(by: time)
        return "jwt:\(subject):\(end.rawValue):\(publish)"
    }

    private func connect(
        _ harness: GatewayHarness,
        _ version: MQTTVersion,
        _ token: String,
        will: MQTTWill? = nil
    ) async throws -> MQTTTestClient {
        var connect = MQTTConnect(version: version, clientID: "tablet")
        connect.userName = "x"
        connect.password = ByteBuffer(string: token)
        connect.will = will
        let (client, connack) = try await harness.apply(connect)
        #expect(connack.reason == .success)
        return client
    }

    private func with(_ body: (GatewayHarness) async throws -> Void) async throws {
        try await GatewayHarness.withMQTT(tokenVerifier: Verifier(), body)
    }

    @Test(arguments: MQTTVersion.allCases)
    func `the connection ends with its token: 5.0 is told with 0xA0, 3.1.1 closed`(_ version: MQTTVersion) async throws
    {
        try await with { harness in
            let watch = try await connect(harness, .v5, token("bob", for: .seconds(3_600)))
            _ = try await watch.subscribe("t")
            let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "gone"))
            let client = try await connect(harness, version, token("ann", for: .seconds(1)), will: will)
            #expect(try await client.untilPong().isEmpty)
            let packets = try await client.untilEnd()
            switch version {
            case .v311: #expect(packets.isEmpty)
            case .v5:
                guard case .disconnect(let disconnect)? = packets.first, packets.count == 1 else {
                    throw Unexpected("\(packets)")
                }
                #expect(disconnect.reason == .maximumConnectTime)
            }
            // The client sent no DISCONNECT, so its will is published.
            #expect(try await watch.taken().text == "gone")
            #expect(try await watch.untilPong().isEmpty)
        }
    }

    /// The system's clocks, with a wall clock that the test can change.
    private final class SetTime: TimeSource {
        private let base = SystemTime()
        private let jumped = Mutex(Duration.zero)

        func now() -> Timestamp { base.now().advanced(by: jumped.withLock { $0 }) }

        func uptime() -> Duration { base.uptime() }

        func jump(by duration: Duration) { jumped.withLock { $0 += duration } }
    }

    @Test
    func `a clock that jumps ahead, beyond what is believed elsewhere, ends the connection soon, at the next look`()
        async throws
    {
        let time = SetTime()
        try await GatewayHarness.with(MQTTGateway.self, tokenVerifier: Verifier(), time: time) { harness in
            // The server checks the token a minute before its end, so one second from now.
            let client = try await connect(harness, .v5, token("ann", for: .seconds(61)))
            time.jump(by: .seconds(3_600))
            guard case .disconnect(let disconnect)? = try await client.untilEnd().last else {
                throw Unexpected("no DISCONNECT")
            }
            #expect(disconnect.reason == .maximumConnectTime)
            // When the connection ends, the server also accepts no new login with the token.
            var login = MQTTConnect(version: .v5, clientID: "tablet")
            login.userName = "x"
            login.password = ByteBuffer(string: token("ann", for: .seconds(61)))
            #expect(try await harness.apply(login).1.reason.isFailure)
        }
    }

    @Test
    func `a clock that is set back lets the connection last until the end by that clock, and no longer`() async throws {
        let time = SetTime()
        try await GatewayHarness.with(MQTTGateway.self, tokenVerifier: Verifier(), time: time) { harness in
            let end = time.now().advanced(by: .seconds(2))
            let client = try await connect(harness, .v5, "jwt:ann:\(end.rawValue):")
            time.jump(by: .seconds(-2))
            guard case .disconnect(let disconnect)? = try await client.untilEnd().last else {
                throw Unexpected("no DISCONNECT")
            }
            #expect(disconnect.reason == .maximumConnectTime)
            #expect(time.now() >= end)
        }
    }

    @Test
    func `who speaks the native protocol is warned, and stays with a new token of the same user`() async throws {
        try await with { harness in
            let ann = try await harness.register("ann")
            let client = try await connect(harness, .v5, token("ann", for: .seconds(2)))
            _ = try await client.subscribe("hermes/v1/down", qos: .atMostOnce)
            let warning = try Hermes_V1_Packet(wire: try await client.publication().payload)
            #expect(warning.notice.kind == .tokenExpires && warning.notice.expiresAtMs > 0)
            for (bad, id) in [(token("bob", for: .seconds(60)), 1), ("jwt:ann:1:", 2), ("no token", 3)]
                as [(String, UInt64)]
            {
                let answer = try await renew(client, bad, id)
                #expect(answer.id == id && answer.result.error.code == HermesError.Code.invalidToken.rawValue)
            }
            let answer = try await renew(client, token("ann", for: .seconds(4), publish: "allowed"), 4)
            #expect(answer.id == 4 && !answer.result.hasError)
            // The new token also ends soon.
            let again = try Hermes_V1_Packet(wire: try await client.publication().payload)
            #expect(again.notice.kind == .tokenExpires && again.notice.expiresAtMs > warning.notice.expiresAtMs)
            // The client may now do only what the new token allows.
            #expect(try await client.publish("other", "x") == .notAuthorized)
            #expect(try await client.publish("allowed", "x") != .notAuthorized)
            // The connection lasts longer than the first token.
            while SystemTime().now().rawValue <= warning.notice.expiresAtMs + 1_500 {
                #expect(try await client.untilPong().isEmpty)
            }
            guard case .disconnect(let disconnect)? = try await client.untilEnd().last else {
                throw Unexpected("no DISCONNECT")
            }
            #expect(disconnect.reason == .maximumConnectTime)
            #expect(ann.principal.nickName.rawValue == "ann")
        }
    }

    @Test
    func `a new token that allows less ends rooms and shares of shared subscriptions at once`() async throws {
        try await with { harness in
            let ann = try await harness.register("ann").principal
            let all = token("ann", for: .seconds(3_600)) + ":t room/# hermes/v1/down"
            let reader = try await connect(harness, .v5, all)
            #expect(try await reader.subscribe("hermes/v1/down", qos: .atMostOnce).reasons == [.success])
            #expect(try await reader.untilPong() == [])
            #expect(try await reader.subscribe("$share/g/t").reasons.allSatisfy { !$0.isFailure })
            var enter = Hermes_V1_Packet()
            enter.room.room = "lobby"
            enter.room.enter = Hermes_V1_EnterRoom()
            let entered = try await ask(reader, enter)
            guard case .joined = entered.ephemeral.room.event else {
                Issue.record("\(entered)")
                return
            }
            let (other, _) = try await harness.apply(MQTTConnect(version: .v5, clientID: "other"))
            _ = try await other.subscribe("$share/g/t")

            var request = Hermes_V1_Packet()
            request.id = 2
            request.authenticate.token = token("ann", for: .seconds(3_600)) + ":hermes/v1/down"
            let first = try await ask(reader, request)
            #expect(first.ephemeral.room.room == "lobby")
            guard case .kicked = first.ephemeral.room.event else {
                Issue.record("\(first)")
                return
            }
            #expect(try Hermes_V1_Packet(wire: try await reader.publication().payload).id == 2)

            let (publisher, _) = try await harness.apply(MQTTConnect(version: .v5, clientID: "publisher"))
            for number in 1...20 as ClosedRange<UInt16> {
                #expect(try await publisher.publish("t", "\(number)", packetID: number) == .success)
                #expect(String(buffer: try await other.taken().payload) == "\(number)")
            }
            #expect(try await reader.untilPong().isEmpty)
            #expect(ann.nickName.rawValue == "ann")
        }
    }

    @Test func `a new token's permissions hold at once, however many subscriptions there are`() async throws {
        try await with { harness in
            _ = try await harness.register("ann")
            let filters = (0..<600).map { "\($0 % 2 == 0 ? "even" : "odd")/\($0)" }
            let reader = try await connect(
                harness,
                .v5,
                token("ann", for: .seconds(3_600)) + ":hermes/v1/down even/# odd/#"
            )
            _ = try await reader.subscribe("hermes/v1/down", qos: .atMostOnce)
            for some in stride(from: 0, to: 600, by: 100) {
                let part = filters[some..<some + 100].map { MQTTSubscription(filter: $0) }
                try await reader.send(.subscribe(MQTTSubscribe(packetID: UInt16(some + 1), subscriptions: part)))
                #expect(try await reader.untilPong().count == 1)
            }
            let (publisher, _) = try await harness.apply(MQTTConnect(version: .v5, clientID: "publisher"))
            for (allowed, denied) in [("even", "odd"), ("odd", "even")] {
                let less = token("ann", for: .seconds(3_600)) + ":hermes/v1/down \(allowed)/#"
                #expect(try await !renew(reader, less, 7).result.hasError)
                // Other subscriptions may still wait for their turn.
                for number in [598, 599, 0, 1] {
                    for name in [denied, allowed] {
                        _ = try await publisher.publish("\(name)/\(number)", name, qos: .atMostOnce)
                    }
                }
                let heard = try await [reader.publication().topic, reader.publication().topic]
                #expect(heard.allSatisfy { $0.hasPrefix(allowed + "/") })
                #expect(try await reader.untilPong().isEmpty)
            }
        }
    }

    @Test func `a token without an end can be replaced, and so can what replaces it`() async throws {
        try await with { harness in
            _ = try await harness.register("ann")
            let client = try await connect(harness, .v5, token("ann", for: .seconds(3_600)) + ":hermes/v1/down")
            _ = try await client.subscribe("hermes/v1/down", qos: .atMostOnce)
            for end in ["-1", "\(SystemTime().now().advanced(by: .seconds(3_600)).rawValue)"] {
                let answer = try await renew(client, "jwt:ann:\(end)::hermes/v1/down", 1)
                #expect(!answer.result.hasError)
            }
        }
    }

    @Test func `a will is published with the permissions of the last token`() async throws {
        try await with { harness in
            _ = try await harness.register("ann")
            let watch = try await connect(harness, .v5, token("bob", for: .seconds(3_600)))
            _ = try await watch.subscribe("t/#", qos: .atMostOnce)
            for (allowed, expected) in [("none", "seen"), ("t/will", "will")] {
                let will = MQTTWill(topic: "t/will", payload: ByteBuffer(string: "will"))
                let client = try await connect(harness, .v5, token("ann", for: .seconds(3_600)), will: will)
                _ = try await client.subscribe("hermes/v1/down", qos: .atMostOnce)
                let answer = try await renew(client, token("ann", for: .seconds(3_600), publish: allowed), 1)
                #expect(!answer.result.hasError)
                try await client.drop()
                if allowed == "none" {
                    // When the client id is free, the connection has ended.
                    try await connect(harness, .v5, token("ann", for: .seconds(3_600))).disconnect()
                    try await watch.publish("t/seen", "seen", qos: .atMostOnce)
                }
                #expect(try await watch.publication().text == expected)
            }
        }
    }

    private func renew(_ client: MQTTTestClient, _ token: String, _ id: UInt64) async throws -> Hermes_V1_Packet {
        var request = Hermes_V1_Packet()
        request.id = id
        request.authenticate.token = token
        return try await ask(client, request)
    }

    private func ask(_ client: MQTTTestClient, _ request: Hermes_V1_Packet) async throws -> Hermes_V1_Packet {
        try await client.send(
            .publish(MQTTPublish(topic: "hermes/v1/up", payload: try request.wireBuffer(), qos: .atMostOnce))
        )
        return try Hermes_V1_Packet(wire: try await client.publication().payload)
    }
}
