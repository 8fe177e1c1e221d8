// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes
@testable import HermesProtocols

/// A server that sends arbitrary data. Nothing in the client may trap, grow without bound or run forever.
@Suite(.inTurns, .timeLimit(.minutes(5)))
struct HostileServerTests {
    /// Random numbers at which sums overflow and ranges become invalid.
    private struct Dice {
        var random: SplitMix64

        mutating func number(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

        mutating func seq() -> UInt64 {
            switch number(8) {
            case 0: 0
            case 1: .max
            case 2: .max - 1
            case 3: 1 << 63
            case 4: 1 << 32
            default: UInt64(number(40))
            }
        }

        mutating func small() -> UInt32 {
            switch number(5) {
            case 0: 0
            case 1: .max
            case 2: 1 << 31
            default: UInt32(number(20_000))
            }
        }

        mutating func time() -> Int64 {
            switch number(5) {
            case 0: .min
            case 1: .max
            case 2: -1
            default: Int64(number(2_000_000_000)) * 1000
            }
        }

        mutating func text() -> String { String(repeating: "x", count: number(3) == 0 ? 5000 : number(5)) }
    }

    /// Handles a link like a driver, without a connection.
    private struct Bench<Link: ConnectionLink> {
        var link: Link
        var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
        var waiting: [Link.Event] = []
        var bytes = 0
        var sent = 0
        var last: Link.Request?
        var mostWaiting = 0
        var outbound = ByteBuffer()

        mutating func run(_ body: (inout Link, inout Link.Effects) throws -> Void) {
            var effects = Link.Effects()
            // An error ends the connection, which does no harm.
            try? body(&link, &effects)
            for effect in effects {
                switch effect {
                case .event(let event):
                    waiting.append(event)
                    bytes += link.bytes(of: event)
                    link.backlogChanged(waiting.count, bytes: bytes)
                case .forgetEvents:
                    waiting = []
                    bytes = 0
                    link.backlogChanged(0, bytes: 0)
                case .send(let request, let id):
                    sent += 1
                    last = request
                    outbound.clear()
                    try? link.write(request, id: id, into: &outbound)
                case .authenticated, .refused, .answer, .kicked, .shutdownAnnounced, .reconnectAdvised:
                    continue
                }
            }
            mostWaiting = max(mostWaiting, waiting.count)
        }

        mutating func receive(_ frame: Link.Decoder.Frame) {
            let now = now
            run { try $0.received(frame, now: now, effects: &$1) }
        }

        mutating func connect() {
            run { link, effects in
                link.lost()
                try link.connected(effects: &effects)
            }
        }

        mutating func becomeLive() {
            let now = now
            run { $0.becameLive(now: now, effects: &$1) }
        }

        mutating func take() {
            guard !waiting.isEmpty else { return }
            let event = waiting.removeFirst()
            bytes -= link.bytes(of: event)
            link.backlogChanged(waiting.count, bytes: bytes)
            let now = now
            run { $0.taken(event, now: now, effects: &$1) }
        }

        mutating func pass(_ time: TimeAmount) {
            self.now = self.now + time
            let now = now
            run { $0.deadlineReached(now: now, effects: &$1) }
            // A deadline that stays in the past would cause an endless loop.
            if let next = link.nextDeadline { #expect(next > now) }
        }
    }

    private static func delimited(over carrier: MQTTCarrier? = nil) -> Bench<DelimitedLink> {
        let device = DeviceDescription(id: "d")
        var link = DelimitedLink(
            device: device,
            cursor: nil,
            maxFrameBytes: 1 << 22,
            statisticsInterval: .seconds(900),
            carrier: carrier
        )
        link.logIn(.token("t"))
        link.outgoing = ["mine"]
        return Bench(link: link)
    }

