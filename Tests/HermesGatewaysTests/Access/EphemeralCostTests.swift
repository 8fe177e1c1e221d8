// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

@testable import HermesGateways

/// The sender of an ephemeral event pays for the devices that get it.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct EphemeralCostTests {
    /// With this limit, an event for many devices throttles its sender for seconds. A login and an event for one device
    /// do not throttle.
    private static let unitsPerSecond = 300
    private static let devices = 400

    /// A device that accepts all events.
    private final class SilentDevice: HermesCore.Attachment {
        let principal: Principal
        let order = AttachmentOrder.next()

        init(_ principal: Principal) { self.principal = principal }

        func inboxAdvanced(_ entries: [InboxEntry]) {}
        func ephemeralArrived(_ event: EphemeralEvent) -> Bool { true }
        func renamed() {}
        func ended(_ reason: AttachmentEnd) {}
    }

    private static func with(_ body: (GatewayHarness) async throws -> Void) async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = unitsPerSecond
        try await GatewayHarness.with(settings: settings, body)
    }

    private static func connect(_ count: Int, devicesOf uid: UInt32, to server: GatewayHarness) async throws {
        let principal = try await server.principal(uid)
        for number in 0..<count {
            let device = try #require(DeviceID("d\(number)"))
            server.messenger.devices.attach(
                SilentDevice(Principal(user: principal.user, nickName: principal.nickName, device: device))
            )
        }
    }

    @Test func `a signal`() async throws {
        try await Self.with { server in
            let ann = try await server.delimited()
            let annUID = try await ann.register("ann").uid
            let bobUID = UInt32(try await server.register("bob").principal.user.rawValue)
            try await server.befriend(annUID, bobUID)
            func signal(_ id: UInt64) async throws -> Bool {
                try await ann.write(
                    id,
                    .signal(
                        .with {
                            $0.toUid = bobUID
                            $0.sessionID = "s"
                            $0.data = Data([1])
                        }
                    )
                )
                return try await !ann.result(id).hasError
            }
            try await Self.connect(1, devicesOf: bobUID, to: server)
            #expect(try await signal(2))
            #expect(try await server.throttledCount() == 0)
            try await Self.connect(Self.devices, devicesOf: bobUID, to: server)
            #expect(try await signal(3))
            #expect(try await server.throttledCount() > 0)
        }
    }

    @Test func `a sign of typing to one user`() async throws {
        try await Self.with { server in
            let ann = try await server.delimited()
            _ = try await ann.register("ann")
            func types(to name: String, id: UInt64, on count: Int) async throws -> Bool {
                let uid = UInt32(try await server.register(name).principal.user.rawValue)
                try await Self.connect(count, devicesOf: uid, to: server)
                try await ann.write(id, .typing(.with { $0.conversation.uid = uid }))
                return try await !ann.result(id).hasError
            }
            #expect(try await types(to: "bob", id: 2, on: 1))
            #expect(try await server.throttledCount() == 0)
            #expect(try await types(to: "carl", id: 3, on: Self.devices))
            #expect(try await server.throttledCount() > 0)
        }
    }

    @Test func `a request for a direct link over IMPB, and the addresses for one`() async throws {
        try await Self.with { server in
            for isRequest in [true, false] {
                let names = isRequest ? ("ann", "bob") : ("anna", "bobby")
                let ann = try await server.impb()
                let annUID = try await ann.register(names.0).uid
                _ = try await ann.logIn(names.0)
                let bobUID = UInt32(try await server.register(names.1).principal.user.rawValue)
                try await server.befriend(annUID, bobUID)
                func ask(_ seq: UInt32) async throws {
                    if isRequest {
                        let request = IMPB_p2pconnect_request.with { $0.targetUid = bobUID }
                        let answer = try IMPB_p2pconnect_response(
                            wire: await ann.ask(seq, .connectRequest, request).respon
                        )
                        #expect(answer.isOnline)
                    } else {
                        let post = IMPB_p2p_post_ip_request.with { $0.sponsorUid = bobUID }
                        #expect(try IMPB_p2p_post_ip_response(wire: await ann.ask(seq, .postIp, post).respon).isSuc)
                    }
                }
                try await Self.connect(1, devicesOf: bobUID, to: server)
                try await ask(3)
                #expect(try await server.throttledCount() == 0)
                try await Self.connect(Self.devices, devicesOf: bobUID, to: server)
                try await ask(4)
                // The answer to a request for a link is sent before the event.
                while try await server.throttledCount() == 0 { try Task.checkCancellation() }
                try await ann.wire.close()
                while try await server.throttledCount() > 0 { try Task.checkCancellation() }
            }
        }
    }
}
