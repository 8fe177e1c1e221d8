// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@testable import Hermes
@testable import HermesProtocols

/// The reaction of a viewer when the server ends its visit.
@Suite struct LiveRoomLinkTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    /// Returns whether a viewer enters again after the server has ended its visit; nil if the viewer gets no
    /// information about the end.
    private static func returns(
        after code: UInt32,
        in time: TimeAmount,
        token: String? = nil,
        hearing heard: Bool = false
    ) throws -> Bool? {
        var kicked = LiveRoom_Kicked()
        kicked.code = code
        kicked.reason = "why"
        var link = LiveRoomLink(room: "r", token: token, device: nil, user: nil, maxFrameBytes: 1_048_576)
        var effects = LiveRoomLink.Effects()
        try link.connected(effects: &effects)
        link.becameLive(now: start, effects: &effects)
        if heard {
            let frame = try LiveRoomFrame(type: LiveRoomFrameType(rawValue: 16), body: ByteBuffer())
            try link.received(frame, now: start, effects: &effects)
        }
        try link.received(try LiveRoomFrame(type: .kicked, message: kicked), now: start + time, effects: &effects)
        for case .kicked(_, let mayReturn, _, _) in effects { return mayReturn }
        return nil
    }

    @Test func `a viewer that missed its heartbeat enters again, and one without the token that it needs does not`()
        throws
    {
        #expect(try Self.returns(after: 1001, in: .seconds(1)) == false)
        #expect(try Self.returns(after: 1001, in: .seconds(1), hearing: true) == true)
        #expect(try Self.returns(after: 1001, in: .seconds(1), token: "t") == true)
        #expect(try Self.returns(after: 1001, in: .seconds(10)) == true)
        #expect(try Self.returns(after: 1004, in: .seconds(10), token: "t", hearing: true) == false)
        #expect(try Self.returns(after: 3003, in: .seconds(1)) == true)
    }

    @Test func `no event of a room comes again`() {
        let link = LiveRoomLink(room: "r", token: nil, device: nil, user: nil, maxFrameBytes: 1_048_576)
        #expect(!link.comesAgain(RoomEvent(room: "r", user: nil, kind: .text("hello"))))
    }
}
