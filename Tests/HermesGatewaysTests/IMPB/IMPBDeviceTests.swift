// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesGateways

/// The devices of an account that uses IMPB.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct IMPBDeviceTests {
    @Test func `the device of a registration stays if another client has logged in as it`() async throws {
        try await GatewayHarness.with { server in
            let first = try await server.impb()
            let uid = try await first.register("ann").uid
            let second = try await server.impb()
            _ = try await second.logIn("ann", device: "")
            try await second.ping()
            _ = try await first.logIn("ann", device: "phone")
            try await second.ping(8)
            let user = try #require(UserID(uid))
            let devices = try await server.messenger.accounts.devices(of: user)
            #expect(devices.map(\.description.id.rawValue).sorted() == ["impb", "phone"])
        }
    }

    @Test func `only a client that acknowledges itself gets the seqs of entries for other devices`() async throws {
        try await GatewayHarness.with { server in
            let phone = try await server.impb()
            let uid = try await phone.register("ann").uid
            _ = try await phone.logIn("ann", device: "phone")
            let old = try await server.impb()
            _ = try await old.logIn("ann", device: "old")
            #expect(try await phone.ask(3, .ack, IMPB_ack_request()).isSuc)
            let user = try #require(UserID(uid))
            let tablet = try #require(DeviceID("tablet"))
            let pushes = server.messenger.pushes
            _ = try await pushes.send(try pushes.make(PushContent(title: "one"), device: tablet), to: .users([user]))
            _ = try await pushes.send(try pushes.make(PushContent(title: "all")), to: .users([user]))
            let number = try await phone.notification()
            #expect(number.type == .event && number.seq == 1)
            let event = try Hermes_V1_Event(wire: number.body)
            #expect(event.seq == 1 && event.event == nil)
            let push = try await phone.notification()
            #expect(push.type == .push && push.seq == 2)
            let first = try await old.notification()
            #expect(first.type == .push && first.seq == 2)
        }
    }
}
