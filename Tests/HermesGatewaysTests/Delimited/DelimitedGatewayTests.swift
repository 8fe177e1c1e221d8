// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct DelimitedGatewayTests {
    @Test func `registers and authenticates`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let registered = try await ann.register("ann")
            #expect(registered.uid > 0)
            #expect(registered.nickName == "ann")
            #expect(!registered.token.isEmpty)
            #expect(registered.epoch > 0)
            #expect(registered.maxFrameBytes == 1_048_576)

            let again = try await server.delimited()
            let session = try await again.authenticate(token: registered.token, device: "one")
            #expect(session.uid == registered.uid)
            #expect(session.epoch == registered.epoch)

            let stranger = try await server.delimited()
            var request = Hermes_V1_Authenticate()
            request.password.nickName = "ann"
            request.password.password = "wrong"
            request.device.id = "one"
            let refused = try await stranger.ask(5, .authenticate(request))
            #expect(refused.error.code == HermesError.Code.wrongCredentials.rawValue)
        }
    }

    @Test func `delivers to the other and to one's own other devices`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let annSession = try await ann.register("ann")
            let annTablet = try await server.delimited()
            _ = try await annTablet.authenticate("ann", device: "tablet")
            let bob = try await server.delimited()
            let bobSession = try await bob.register("bob")

            try await ann.send("hello", to: bobSession.uid, id: 7, clientID: "c1")
            let receipt = try await ann.receipt(7)
            #expect(receipt.clientID == "c1")
            #expect(receipt.inboxSeq == 1)

            let arrived = try await bob.event()
            #expect(arrived.seq == 1)
            #expect(arrived.message.id == receipt.messageID)
            #expect(arrived.message.content.text == "hello")
            #expect(arrived.message.fromUid == annSession.uid)
            #expect(arrived.message.fromNickName == "ann")
            #expect(arrived.message.conversation.uid == annSession.uid)
            #expect(arrived.message.own == false)
            #expect(arrived.message.clientID.isEmpty)

            let echoed = try await annTablet.event()
            #expect(echoed.message.id == receipt.messageID)
            #expect(echoed.message.own)
            #expect(echoed.message.clientID == "c1")
            #expect(echoed.message.conversation.uid == bobSession.uid)

            // The sending device does not get its own message. The next entry that it gets is Bob's answer.
            try await bob.send("hi", to: annSession.uid, id: 8)
            let answer = try await ann.event()
            #expect(answer.seq == 2)
            #expect(answer.message.content.text == "hi")
        }
    }

    @Test func `keeps the order for a device that was away`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            let bob = try await server.delimited()
            let bobSession = try await bob.register("bob")
            try await bob.wire.close()

            for number in 1...300 { try await ann.send("\(number)", to: bobSession.uid, id: UInt64(number)) }
            for number in 1...300 { _ = try await ann.receipt(UInt64(number)) }

            let back = try await server.delimited()
            _ = try await back.authenticate("bob", device: "one")
            for number in 1...300 {
                let event = try await back.event()
                #expect(event.seq == UInt64(number))
                #expect(event.message.content.text == "\(number)")
            }
            try await back.acknowledge(200)
            try await back.wire.close()

            // The client's cursor takes precedence over the server's record.
            let third = try await server.delimited()
            _ = try await third.authenticate("bob", device: "one", epoch: bobSession.epoch, acknowledged: 250)
            #expect(try await third.event().seq == 251)
        }
    }

    @Test
    func `a cursor ahead of the inbox is one of a lost store`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            let bob = try await server.delimited()
            let bobSession = try await bob.register("bob")
            try await bob.wire.close()
            for number in 1...5 { try await ann.send("\(number)", to: bobSession.uid, id: UInt64(number)) }
            for number in 1...5 { _ = try await ann.receipt(UInt64(number)) }

            // This is the state after a power cut. The device has entries 1 to 8 of a lost inbox, and the store has 5
            // other entries.
            let back = try await server.delimited()
            let session = try await back.authenticate("bob", device: "one", epoch: bobSession.epoch, acknowledged: 8)
            #expect(session.inboxReset)
            #expect(session.headSeq == 5)
            #expect(session.acknowledgedSeq == 0)
            for number in 1...5 { #expect(try await back.event().seq == UInt64(number)) }
            // An acknowledgement of entries that the inbox never had also has no effect.
            try await back.acknowledge(8)
            try await back.wire.close()
            let again = try await server.delimited()
            let known = try await again.authenticate("bob", device: "one", epoch: bobSession.epoch, acknowledged: 5)
            #expect(!known.inboxReset)
            let last = try await server.delimited()
            #expect(try await last.authenticate("bob", device: "two").acknowledgedSeq == 0)
        }
    }

    @Test
    func `a store that has another entry under the seq of the client's newest one has lost entries`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let annSession = try await ann.register("ann")
            let bob = try await server.delimited()
            let bobSession = try await bob.register("bob")
            for number in 1...3 { try await ann.send("\(number)", to: bobSession.uid, id: UInt64(number)) }
            var entries: [Hermes_V1_KnownEntry] = []
            for _ in 1...3 { entries.append(Hermes_V1_KnownEntry(try await bob.event())) }
            // The fourth entry is a read mark, which has no id. The fifth is the entry of a message that Bob sends.
            var request = Hermes_V1_MarkRead()
            request.conversation.uid = bobSession.uid
            request.upToSeq = 1
            _ = try await ann.ask(9, .markRead(request))
            entries.append(Hermes_V1_KnownEntry(try await bob.event()))
            #expect(entries[3].id.isEmpty)
            try await bob.send("hi", to: annSession.uid, id: 9)
            let receipt = try await bob.receipt(9)
            var own = Hermes_V1_KnownEntry()
            own.seq = receipt.inboxSeq
            own.id = receipt.messageID
            own.serverTimeMs = receipt.serverTimeMs
            entries.append(own)
            #expect(entries.map(\.seq) == [1, 2, 3, 4, 5])
            try await bob.wire.close()

            func isReset(
                _ newest: Hermes_V1_KnownEntry?,
                epoch: UInt64 = bobSession.epoch,
                uid: UInt32 = 0
            ) async throws -> Bool {
                let back = try await server.delimited()
                // The cursor stays at 0, so that the server continues with the first entry each time.
                let session = try await back.authenticate("bob", device: "one", epoch: epoch, newest: newest, uid: uid)
                #expect(session.acknowledgedSeq == 0)
                #expect(try await back.event().seq == 1)
                try await back.wire.close()
                return session.inboxReset
            }
            for entry in entries {
                #expect(try await !isReset(entry))
                var other = entry
                if entry.id.isEmpty { other.serverTimeMs += 1 } else { other.id = String(entry.id.reversed()) }
                #expect(try await isReset(other))
                // Without an epoch, the client's seqs mean nothing.
                #expect(try await !isReset(other, epoch: 0))
                // The place in another account's inbox says nothing about this one.
                #expect(try await !isReset(other, uid: annSession.uid))
                #expect(try await isReset(other, uid: bobSession.uid))
                // A client to which the entry was not shown knows only its time. A receipt has the time of the message,
                // which may be some milliseconds before the time of the entry.
                if !entry.id.isEmpty, entry.seq != own.seq {
                    other.id = ""
                    #expect(try await !isReset(other))
                    other.serverTimeMs -= 1
                    #expect(try await isReset(other))
                }
            }
            // Nobody has got entry 6.
            var ahead = entries[4]
            ahead.seq = 6
            #expect(try await isReset(ahead))
            ahead.seq = .max
            #expect(try await isReset(ahead))
            // Up to the device's cursor, the client and the store already agreed, and the entries may be gone.
            let last = try await server.delimited()
            _ = try await last.authenticate("bob", device: "one", epoch: bobSession.epoch, acknowledged: 3)
            try await last.wire.close()
            var gone = entries[2]
            gone.id = "gone"
            let again = try await server.delimited()
            let session = try await again.authenticate(
                "bob",
                device: "one",
                epoch: bobSession.epoch,
                acknowledged: 3,
                newest: gone
            )
            #expect(!session.inboxReset && session.acknowledgedSeq == 3)
        }
    }

    @Test func `the same device replaces its older connection`() async throws {
        try await GatewayHarness.with { server in
            let first = try await server.delimited()
            _ = try await first.register("ann", device: "phone")
            let second = try await server.delimited()
            _ = try await second.authenticate("ann", device: "phone")
            #expect(try await first.kicked().reason == .replaced)
            #expect(try await first.wire.next() == nil)
            // The end of the older connection does not affect the newer connection.
            try await second.send("note to myself", to: 1, id: 3)
            _ = try await second.receipt(3)
        }
    }

    @Test func `sending again is recognised`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            let bob = try await server.delimited()
            let uid = try await bob.register("bob").uid
            try await ann.send("once", to: uid, id: 1, clientID: "x")
            let first = try await ann.receipt(1)
            try await ann.send("once", to: uid, id: 2, clientID: "x")
            let second = try await ann.receipt(2)
            #expect(second.duplicate)
            #expect(second.messageID == first.messageID)
            try await ann.send("other", to: uid, id: 3, clientID: "x")
            #expect(try await ann.result(3).error.code == HermesError.Code.clientIDConflict.rawValue)
        }
    }

    @Test func `refuses what is not allowed`() async throws {
        try await GatewayHarness.with { server in
            let client = try await server.delimited()
            try await client.send("hello", to: 1, id: 4)
            #expect(try await client.result(4).error.code == HermesError.Code.notAuthenticated.rawValue)
            try await client.write(5, .ping(.with { $0.clientTimeMs = 17 }))
            #expect(try await client.next().pong.clientTimeMs == 17)

            _ = try await client.register("ann")
            let unknown = try await client.ask(6, .contact(.init()))
            #expect(unknown.error.code == HermesError.Code.unsupported.rawValue)
            let second = try await client.ask(7, .register(.init()))
            #expect(second.error.code == HermesError.Code.alreadyAuthenticated.rawValue)
            let empty = try await client.ask(8, .send(.with { $0.to.uid = 1 }))
            #expect(empty.error.code == HermesError.Code.invalidArgument.rawValue)
            // The client asks for no answer, but a failure is still reported.
            try await client.send("hello", to: 4_000, id: 0)
            #expect(try await client.result(0).error.code == HermesError.Code.notFound.rawValue)
        }
    }

    @Test func `garbage ends that one connection`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let uid = try await ann.register("ann").uid
            // The cases are a length of 2^32 or more, a length above the limit before a login, and bytes that are not a
            // packet.
            for bytes: [UInt8] in [[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0x81, 0x80, 0x40], [3, 0xFF, 0xFF, 0xFF]] {
                let hostile = try await server.delimited()
                try await hostile.wire.send(ByteBuffer(bytes: bytes))
                #expect(try await hostile.kicked().reason == .protocol)
                #expect(try await hostile.wire.next() == nil)
            }
            try await ann.send("still here", to: uid, id: 2)
            _ = try await ann.receipt(2)
        }
    }

    @Test func `what is beyond the rate waits and is answered`() async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 20
        try await GatewayHarness.with(settings: settings) { server in
            let client = try await server.delimited()
            _ = try await client.register("ann")
            let start = ContinuousClock.now
            for id in 1...40 { try await client.write(UInt64(id), .ping(.init())) }
            for id in 1...40 { #expect(try await client.next().id == UInt64(id)) }
            #expect(ContinuousClock.now - start > .milliseconds(500))
        }
    }

    @Test func `connections of one address are limited`() async throws {
        var settings = GatewaySettings()
        settings.limits.connectionsPerAddress = 2
        try await GatewayHarness.with(settings: settings) { server in
            let first = try await server.delimited()
            _ = try await first.register("ann")
            let second = try await server.delimited()
            _ = try await second.register("bob")
            let third = try await server.delimited()
            #expect(try await third.wire.next() == nil)
            try await second.wire.close()
            // The place of the second connection is free after the server has noticed its end.
            var session: Hermes_V1_Session?
            while session == nil {
                guard let next = try? await server.delimited() else { continue }
                session = try? await next.authenticate("bob", device: "one")
            }
        }
    }

    @Test func `draining tells everyone`() async throws {
        try await GatewayHarness.with { server in
            let client = try await server.delimited()
            _ = try await client.register("ann")
            let listener = try #require(server.listeners["delimited"])
            await listener.stopAccepting()
            await listener.drain(within: .seconds(10))
            #expect(listener.openConnections == 0)
            let kicked = try await client.kicked()
            #expect(kicked.reason == .shutdown)
            #expect(kicked.reconnect.windowMs > 0)
        }
    }
}
