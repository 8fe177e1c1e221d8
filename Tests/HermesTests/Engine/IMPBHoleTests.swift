// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import Hermes
@testable import HermesProtocols

/// Seqs that never arrive at a client of IMPB.
@Suite struct IMPBHoleTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    /// A link without a connection, and its events for the app.
    private struct Bench {
        var link: IMPBLink
        var events: [String] = []

        init(_ acknowledgement: IMPBClient.Acknowledgement) {
            var configuration = IMPBClient.Configuration(device: DeviceDescription(id: "d"))
            configuration.acknowledgement = acknowledgement
            link = IMPBLink(configuration)
            link.logIn(.token("t"))
        }

        mutating func run(_ body: (inout IMPBLink, inout IMPBLink.Effects) throws -> Void) throws {
            var effects = IMPBLink.Effects()
            try body(&link, &effects)
            for case .event(let event) in effects {
                switch event.event {
                case .message(let message): events.append("\(message.inboxSeq)")
                case .missed(let count): events.append("missed \(count)")
                default: events.append("other")
                }
            }
        }

        mutating func receive(_ frame: IMPBFrame) throws {
            try run { try $0.received(frame, now: start, effects: &$1) }
        }

        mutating func logIn(head: UInt64, acknowledged: UInt64) throws {
            var login = IMPB_login_response()
            login.uid = 7
            login.epoch = 1
            login.headSeq = head
            login.acknowledgedSeq = acknowledged
            var reply = IMPB_CommonRespon()
            reply.isSuc = true
            reply.respon = try login.wireBytes()
            try run { link, effects in
                link.lost()
                try link.connected(effects: &effects)
            }
            try receive(IMPBFrame(seq: 1, type: .request, body: try reply.wireBuffer()))
        }

        mutating func arrive(_ seqs: ClosedRange<UInt64>) throws {
            for seq in seqs {
                var message = IMPB_C2C_msg()
                message.seq = seq
                var base = IMPB_base_msg()
                base.type = .c2C
                base.body = try message.wireBytes()
                try receive(IMPBFrame(seq: 0, type: .message, body: try base.wireBuffer()))
            }
        }

        mutating func pass(_ time: TimeAmount) throws {
            try run { $0.deadlineReached(now: start + time, effects: &$1) }
        }
    }

    @Test func `entries that an implicit acknowledgement has deleted are reported as missed, and the next ones arrive`()
        throws
    {
        var bench = Bench(.implicit)
        try bench.logIn(head: 9, acknowledged: 0)
        try bench.arrive(1...9)
        bench.events = []
        try bench.logIn(head: 13, acknowledged: 12)
        try bench.arrive(13...13)
        #expect(bench.events.isEmpty)
        try bench.pass(.milliseconds(300))
        #expect(bench.events == ["missed 3", "13"])
        try bench.arrive(14...14)
        #expect(bench.events.last == "14")
    }

    @Test func `they are reported even if nothing follows them`() throws {
        var bench = Bench(.implicit)
        try bench.logIn(head: 9, acknowledged: 0)
        try bench.arrive(1...9)
        bench.events = []
        try bench.logIn(head: 12, acknowledged: 12)
        try bench.pass(.seconds(5))
        #expect(bench.events == ["missed 3"])
        #expect(bench.link.nextDeadline == nil)
    }

    @Test func `a client that acknowledges implicitly counts the entries for other devices as missed`() throws {
        var bench = Bench(.implicit)
        try bench.logIn(head: 0, acknowledged: 0)
        try bench.arrive(1...1)
        // The server sends the second entry to such a client without its seq.
        try bench.arrive(3...3)
        try bench.pass(.milliseconds(300))
        #expect(bench.events == ["1", "missed 1", "3"])
    }

    @Test func `entries on their way are not missed because a receipt was faster`() throws {
        var bench = Bench(.implicit)
        try bench.logIn(head: 20, acknowledged: 0)
        try bench.arrive(1...3)
        var buffer = ByteBuffer()
        try bench.link.write(.message(IMPB_base_msg()), id: 16, into: &buffer)
        var receipt = IMPB_Message_receipt()
        receipt.seq = 21
        var reply = IMPB_CommonRespon()
        reply.isSuc = true
        reply.respon = try receipt.wireBytes()
        try bench.receive(IMPBFrame(seq: 16, type: .request, body: try reply.wireBuffer()))
        try bench.pass(.seconds(10))
        try bench.arrive(4...20)
        #expect(bench.events == (1...20).map { "\($0)" })
    }

    @Test func `an entry of which only the seq arrives is for another device`() throws {
        var bench = Bench(.explicit)
        try bench.logIn(head: 0, acknowledged: 0)
        try bench.arrive(1...1)
        var told = Hermes_V1_Event()
        told.seq = 2
        var notification = IMPB_Notification_msg()
        notification.type = .event
        notification.seq = 2
        notification.body = try told.wireBytes()
        try bench.receive(IMPBFrame(seq: 0, type: .notification, body: try notification.wireBuffer()))
        try bench.arrive(3...3)
        #expect(bench.events == ["1", "3"])
    }
}