    private static func event(_ dice: inout Dice) -> Hermes_V1_Event {
        var event = Hermes_V1_Event()
        event.seq = dice.seq()
        event.serverTimeMs = dice.time()
        switch dice.number(6) {
        case 0: event.expired.toSeq = dice.seq()
        case 1: event.push.title = dice.text()
        case 2: event.readMark.upToSeq = dice.seq()
        case 3:
            event.message.own = true
            event.message.clientID = dice.number(2) == 0 ? "mine" : dice.text()
        default:
            event.message.id = dice.text()
            event.message.serverTimeMs = dice.time()
            event.message.content.text = dice.text()
        }
        return event
    }

    private static func packet(_ dice: inout Dice) -> Hermes_V1_Packet {
        var packet = Hermes_V1_Packet()
        packet.id = dice.number(3) == 0 ? dice.seq() : UInt64(dice.number(20))
        switch dice.number(12) {
        case 0:
            var result = Hermes_V1_Result()
            result.session.uid = dice.small() % 3
            result.session.epoch = dice.seq() % 4
            result.session.headSeq = dice.seq()
            result.session.acknowledgedSeq = dice.seq()
            result.session.serverTimeMs = dice.time()
            result.session.idleTimeoutMs = dice.small()
            result.session.maxFrameBytes = dice.small()
            result.session.heartbeatPriorSeconds = dice.small()
            packet.id = 1
            packet.body = .result(result)
        case 1:
            var result = Hermes_V1_Result()
            result.synchronized.epoch = dice.seq() % 4
            result.synchronized.headSeq = dice.seq()
            result.synchronized.oldestSeq = dice.seq()
            packet.id = 4
            packet.body = .result(result)
        case 2:
            var result = Hermes_V1_Result()
            result.receipt.inboxSeq = dice.seq()
            result.receipt.conversationSeq = dice.seq()
            packet.body = .result(result)
        case 3:
            var result = Hermes_V1_Result()
            result.error.code = dice.small()
            result.error.retryAfterMs = dice.small()
            packet.body = .result(result)
        case 4:
            var result = Hermes_V1_Result()
            result.presence.presences = (0..<dice.number(50)).map { number in
                var presence = Hermes_V1_Presence()
                presence.uid = UInt32(number)
                return presence
            }
            packet.id = 3
            packet.body = .result(result)
        case 5:
            var ephemeral = Hermes_V1_Ephemeral()
            ephemeral.room.room = "r\(dice.number(3000))"
            ephemeral.room.topicSeq = dice.seq()
            ephemeral.room.topicEpoch = dice.seq() % 3
            ephemeral.room.notice.text = dice.text()
            packet.body = .ephemeral(ephemeral)
        case 6:
            var notice = Hermes_V1_Notice()
            notice.kind = [.shutdown, .reconnect, .operator, .UNRECOGNIZED(99)][dice.number(4)]
            notice.message = dice.text()
            notice.reconnect.notBeforeMs = dice.small()
            notice.reconnect.windowMs = dice.small()
            notice.reconnect.ticket = .init([UInt8](repeating: 1, count: dice.number(100)))
            packet.body = .notice(notice)
        case 7:
            var kicked = Hermes_V1_Kicked()
            kicked.reason = Hermes_V1_Kicked.Reason(rawValue: dice.number(12)) ?? .unspecified
            kicked.reconnect.windowMs = dice.small()
            packet.body = .kicked(kicked)
        case 8:
            var pong = Hermes_V1_Pong()
            pong.clientTimeMs = dice.time()
            pong.serverTimeMs = dice.time()
            packet.body = .pong(pong)
        default: packet.body = .event(event(&dice))
        }
        return packet
    }

    @Test(arguments: 0..<2) func `Delimited frames`(seed: Int) throws {
        var dice = Dice(random: SplitMix64(state: UInt64(seed)))
        var bench = Self.delimited()
        bench.connect()
        for _ in 0..<10_000 {
            bench.receive(.delimited(try DelimitedFrame(Self.packet(&dice))))
            switch dice.number(12) {
            case 0: bench.take()
            case 1: bench.pass(.milliseconds(Int64(dice.number(10_000))))
            case 2 where dice.number(20) == 0:
                bench.connect()
                bench.becomeLive()
            default: break
            }
        }
        #expect(bench.mostWaiting <= Backlog.maxEvents + 2 * InboxTracker<String>.maxAhead)
    }

