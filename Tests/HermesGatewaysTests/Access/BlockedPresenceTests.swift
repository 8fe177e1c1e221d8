// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

@Suite("To whom one blocks one is never there", .inTurns, .timeLimit(.minutes(1)))
struct BlockedPresenceTests {
    @Test
    func `every answer that tells who is online, in each protocol`() async throws {
        try await GatewayHarness.with { server in
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid
            let desk = try await server.delimited()
            let annUID = try await desk.register("ann", device: "desk").uid
            let phone = try await server.impb()
            _ = try await phone.logIn("ann")
            try await server.contact(.block, by: annUID, bobUID)

            /// Asks for the presence with every request that returns it.
            func seen() async throws -> [String: Bool] {
                let account = try await desk.ask(2, .account(.with { $0.get.uid = bobUID })).account.isOnline
                let watched = try await desk.ask(3, .presence(.with { $0.watchUids = [bobUID] })).presence.presences
                let list = try await desk.ask(4, .contact(.with { $0.list = .init() })).contacts.contacts
                let info = try await phone.ask(3, .userInfo, IMPB_User_info_request.with { $0.uid = bobUID })
                let found = try await phone.ask(
                    4,
                    .friend,
                    IMPB_Friend_msg.with {
                        $0.cmd = .userInfoByID
                        $0.body = try IMPB_get_user_info_by_id.with { $0.targetID = "bob" }.wireBytes()
                    }
                )
                return [
                    "account": account,
                    "watched": watched.contains { $0.isOnline },
                    "contacts": list.contains { $0.uid == bobUID && $0.isOnline },
                    "user info": try IMPB_User_info_response(wire: info.respon).userInfo.isOnline == 1,
                    "found": try IMPB_user_info_res(wire: found.respon).userInfo.isOnline == 1,
                ]
            }
            var answers = try await seen()
            #expect(answers.values.allSatisfy { $0 }, "\(answers)")
            try await server.contact(.block, by: bobUID, annUID)
            answers = try await seen()
            #expect(!answers.values.contains(true), "\(answers)")
            try await server.contact(.unblock, by: bobUID, annUID)
            answers = try await seen()
            #expect(answers.values.allSatisfy { $0 }, "\(answers)")
        }
    }

    @Test
    func `who watched before the block sees the other go, and then nothing`() async throws {
        try await GatewayHarness.with { server in
            let bob = try await server.delimited()
            let bobUID = try await bob.register("bob").uid
            let ann = try await server.delimited()
            let annUID = try await ann.register("ann").uid
            let watched = try await ann.ask(2, .presence(.with { $0.watchUids = [bobUID] }))
            #expect(watched.presence.presences.map(\.isOnline) == [true])
            try await server.contact(.block, by: bobUID, annUID)
            let gone = try await ann.ephemeral().presence
            #expect(gone.uid == bobUID)
            #expect(!gone.isOnline)
            #expect(gone.lastSeenMs == 0)

            // Ann gets no event when bob disconnects and connects again. Carl's later event shows that bob's events did
            // not come before it.
            let carl = try await server.delimited()
            let carlUID = try await carl.register("carl").uid
            try await ann.ask(3, .presence(.with { $0.watchUids = [bobUID, carlUID] }))
            try await bob.wire.close()
            let user = try await server.principal(bobUID).user
            while server.messenger.devices.isOnline(user) { await Task.yield() }
            let again = try await server.delimited()
            _ = try await again.authenticate("bob", device: "one")
            try await carl.wire.close()
            let last = try await ann.ephemeral().presence
            #expect(last.uid == carlUID)
        }
    }
}
