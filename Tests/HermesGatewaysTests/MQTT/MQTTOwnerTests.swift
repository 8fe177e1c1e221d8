// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Durable sessions belong to the numbers of accounts. A rename changes no owner, and an account that takes a name gets
/// nothing from its previous owner.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTOwnerTests {
    /// Accepts tokens of the form "jwt:SUBJECT".
    private struct Verifier: TokenVerifier {
        func isToken(_ text: String) -> Bool { text.hasPrefix("jwt:") }

        func verify(_ text: String, now: Timestamp) async throws(HermesError) -> VerifiedToken {
            VerifiedToken(subject: String(text.dropFirst(4)))
        }
    }

    /// Connects a client with a durable session.
    private func connect(
        _ harness: GatewayHarness,
        _ version: MQTTVersion = .v5,
        as name: String,
        password: String = "correct horse",
        id: String = "lamp",
        receiveMaximum: UInt16 = 100
    ) async throws -> (client: MQTTTestClient, isPresent: Bool) {
        var connect = MQTTConnect(version: version, clientID: id, cleanStart: false)
        if version == .v5 {
            connect.properties = [.sessionExpiryInterval(600), .receiveMaximum(receiveMaximum)]
        }
        connect.userName = name
        connect.password = ByteBuffer(string: password)
        let (client, connack) = try await harness.apply(connect)
        guard connack.reason == .success else { throw Unexpected("CONNACK with \(connack.reason)") }
        return (client, connack.sessionPresent)
    }

    private func untilNobodyIsOnline(_ harness: GatewayHarness) async throws {
        while harness.messenger.durable.statistics.online > 0 {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Disconnects the client, but keeps its session.
    private func leave(_ harness: GatewayHarness, _ client: MQTTTestClient) async throws {
        try await client.disconnect()
        try await untilNobodyIsOnline(harness)
    }

    private func rename(_ harness: GatewayHarness, _ user: UserID, to name: String) async throws {
        _ = try await harness.messenger.accounts.changeProfile(of: user, nickName: name, avatarURL: nil)
    }

    /// Publishes over a separate connection.
    private func publish(
        _ harness: GatewayHarness,
        as name: String? = nil,
        _ topic: String,
        _ text: String,
        retain: Bool = false
    ) async throws {
        let others = try await harness.openCount()
        var connect = MQTTConnect(version: .v5, clientID: "pen")
        connect.userName = name
        connect.password = name.map { _ in ByteBuffer(string: "correct horse") }
        let (pen, connack) = try await harness.apply(connect)
        #expect(connack.reason == .success)
        #expect(try await pen.publish(topic, text, retain: retain).rawValue < 0x80)
        try await pen.disconnect()
        // A client that is still connected keeps its old name, so wait until it has disconnected.
        while try await harness.openCount() > others { try Task.checkCancellation() }
    }

    /// Returns the texts that a client receives, up to the last text of its queue.
    private func received(_ client: MQTTTestClient, upTo last: String) async throws -> [String] {
        var texts: [String] = []
        while texts.last != last { texts.append(try await client.publication().text) }
        return texts
    }

    @Test(
        arguments: MQTTVersion.allCases,
        [true, false]
    )
    func `after a rename, away or connected, the session is there with its queue, but for what was the old name's`(
        _ version: MQTTVersion,
        isConnected: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann").principal.user
            let (lamp, _) = try await connect(harness, version, as: "ann")
            _ = try await lamp.subscribe("news/#", "user/ann/#", qos: .atLeastOnce)
            if !isConnected { try await leave(harness, lamp) }
            try await publish(harness, "news/a", "one")
            try await publish(harness, as: "ann", "user/ann/a", "private")
            try await publish(harness, as: "ann", "news/kept", "retained", retain: true)
            if isConnected { for _ in 0..<3 { _ = try await lamp.publication() } }

            try await rename(harness, ann, to: "bea")
            if isConnected {
                let last = try await lamp.untilEnd().last
                if version == .v5 {
                    guard case .disconnect(let packet)? = last else { throw Unexpected("no DISCONNECT") }
                    #expect(packet.reason == .notAuthorized)
                }
                try await untilNobodyIsOnline(harness)
            }
            try await publish(harness, "news/b", "two")
            #expect(harness.messenger.durable.statistics.sessions == 1)
            // The same account as before pays.
            let all = try #require(TopicFilter("#"))
            let retained = harness.messenger.retained.matching(all, now: harness.messenger.time.now())
            #expect(retained.map(\.source) == [.account(ann)])
            await #expect(throws: Unexpected.self) { _ = try await connect(harness, version, as: "ann") }

            let (again, isPresent) = try await connect(harness, version, as: "bea")
            #expect(isPresent)
            #expect(try await received(again, upTo: "two") == ["one", "retained", "two"])
            // The client's subscriptions are in effect. The subscription to topics of the old name delivers nothing.
            try await publish(harness, "news/c", "three")
            #expect(try await received(again, upTo: "three") == ["three"])
            #expect(try await again.subscribe("user/bea/#").reasons.allSatisfy { !$0.isFailure })
            #expect(try await again.subscribe("user/ann/#").reasons.allSatisfy { $0.isFailure })
        }
    }

    @Test
    func `a name gives nobody what came while it was another's, whatever subscription waited for it`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann").principal.user
            let bob = try await harness.register("bob").principal.user
            let (lamp, _) = try await connect(harness, as: "ann")
            // With the first filter, the rules allow the client to read the topics of its own account.
            #expect(try await lamp.subscribe("#", "user/ann/#").reasons.allSatisfy { !$0.isFailure })
            try await leave(harness, lamp)
            try await publish(harness, as: "ann", "user/ann/x", "ann's own")

            // Another account has ann's name for some time.
            try await rename(harness, ann, to: "bea")
            let eve = try await harness.register("ann").principal.user
            try await publish(harness, as: "ann", "user/ann/x", "eve's")
            try await publish(harness, "news", "one")
            try await rename(harness, eve, to: "zoe")
            try await rename(harness, ann, to: "ann")
            try await publish(harness, as: "ann", "user/ann/x", "ann's again")
            var (again, isPresent) = try await connect(harness, as: "ann")
            #expect(isPresent)
            #expect(try await received(again, upTo: "ann's again") == ["one", "ann's again"])
            // The messages were not acknowledged, so they arrive again.
            try await leave(harness, again)

            try await publish(harness, as: "bob", "user/bob/x", "bob's")
            try await rename(harness, bob, to: "rob")
            try await rename(harness, ann, to: "bob")
            try await publish(harness, as: "bob", "user/bob/x", "new")
            (again, isPresent) = try await connect(harness, as: "bob")
            #expect(isPresent)
            #expect(try await received(again, upTo: "new") == ["one", "new"])
            try await leave(harness, again)
            // The same holds over another connection.
            again = try await connect(harness, as: "bob").client
            #expect(try await received(again, upTo: "new") == ["one", "new"])
        }
    }

    @Test
    func `what came by a subscription that is over is held against the rules all the same`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann").principal.user
            let (lamp, _) = try await connect(harness, as: "ann")
            _ = try await lamp.subscribe("user/ann/#", "news", qos: .atLeastOnce)
            try await leave(harness, lamp)
            try await rename(harness, ann, to: "bea")
            _ = try await harness.register("ann")
            for text in ["first", "second"] { try await publish(harness, "news", text) }
            try await publish(harness, as: "ann", "user/ann/x", "another's")
            try await publish(harness, "news", "third")
            // The messages arrive one at a time. The others wait.
            let (again, _) = try await connect(harness, as: "bea", receiveMaximum: 1)
            #expect(try await again.publication().text == "first")
            _ = try await again.unsubscribe("user/ann/#")
            try await leave(harness, again)
            let (last, _) = try await connect(harness, as: "bea")
            #expect(try await received(last, upTo: "third") == ["first", "second", "third"])
        }
    }

    @Test(arguments: [true, false])
    func `who takes a freed name has a session of its own, and so has who gave it up`(isDeleted: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann").principal.user
            let (lamp, _) = try await connect(harness, as: "ann")
            _ = try await lamp.subscribe("secrets", qos: .atLeastOnce)
            try await leave(harness, lamp)
            try await publish(harness, "secrets", "one")
            if isDeleted {
                try await harness.messenger.deleteAccount(ann)
            } else {
                try await rename(harness, ann, to: "bea")
            }
            #expect(harness.messenger.durable.statistics.sessions == (isDeleted ? 0 : 1))
            _ = try await harness.register("ann")
            let (heir, isPresent) = try await connect(harness, as: "ann")
            #expect(!isPresent)
            try await publish(harness, "secrets", "two")
            #expect(try await heir.untilPong().isEmpty)
            guard !isDeleted else { return }
            let (former, isStillPresent) = try await connect(harness, as: "bea")
            #expect(isStillPresent)
            #expect(try await received(former, upTo: "two") == ["one", "two"])
            // The two clients do not replace each other.
            #expect(try await heir.untilPong().isEmpty)
        }
    }

    @Test
    func `a name that is proved elsewhere and an account of this name have nothing of each other`() async throws {
        try await GatewayHarness.withMQTT(tokenVerifier: Verifier()) { harness in
            func connectByToken() async throws -> (client: MQTTTestClient, isPresent: Bool) {
                try await connect(harness, as: "x", password: "jwt:ann")
            }
            // There is no account yet.
            var (client, isPresent) = try await connectByToken()
            #expect(!isPresent)
            _ = try await client.subscribe("subject", qos: .atLeastOnce)
            try await leave(harness, client)
            // Now the account has the name, for logins by password and by token.
            let ann = try await harness.register("ann").principal.user
            (client, isPresent) = try await connect(harness, as: "ann")
            #expect(!isPresent)
            _ = try await client.subscribe("account", qos: .atLeastOnce)
            try await leave(harness, client)
            for topic in ["subject", "account"] { try await publish(harness, topic, "for the \(topic)") }
            (client, isPresent) = try await connectByToken()
            #expect(isPresent)
            #expect(try await received(client, upTo: "for the account") == ["for the account"])
            try await leave(harness, client)
            // Now the account has another name.
            try await rename(harness, ann, to: "bea")
            (client, isPresent) = try await connectByToken()
            #expect(isPresent)
            #expect(try await received(client, upTo: "for the subject") == ["for the subject"])
            let (own, isStillPresent) = try await connect(harness, as: "bea")
            #expect(isStillPresent)
            #expect(try await received(own, upTo: "for the account") == ["for the account"])
            #expect(harness.messenger.durable.statistics.sessions == 2)
        }
    }

    @Test
    func `a client that was let in by a name before it was an account's ends when that account is disabled`()
        async throws
    {
        try await GatewayHarness.withMQTT(tokenVerifier: Verifier()) { harness in
            let (client, _) = try await connect(harness, as: "x", password: "jwt:ann")
            let ann = try await harness.register("ann").principal.user
            try await rename(harness, ann, to: "bea")
            #expect(try await client.untilPong().isEmpty, "a rename is none of its business")
            try await rename(harness, ann, to: "ann")
            try await harness.messenger.accounts.setDisabled(ann, true)
            #expect(try await !client.untilEnd().isEmpty)
            #expect(harness.messenger.durable.statistics.sessions == 1)
        }
    }
}