    @Test(arguments: 0..<4) func `packets that MQTT carries, and packets of MQTT in any order`(seed: Int) throws {
        var dice = Dice(random: SplitMix64(state: UInt64(seed)))
        var bench = Self.delimited(over: MQTTCarrier(clientID: "d", longestInterval: .seconds(120), port: 1883))
        bench.connect()
        let reasons: [MQTTReasonCode] = [.success, .notAuthorized, .serverMoved, .packetTooLarge, .sessionTakenOver]
        for _ in 0..<10_000 {
            let payload = try Self.packet(&dice).wireBuffer()
            let reason = reasons[dice.number(reasons.count)]
            let topic = dice.number(50) == 0 ? "other" : "hermes/v1/down"
            let packet: MQTTPacket =
                switch dice.number(20) {
                case 0:
                    .connack(
                        MQTTConnack(
                            reason: dice.number(2) == 0 ? .success : reason,
                            properties: [.authenticationData(payload), .serverKeepAlive(UInt16(dice.number(9)))]
                        )
                    )
                case 1:
                    .suback(MQTTSuback(packetID: 1, reasons: [.success, .notAuthorized].suffix(1 + dice.number(2))))
                case 2 where dice.number(10) == 0:
                    .disconnect(MQTTDisconnect(reason: reason, properties: [.serverReference("127.0.0.1:1")]))
                case 3: .pingresp
                default: .publish(MQTTPublish(topic: topic, payload: payload))
                }
            if let frame = try? packet.frame(version: .v5) { bench.receive(.mqtt(frame)) }
            switch dice.number(12) {
            case 0: bench.take()
            case 1: bench.pass(.milliseconds(Int64(dice.number(10_000))))
            case 2 where dice.number(20) == 0:
                bench.connect()
                bench.becomeLive()
            default: break
            }
        }
        #expect(bench.mostWaiting <= Backlog.maxEvents + 2 * InboxTracker<String>.maxAhead)
    }

    private static func frame(_ body: Hermes_V1_Packet.OneOf_Body, id: UInt64 = 0) throws -> PacketDecoder.Frame {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.body = body
        return .delimited(try DelimitedFrame(packet))
    }

    /// Returns the answer to a login.
    private static func session(epoch: UInt64, head: UInt64 = 0) throws -> PacketDecoder.Frame {
        var result = Hermes_V1_Result()
        result.session.uid = 7
        result.session.epoch = epoch
        result.session.headSeq = head
        return try frame(.result(result), id: 1)
    }

    /// Returns an entry without a text, because a debug build takes a third of a second to read a text of this length.
    private static func entry(_ seq: UInt64, bytes: Int = 1 << 20) throws -> PacketDecoder.Frame {
        var event = Hermes_V1_Event()
        event.seq = seq
        event.message.content.custom.data = Data(repeating: 1, count: bytes)
        return try frame(.event(event))
    }

    @Test func `entries and texts of whatever length wait within the bound of bytes`() throws {
        var bench = Self.delimited()
        bench.connect()
        bench.receive(try Self.session(epoch: 1))
        var notice = Hermes_V1_Notice()
        notice.message = String(repeating: "x", count: 1 << 20)
        let texts = try Self.frame(.notice(notice))
        for seq in UInt64(1)...80 {
            bench.receive(try Self.entry(seq))
            if seq % 10 == 0 { bench.receive(texts) }
        }
        // A receipt fills the hole at which the inbox pauses, but a receipt without a request does not. The entries
        // that wait after the hole stay.
        for round in UInt64(0)..<6 {
            let hole = bench.link.inbox.received + 1
            for seq in hole + 1...hole + 15 { bench.receive(try Self.entry(seq)) }
            let isSent = round % 2 == 0
            if isSent { bench.link.sending[100 + round] = "mine" }
            var result = Hermes_V1_Result()
            result.receipt.inboxSeq = hole
            bench.receive(try Self.frame(.result(result), id: 100 + round))
            #expect(bench.link.inbox.received == (isSent ? hole : hole - 1))
        }
        #expect(bench.bytes <= Backlog.maxBytes + 2 * ((1 << 20) + 1000))
        // Entries that were not kept are requested when there is room.
        let before = bench.sent
        while !bench.waiting.isEmpty { bench.take() }
        bench.pass(.seconds(10))
        #expect(bench.sent > before)
    }

