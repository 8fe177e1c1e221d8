// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// The notifications that the published app understands: 2 for waiting messages, and 3 for a command.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct IMPBNotificationTests {
    /// Logs ann in, and sends three messages that wait for bob.
    private static func backlog(_ server: GatewayHarness) async throws -> (ann: IMPBTestClient, uids: [UInt32]) {
        let ann = try await server.impb()
        let annUID = try await ann.register("ann").uid
        _ = try await ann.logIn("ann")
        let bob = try await server.impb()
        let bobUID = try await bob.register("bob").uid
        _ = try await bob.logIn("bob")
        try await bob.wire.close()
        for seq in 3...5 as ClosedRange<UInt32> {
            try await ann.send("\(seq)", to: bobUID, seq: seq)
            #expect(try await ann.reply(seq).isSuc)
        }
        return (ann, [annUID, bobUID])
    }

    @Test func `no more entries wait than are stored`() {
        let holes = InboxPosition(epoch: 1, head: 1 << 40, oldest: 1, entries: 3)
        #expect(IMPBTranslation.waiting(after: 2, holes) == 3)
        let some = InboxPosition(epoch: 1, head: 9, oldest: 1, entries: 9)
        #expect(IMPBTranslation.waiting(after: 7, some) == 2)
        #expect(IMPBTranslation.waiting(after: 9, some) == 0)
        #expect(IMPBTranslation.waiting(after: 0, InboxPosition(epoch: 1, head: 9, oldest: 5)) == 5)
    }

    @Test func `a login with a backlog is told how much waits, before it comes`() async throws {
        try await GatewayHarness.with { server in
            let (ann, uids) = try await Self.backlog(server)
            let again = try await server.impb()
            let login = try await again.logIn("bob")
            let frame = try await again.next()
            #expect(frame.type == .notification)
            let notification = try IMPB_Notification_msg(wire: frame.body)
            #expect(notification.type == .offlineMsg)
            #expect(notification.targetUid == uids[1])
            #expect(notification.seq == 0)
            let waiting = try IMPB_offline_msg_notification(wire: notification.body)
            #expect(waiting.count == 3)
            #expect(waiting.headSeq == login.headSeq)
            for seq in 3...5 { #expect(try await again.message().text == "\(seq)") }
            // The ping shows that the client has the messages. This is committed together with the next commit. Then no
            // messages wait.
            try await again.ping()
            try await ann.send("note", to: uids[0], seq: 6)
            #expect(try await ann.reply(6).isSuc)
            try await again.wire.close()
            let third = try await server.impb()
            let position = try await third.logIn("bob")
            #expect(position.acknowledgedSeq == position.headSeq)
            try await third.wire.send(IMPBFrame(seq: 9, type: .ping))
            #expect(try await third.next().type == .ping)
        }
    }

    @Test func `receipts with many fields wait until they are paid for`() async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 1_000
        try await GatewayHarness.with(settings: settings) { server in
            let ann = try await server.impb()
            _ = try await ann.register("ann")
            _ = try await ann.logIn("ann")
            // These are empty fields that a notification does not have.
            let body = ByteBuffer(bytes: (0..<4_000).flatMap { _ in [0x7A, 0] as [UInt8] })
            let start = ContinuousClock.now
            for seq in 10..<20 as Range<UInt32> {
                try await ann.wire.send(IMPBFrame(seq: seq, type: .notification, body: body))
            }
            try await ann.ping(30)
            #expect(ContinuousClock.now - start > .milliseconds(900))
        }
    }

    @Test func `its receipt acknowledges nothing`() async throws {
        try await GatewayHarness.with { server in
            let (ann, uids) = try await Self.backlog(server)
            let again = try await server.impb()
            _ = try await again.logIn("bob")
            let notification = try await again.notification()
            #expect(notification.type == .offlineMsg)
            for _ in 3...5 { _ = try await again.message() }
            try await again.write(.notification, 1, notification)
            // A pull also acknowledges nothing. Its answer shows that the receipt was handled.
            #expect(try await again.ask(7, .pull, IMPB_pull_request()).isSuc)
            try await ann.send("note", to: uids[0], seq: 6)
            #expect(try await ann.reply(6).isSuc)
            try await again.wire.close()
            let third = try await server.impb()
            #expect(try await third.logIn("bob").acknowledgedSeq == 0)
            #expect(try await third.message().text == "3")
        }
    }

    @Test func `a back end's command is notification 3, with its own bytes`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.impb()
            let uid = try await ann.register("ann").uid
            _ = try await ann.logIn("ann")
            let user = try #require(UserID(uid))
            let native = try await server.delimited()
            _ = try await native.register("bob")
            #expect(server.messenger.devices.notify(user, .command([0, 255, 7])) == 1)
            let notification = try await ann.notification()
            #expect(notification.type == .cmd)
            #expect(notification.targetUid == uid)
            #expect([UInt8](notification.body) == [0, 255, 7])
            #expect(notification.seq == 0)
        }
    }
}
