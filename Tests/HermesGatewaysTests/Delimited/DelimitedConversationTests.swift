// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct DelimitedConversationTests {
    @Test func `read marks recalls and history`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let annUID = try await ann.register("ann").uid
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid
            try await ann.send("one", to: bobUID, id: 1)
            let receipt = try await ann.receipt(1)
            _ = try await bob.event()

            let read = try await bob.ask(
                2,
                .markRead(
                    .with {
                        $0.conversation.uid = annUID
                        $0.upToSeq = 1
                    }
                )
            )
            #expect(!read.hasError)
            let mark = try await ann.event()
            #expect(mark.readMark.uid == bobUID)
            #expect(mark.readMark.upToSeq == 1)

            let recalled = try await ann.ask(
                3,
                .recall(
                    .with {
                        $0.conversation.uid = bobUID
                        $0.messageID = receipt.messageID
                    }
                )
            )
            #expect(!recalled.hasError)
            var event = try await bob.event()
            if case .readMark = event.event { event = try await bob.event() }
            #expect(event.recalled.messageID == receipt.messageID)
            #expect(event.recalled.byUid == annUID)

            let history = try await bob.ask(4, .history(.with { $0.conversation.uid = annUID }))
            #expect(history.history.messages.map(\.recalled) == [true])
            #expect(history.history.more == false)
        }
    }

    @Test func `synchronize repeats entries`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid
            for id in 1...5 { try await ann.send("\(id)", to: bobUID, id: UInt64(id)) }
            for _ in 1...5 { _ = try await bob.event() }
            let answer = try await bob.ask(
                9,
                .synchronize(
                    .with {
                        $0.afterSeq = 2
                        $0.limit = 2
                    }
                )
            )
            #expect(answer.synchronized.headSeq == 5)
            #expect(answer.synchronized.count == 2)
            #expect(try await bob.event().seq == 3)
            #expect(try await bob.event().seq == 4)
        }
    }

    @Test func `a signal has the hosts that the client gives if they are addresses, or else what the server observes`()
        async throws
    {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let annUID = try await ann.register("ann").uid
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid
            try await server.befriend(annUID, bobUID)
            var signal = Hermes_V1_Signal()
            signal.toUid = bobUID
            signal.sessionID = "call"
            signal.address.localHost = "10.0.0.7"
            signal.address.localPort = 4_000
            // This address belongs to somebody, but nothing is sent to it.
            signal.address.observedHost = "9.9.9.9"
            signal.address.observedPort = 5_000
            signal.address.seenByServer = true
            #expect(try await !ann.ask(2, .signal(signal)).hasError)
            let address = try await bob.ephemeral().signal.signal.address
            #expect(address.localHost == "10.0.0.7" && address.localPort == 4_000)
            #expect(address.observedHost == "9.9.9.9" && address.observedPort == 5_000 && !address.seenByServer)
            signal.address.observedHost = "10.0.0.7"
            signal.address.seenByServer = false
            for text in ["127.0.0.1", "bank.example", "10.0.0.7\0", "fe80::1%en0", String(repeating: "1", count: 64)] {
                signal.address.localHost = text
                #expect(try await !ann.ask(3, .signal(signal)).hasError)
                let address = try await bob.ephemeral().signal.signal.address
                #expect(address.localHost == "" && address.observedHost == "127.0.0.1", "\(text)")
                #expect(address.seenByServer)
            }
        }
    }

    @Test func `ephemeral events reach the peer`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let annUID = try await ann.register("ann").uid
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid

            try await ann.ask(2, .typing(.with { $0.conversation.uid = bobUID }))
            let typing = try await bob.ephemeral().typing
            #expect(typing.uid == annUID)
            #expect(typing.conversation.uid == annUID)

            try await server.befriend(annUID, bobUID)
            try await ann.ask(
                3,
                .signal(
                    .with {
                        $0.toUid = bobUID
                        $0.sessionID = "call"
                        $0.data = .init([1, 2])
                    }
                )
            )
            let signal = try await bob.ephemeral().signal
            #expect(signal.fromUid == annUID)
            #expect(signal.fromDeviceID == "one")
            #expect(signal.signal.data == .init([1, 2]))

            let watched = try await bob.ask(4, .presence(.with { $0.watchUids = [annUID] }))
            #expect(watched.presence.presences.map(\.isOnline) == [true])
            try await ann.wire.close()
            let presence = try await bob.ephemeral().presence
            #expect(presence.uid == annUID)
            #expect(presence.isOnline == false)
        }
    }

    @Test(arguments: [false, true]) func `an account revokes its other tokens, and keeps the one of the connection`(
        byPassword: Bool
    ) async throws {
        try await GatewayHarness.with { server in
            let phone = try await server.delimited()
            let own = try await phone.register("ann", device: "phone")
            let tablet = try await server.delimited()
            let other = try await tablet.authenticate("ann", device: "tablet")
            let change = Hermes_V1_PasswordChange.with {
                $0.oldPassword = "password of ann"
                $0.newPassword = "another of ann"
            }
            let request = Hermes_V1_AccountRequest.with {
                if byPassword { $0.changePassword = change } else { $0.revokeTokens = Hermes_V1_RevokeTokens() }
            }
            let answer = try await phone.ask(2, .account(request))
            #expect(!answer.hasError, "\(answer.error)")
            #expect(try await tablet.kicked().reason == .revoked)
            #expect(try await !phone.ask(3, .account(.with { $0.get = Hermes_V1_AccountSelector() })).hasError)
            let again = try await server.delimited()
            #expect(try await again.authenticate(token: own.token, device: "phone").uid == own.uid)
            let stranger = try await server.delimited()
            await #expect(throws: Unexpected.self) {
                try await stranger.authenticate(token: other.token, device: "tablet")
            }
        }
    }

    @Test func `a signal has a most size, whichever field is long`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            let bobUID = UInt32(try await server.register("bob").principal.user.rawValue)
            var id: UInt64 = 1
            func code(_ change: (inout Hermes_V1_Signal) -> Void) async throws -> HermesError.Code? {
                id += 1
                var signal = Hermes_V1_Signal.with {
                    $0.toUid = bobUID
                    $0.sessionID = "call"
                }
                change(&signal)
                return HermesError.Code(rawValue: try await ann.ask(id, .signal(signal)).error.code)
            }
            // Ann is not a contact of Bob. This is the only reason why a short signal is refused.
            #expect(try await code { $0.data = Data(count: 16_384) } == .forbidden)
            #expect(try await code { $0.data = Data(count: 16_385) } == .tooLarge)
            let host = String(repeating: "x", count: 17_000)
            #expect(try await code { $0.address.localHost = host } == .forbidden)
            #expect(try await code { $0.address.localHost = host + host } == .tooLarge)
            #expect(try await code { $0.end.reason = host + host } == .tooLarge)
        }
    }

    @Test func `whom a connection watches counts as its memory until it leaves`() async throws {
        try await GatewayHarness.with { server in
            let memory = server.environment.loops.memory
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            let before = memory.used
            let uids = [UInt32](1_000..<2_000)
            _ = try await ann.ask(2, .presence(.with { $0.watchUids = uids }))
            #expect(memory.used - before >= 1_000 * DeviceRegistry.bytesOfWatched)
            _ = try await ann.ask(3, .presence(.with { $0.unwatchUids = Array(uids.prefix(500)) }))
            #expect((500...600).contains((memory.used - before) / DeviceRegistry.bytesOfWatched))
            try await ann.wire.close()
            let end = ContinuousClock.now + .seconds(10)
            while memory.used > before, ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(5)) }
            #expect(memory.used <= before)
        }
    }

    @Test func `rooms reach everyone in them`() async throws {
        try await GatewayHarness.with { server in
            // There are four connections, so that both event loops have connections.
            var viewers: [DelimitedTestClient] = []
            for name in ["a", "b", "c", "d"] {
                let viewer = try await server.delimited()
                _ = try await viewer.register(name)
                let entered = try await viewer.ask(
                    2,
                    .room(
                        .with {
                            $0.room = "stage"
                            $0.enter = .init()
                        }
                    )
                )
                #expect(entered.room.room == "stage")
                #expect(entered.room.memberCount == UInt32(viewers.count + 1))
                viewers.append(viewer)
            }
            try await viewers[0].write(
                3,
                .room(
                    .with {
                        $0.room = "stage"
                        $0.text.text = "hello"
                    }
                )
            )
            for viewer in viewers {
                var event = try await viewer.ephemeral().room
                while event.event == .joined(.init()) { event = try await viewer.ephemeral().room }
                #expect(event.text.text == "hello")
                #expect(event.user.name == "a")
                #expect(event.uid == 1)
            }
            try await viewers[1].ask(
                4,
                .room(
                    .with {
                        $0.room = "stage"
                        $0.leave = .init()
                    }
                )
            )
            let left = try await viewers[2].ephemeral().room
            #expect(left.event == .left(.init()))
            #expect(left.user.name == "b")
            let outside = try await viewers[1].ask(
                5,
                .room(
                    .with {
                        $0.room = "stage"
                        $0.text.text = "?"
                    }
                )
            )
            #expect(outside.error.code == HermesError.Code.forbidden.rawValue)
        }
    }

    @Test func `devices accounts and logging out`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await server.delimited()
            let session = try await ann.register("ann", device: "phone")
            let tablet = try await server.delimited()
            _ = try await tablet.authenticate("ann", device: "tablet")

            let list = try await ann.ask(2, .device(.with { $0.list = .init() })).devices.devices
            #expect(Set(list.map(\.id)) == ["phone", "tablet"])
            #expect(list.filter(\.isCurrent).map(\.id) == ["phone"])
            try await ann.ask(3, .device(.with { $0.remove.deviceID = "tablet" }))
            #expect(try await tablet.kicked().reason == .revoked)

            let account = try await ann.ask(4, .account(.with { $0.get.nickName = "ANN" }))
            #expect(account.account.uid == session.uid)
            #expect(account.account.isOnline)
            let missing = try await ann.ask(5, .account(.with { $0.get.uid = 77 }))
            #expect(missing.error.code == HermesError.Code.notFound.rawValue)

            let out = try await ann.ask(6, .logOut(.init()))
            #expect(!out.hasError)
            #expect(try await ann.wire.next() == nil)
            let back = try await server.delimited()
            await #expect(throws: Unexpected.self) {
                try await back.authenticate(token: session.token, device: "phone")
            }
        }
    }
}