    /// The second login gets another epoch, or the same epoch after the server has lost all entries.
    @Test(arguments: [2, 1] as [UInt64])
    func `an inbox that was full when its seqs became invalid goes on once there is room`(epoch: UInt64) throws {
        var bench = Self.delimited()
        bench.connect()
        bench.receive(try Self.session(epoch: 1))
        for seq in UInt64(1)...66 { bench.receive(try Self.entry(seq)) }
        bench.connect()
        bench.receive(try Self.session(epoch: epoch, head: epoch - 1))
        let waiting = bench.waiting.count
        let first = try Self.entry(1, bytes: 1)
        bench.receive(first)
        #expect(bench.waiting.count == waiting)
        while !bench.waiting.isEmpty { bench.take() }
        guard case .synchronize(let request) = bench.last else {
            Issue.record("it does not ask for the entry")
            return
        }
        #expect(request.afterSeq == 0)
        bench.receive(first)
        #expect(bench.waiting.map(\.seq) == [1])
    }

    @Test func `an IMPB inbox that broadcasts had filled goes on once there is room`() throws {
        var link = IMPBLink(IMPBClient.Configuration(device: DeviceDescription(id: "d")))
        link.logIn(.token("t"))
        var bench = Bench(link: link)
        bench.connect()
        var login = IMPB_login_response()
        login.uid = 7
        login.epoch = 1
        var reply = IMPB_CommonRespon()
        reply.isSuc = true
        reply.respon = try login.wireBytes()
        bench.receive(IMPBFrame(seq: 1, type: .request, body: try reply.wireBuffer()))
        var message = IMPB_base_msg()
        message.type = .broadcast
        bench.receive(IMPBFrame(seq: 0, type: .message, body: try message.wireBuffer()))
        // The call makes it look as if many more entries were waiting.
        bench.link.backlogChanged(bench.waiting.count, bytes: Backlog.maxBytes + 1)
        var notification = IMPB_Notification_msg()
        notification.seq = 1
        bench.receive(IMPBFrame(seq: 0, type: .notification, body: try notification.wireBuffer()))
        #expect(bench.waiting.map(\.seq) == [0])
        let before = bench.sent
        bench.take()
        #expect(bench.sent == before + 1)
    }

    @Test(arguments: 0..<4) func `IMPB frames`(seed: Int) throws {
        var dice = Dice(random: SplitMix64(state: UInt64(seed)))
        var link = IMPBLink(IMPBClient.Configuration(device: DeviceDescription(id: "d")))
        link.logIn(.token("t"))
        var bench = Bench(link: link)
        bench.connect()
        for _ in 0..<20_000 {
            var body = ByteBuffer()
            let type: IMPBFrameType
            var seq = dice.small() % 20
            switch dice.number(5) {
            case 0:
                var reply = IMPB_CommonRespon()
                reply.isSuc = dice.number(4) > 0
                if dice.number(2) == 0 {
                    seq = 1
                    var login = IMPB_login_response()
                    login.uid = dice.small() % 3
                    login.epoch = dice.seq() % 3
                    login.headSeq = dice.seq()
                    login.acknowledgedSeq = dice.seq()
                    reply.respon = try login.wireBytes()
                } else {
                    seq = 4
                    var pull = IMPB_pull_response()
                    pull.epoch = dice.seq() % 3
                    pull.headSeq = dice.seq()
                    pull.oldestSeq = dice.seq()
                    reply.respon = try pull.wireBytes()
                }
                body = try reply.wireBuffer()
                type = .request
            case 1:
                var message = IMPB_base_msg()
                message.type = .c2C
                message.body = .init((0..<dice.number(60)).map { _ in UInt8(dice.number(256)) })
                body = try message.wireBuffer()
                type = .message
            default:
                var notification = IMPB_Notification_msg()
                notification.type = IMPB_Notification_msg.TypeEnum(rawValue: dice.number(14)) ?? .kicked
                notification.seq = dice.seq()
                notification.body = .init((0..<dice.number(30)).map { _ in UInt8(dice.number(256)) })
                body = try notification.wireBuffer()
                type = .notification
            }
            bench.receive(IMPBFrame(seq: seq, type: type, body: body))
            switch dice.number(12) {
            case 0: bench.take()
            case 1: bench.pass(.milliseconds(Int64(dice.number(10_000))))
            case 2 where dice.number(20) == 0: bench.connect()
            default: break
            }
        }
        #expect(bench.mostWaiting <= Backlog.maxEvents + 2 * InboxTracker<String>.maxAhead)
    }

    @Test(arguments: 0..<4) func `MQTT packets`(seed: Int) throws {
        var dice = Dice(random: SplitMix64(state: UInt64(seed)))
        var configuration = MQTTClient.Configuration(clientID: "c")
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(60)
        configuration.maxQueuedMessages = 100
        configuration.maxQueuedBytes = 100_000
        var bench = Bench(link: MQTTLink(configuration))
        bench.connect()
        for number in 0..<20_000 {
            let packetID = UInt16(1 + dice.number(30))
            let acknowledgement = MQTTAcknowledgement(packetID: packetID)
            let packet: MQTTPacket
            switch dice.number(11) {
            case 0:
                let properties: MQTTProperties = [
                    .receiveMaximum(UInt16(1 + dice.number(3))), .maximumPacketSize(1 + dice.small() % 100),
                    .serverKeepAlive(UInt16(truncatingIfNeeded: dice.small())),
                ]
                packet = .connack(
                    MQTTConnack(sessionPresent: dice.number(2) == 0, reason: .success, properties: properties)
                )
            case 1, 2, 3:
                let qos = MQTTQoS(rawValue: UInt8(dice.number(3))) ?? .atMostOnce
                let properties: MQTTProperties = dice.number(3) == 0 ? [.topicAlias(UInt16(dice.number(40)))] : []
                packet = .publish(
                    MQTTPublish(
                        topic: "t\(dice.number(2000))",
                        payload: ByteBuffer(string: dice.text()),
                        qos: qos,
                        packetID: qos == .atMostOnce ? nil : packetID,
                        isDuplicate: qos != .atMostOnce && dice.number(2) == 0,
                        properties: properties
                    )
                )
            case 4: packet = .puback(acknowledgement)
            case 5: packet = .pubrec(acknowledgement)
            case 6: packet = .pubcomp(acknowledgement)
            case 7: packet = .pubrel(acknowledgement)
            case 8: packet = .suback(MQTTSuback(packetID: packetID, reasons: [.success, .unspecifiedError]))
            case 9: packet = .pingresp
            default: packet = .disconnect(MQTTDisconnect(reason: .packetTooLarge))
            }
            guard let frame = try? packet.frame(version: .v5) else { continue }
            bench.receive(frame)
            switch dice.number(12) {
            case 0: bench.take()
            case 1:
                let message = MQTTMessage(topic: "a", text: dice.text(), qos: .exactlyOnce)
                let outgoing = try MQTTOutgoing(message, version: .v5)
                bench.outbound.clear()
                try? bench.link.write(.publish(outgoing), id: UInt64(100 + number), into: &bench.outbound)
            case 2:
                bench.connect()
                if dice.number(2) == 0 { bench.becomeLive() }
            default: break
            }
        }
        #expect(bench.link.backlogBytes <= 4 * configuration.maxQueuedBytes + 10_000)
    }

    @Test func `the properties of MQTT messages that wait are in the bound of their bytes`() throws {
        var configuration = MQTTClient.Configuration(clientID: "c")
        configuration.maxQueuedBytes = 100_000
        var bench = Bench(link: MQTTLink(configuration))
        bench.connect()
        bench.receive(try MQTTPacket.connack(MQTTConnack(sessionPresent: false, reason: .success)).frame(version: .v5))
        let properties = MQTTProperties((0..<10).map { .userProperty("\($0)", String(repeating: "x", count: 2_000)) })
        for _ in 0..<50 {
            let packet = MQTTPublish(
                topic: "t",
                payload: ByteBuffer(string: "x"),
                qos: .atMostOnce,
                properties: properties
            )
            bench.receive(try MQTTPacket.publish(packet).frame(version: .v5))
        }
        #expect((20_000...100_000).contains(bench.link.backlogBytes))
        #expect(bench.link.dropped >= 45)
    }

    @Test func `QSIOP and LiveRoom`() throws {
        var dice = Dice(random: SplitMix64(state: 7))
        var qsiop = Bench(link: QSIOPLink(identity: QSIOPClient.Identity(uid: 7)))
        qsiop.connect()
        var room = Bench(link: LiveRoomLink(room: "r", token: nil, device: nil, user: nil, maxFrameBytes: 1 << 20))
        room.connect()
        let operations: [QSIOPOperation] = [.ping, .pong, .report, .response, .push, .pushAcknowledge]
        for number in 0..<30_000 {
            var properties = QSIOPProperties()
            properties.append("id", dice.number(2) == 0 ? "" : "\(number)")
            properties.append("code", ["0", "99999999999", "-1", "", "3001"][dice.number(5)])
            qsiop.receive(QSIOPFrame(operations[dice.number(operations.count)], properties))
            if dice.number(10) == 0 { qsiop.take() }
            if dice.number(500) == 0 { qsiop.connect() }
            let body = ByteBuffer(bytes: (0..<dice.number(40)).map { _ in UInt8(dice.number(256)) })
            let type = LiveRoomFrameType(rawValue: UInt16(dice.number(24)))
            room.receive(try LiveRoomFrame(type: type, body: body))
        }
        let long = ByteBuffer(repeating: 1, count: 1 << 20)
        let custom = try LiveRoomFrame(type: LiveRoomFrameType(rawValue: 20), body: long)
        for _ in 0..<200 { room.receive(custom) }
        #expect(qsiop.mostWaiting <= 1024)
        #expect(room.mostWaiting <= Backlog.maxEphemeral)
        #expect(room.bytes <= Backlog.maxBytes + (1 << 20))
    }

    /// The server advises no wait or a wait of years, and ends each connection immediately after the login. Tries must
    /// stay rare.
    @Test func `no advice makes a client try more often than its policy, nor stay away for more than its limits`() {
        for (notBefore, window) in [(0, 0), (UInt32.max, UInt32.max), (0, .max), (.max, 0)] as [(UInt32, UInt32)] {
            var wire = Hermes_V1_ReconnectAdvice()
            wire.notBeforeMs = notBefore
            wire.windowMs = window
            var machine = Machine(heartbeat: .delimited, reconnect: .standard, seed: 1)
            var now = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
            let start = now
            _ = machine.startRequested()
            var tries = 0
            while tries < 30 {
                tries += 1
                _ = machine.connected(now: now)
                _ = machine.authenticated(heartbeatAtMost: .milliseconds(1), now: now)
                _ = machine.kicked(
                    HermesClientError(.kicked, "again"),
                    mayReturn: true,
                    advice: Machine.Advice(wire),
                    now: now
                )
                machine.connectionClosed(HermesClientError(.connectionLost, "gone"), now: now)
                guard let next = machine.nextDeadline else {
                    Issue.record("it does not come back")
                    return
                }
                #expect(next - now <= .hours(2) + .minutes(1))
                now = max(now, next)
                #expect(machine.deadlineReached(now: now) == [.connect(preferring: nil)])
            }
            #expect(now - start > .minutes(30))
        }
    }
}
