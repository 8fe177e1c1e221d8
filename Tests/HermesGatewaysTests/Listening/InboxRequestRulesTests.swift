// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

/// The rules for requests about the inbox are the same in every protocol. One table of requests is tested over each
/// protocol.
@Suite(.inTurns, .timeLimit(.minutes(2))) struct InboxRequestRulesTests {
    /// The conversation that the client names, which may be invalid.
    enum Named: Hashable, Sendable {
        case user(UInt32)
        case group(UInt32)
        case nothing
    }

    enum Request: Hashable, Sendable {
        case page(after: UInt64, limit: UInt32)
        case history(Named, before: UInt64 = 0, limit: UInt32 = 0)
        case markRead(Named, upTo: UInt64)
        case recall(Named, String)
        /// Only the native protocol has this request.
        case conversations(after: Named? = nil, limit: UInt32 = 0)
        case group(GroupCommand)
    }

    enum Outcome: Hashable, Sendable {
        case refused(UInt32)
        case done
        case messages(Int, more: Bool)
        /// The seqs of the entries that follow.
        case entries([UInt64])
        /// A line for each conversation, such as "user 2, unread 520 of 521".
        case conversations([String], more: Bool)
    }

    enum Expected: Sendable {
        case refused(HermesError.Code)
        case done
        /// This number of messages. If the protocol has short frames, at least one message.
        case messages(Int, more: Bool)
        case noMessages
        case entries(ClosedRange<UInt64>)
        case conversations([String], more: Bool = false)

        func holds(_ outcome: Outcome, inLongFrames: Bool = true) -> Bool {
            switch (self, outcome) {
            case (.refused(let code), .refused(let found)): code.rawValue == found
            case (.done, .done): true
            case (.messages(let most, let more), .messages(let count, let found)):
                count >= (inLongFrames ? most : 1) && count <= most && more == found
            case (.noMessages, .messages(0, false)): true
            case (.entries(let seqs), .entries(let found)): Array(seqs) == found
            case (.conversations(let list, let more), .conversations(let found, let isMore)):
                list == found && more == isMore
            default: false
            }
        }
    }

    /// A client of one protocol.
    protocol Asker: AnyObject {
        /// Whether a frame is long enough for every page.
        var hasLongFrames: Bool { get }
        /// Whether the protocol has a request for this.
        func has(_ request: Request) -> Bool
        func ask(_ request: Request) async throws -> Outcome
        /// Sends slow requests and a ping together.
        ///
        /// - Returns: the numbers of the answers, in the order of arrival. The pong has the number 0.
        func askAtOnce(_ requests: [Request]) async throws -> [Int]
    }

    /// The data for the requests. Ann (1) has 520 messages from bob (2), 20 long messages from cat (3), and one message
    /// from dan (4), who blocks her. She was added late to group 1, and is not a member of group 2.
    private struct World {
        let server: GatewayHarness
        let bobsMessage: MessageID
        let annsMessage: MessageID
        let foreign: MessageID

        init(_ server: GatewayHarness) async throws {
            self.server = server
            for name in ["ann", "bob", "cat", "dan"] {
                let client = try await server.delimited()
                _ = try await client.register(name)
                try await client.wire.close()
            }
            let messenger = server.messenger
            var last: MessageID?
            let pair = try Self.pair(1, 2)
            for number in 1...520 { last = try await Self.send("\(number)", 2, pair, server) }
            bobsMessage = try #require(last)
            annsMessage = try await Self.send("mine", 1, pair, server)
            let long = String(repeating: "x", count: 60_000)
            for _ in 0..<20 { _ = try await Self.send(long, 3, Self.pair(1, 3), server) }
            _ = try await Self.send("before", 4, Self.pair(1, 4), server)
            try await server.contact(.block, by: 4, 1)
            let open = try await messenger.groups.apply(
                .create(name: "late", members: [Self.user(3)]),
                by: server.principal(2)
            )
            for _ in 0..<3 { _ = try await Self.send("early", 2, .group(open.id), server) }
            let change = GroupCommand.changeMembers(open.id, MemberChanges(added: [try Self.user(1)]))
            _ = try await messenger.groups.apply(change, by: server.principal(2))
            _ = try await Self.send("late", 2, .group(open.id), server)
            let closed = try await messenger.groups.apply(
                .create(name: "closed", members: [Self.user(3)]),
                by: server.principal(2)
            )
            foreign = try await Self.send("not for ann", 2, .group(closed.id), server)
        }

        private static func user(_ uid: UInt32) throws -> UserID { try #require(UserID(uid)) }

        static func pair(_ one: UInt32, _ other: UInt32) throws -> ConversationID {
            .direct(between: try user(one), and: try user(other))
        }

        static func send(
            _ text: String,
            _ uid: UInt32,
            _ conversation: ConversationID,
            _ server: GatewayHarness
        ) async throws -> MessageID {
            let draft = MessageDraft(
                conversation: conversation,
                clientID: nil,
                content: try MessageText.content(text)
            )
            let sender = try await server.principal(uid)
            return try await withCheckedContinuation { continuation in
                server.messenger.messages.send(draft, from: sender) { continuation.resume(returning: $0) }
            }.get().messageID
        }

        var table: [(Request, Expected)] {
            let unnamed: [Named] = [.nothing, .group(0), .group(1 << 31), .group(.max)]
            // These are uids that no account can have.
            let nobody: [Named] = [.user(0), .user(1 << 31), .user(.max)]
            let id = annsMessage.description
            var table: [(Request, Expected)] = []
            for (named, code) in unnamed.map({ ($0, HermesError.Code.invalidArgument) })
                + nobody.map({ ($0, HermesError.Code.notFound) })
            {
                table.append((.history(named), .refused(code)))
                table.append((.markRead(named, upTo: 1), .refused(code)))
                table.append((.recall(named, id), .refused(code)))
            }
            for text in ["", "x", String(id.dropLast()), id + "0", String(repeating: "~", count: 26)] {
                table.append((.recall(.user(2), text), .refused(.invalidArgument)))
            }
            let unknown = MessageID(high: 1, low: 1).description
            let others: [(Request, Expected)] = [
                // Ann is not a member of these groups.
                (.history(.group(2)), .refused(.forbidden)), (.markRead(.group(2), upTo: 1), .refused(.forbidden)),
                (.recall(.group(2), foreign.description), .refused(.forbidden)),
                (.history(.group(77)), .refused(.forbidden)), (.markRead(.group(77), upTo: 1), .refused(.forbidden)),
                // The ids are of somebody else's message, of an unknown message, and of a message in another
                // conversation.
                (.recall(.user(2), bobsMessage.description), .refused(.forbidden)),
                (.recall(.user(2), unknown), .refused(.notFound)), (.recall(.user(3), id), .refused(.notFound)),
                (.markRead(.user(2), upTo: 0), .refused(.invalidArgument)),
                (.markRead(.user(2), upTo: .max), .done), (.markRead(.user(4), upTo: 1), .done),
                // Ann gets the existing messages, up to the general limit.
                (.history(.user(2)), .messages(50, more: true)),
                (.history(.user(2), limit: .max), .messages(500, more: true)),
                (.history(.user(2), before: .max, limit: 2), .messages(2, more: true)),
                (.history(.user(2), before: 3, limit: 9), .messages(2, more: false)),
                (.history(.user(2), before: 1), .noMessages), (.history(.user(99)), .noMessages),
                (.history(.user(3), limit: 500), .messages(8, more: true)),
                (.history(.user(4)), .messages(1, more: false)),
                // Ann does not get messages from before she joined.
                (.history(.group(1), limit: 2), .messages(1, more: false)),
                (.page(after: 0, limit: 3), .entries(1...3)), (.page(after: 0, limit: 0), .entries(1...200)),
                (.page(after: 300, limit: .max), .entries(301...527)),
                // A page can be requested again.
                (.page(after: 0, limit: 3), .entries(1...3)),
            ]
            return table + others + conversations(unnamed + nobody)
        }

        /// The requests for the list of conversations, after ann has marked her conversations with bob and dan as read.
        private func conversations(_ unnamed: [Named]) -> [(Request, Expected)] {
            // Ann joined the group before its fourth message.
            let all = [
                "user 2, bob, unread 0 of 521", "user 3, cat, unread 20 of 20", "user 4, dan, unread 0 of 1",
                "group 1, late, unread 1 of 4",
            ]
            return unnamed.map { (.conversations(after: $0), .refused(.invalidArgument)) } + [
                (.conversations(), .conversations(all)), (.conversations(limit: .max), .conversations(all)),
                (.conversations(limit: 3), .conversations(Array(all[..<3]), more: true)),
                (.conversations(after: .user(2), limit: 2), .conversations(Array(all[1..<3]), more: true)),
                (.conversations(after: .user(4)), .conversations(Array(all[3...]))),
                // A place is a number. There need not be a conversation with this number.
                (.conversations(after: .user(99)), .conversations(Array(all[3...]))),
                (.conversations(after: .user(1)), .conversations(all)),
                (.conversations(after: .user(1 << 31 - 1)), .conversations(Array(all[3...]))),
                // A group of other accounts is not in the list.
                (.conversations(after: .group(1)), .conversations([])),
                (.conversations(after: .group(1 << 31 - 1)), .conversations([])),
            ]
        }

        /// Opens ann's clients.
        func askers() async throws -> [(name: String, asker: any Asker)] {
            let delimited = try await server.delimited()
            _ = try await delimited.authenticate("ann", device: "delimited")
            let impb = try await server.impb()
            _ = try await impb.logIn("ann", device: "impb")
            return [
                ("delimited", DelimitedAsker(delimited)), ("impb", IMPBAsker(impb)),
                ("mqtt", try await MQTTAsker(server, isJSON: false)),
                ("mqtt, JSON", try await MQTTAsker(server, isJSON: true)),
            ]
        }
    }

    @Test
    func `the same is refused, cut and answered over every protocol`() async throws {
        try await GatewayHarness.with { server in
            let world = try await World(server)
            let table = world.table
            for (name, asker) in try await world.askers() {
                for (request, expected) in table where asker.has(request) {
                    let outcome = try await asker.ask(request)
                    let holds = expected.holds(outcome, inLongFrames: asker.hasLongFrames)
                    #expect(holds, "\(name), \(request): \(outcome) for \(expected)")
                }
            }
        }
    }

    @Test
    func `slow requests are answered one after the other, ahead of what was asked behind them`() async throws {
        try await GatewayHarness.with { server in
            let world = try await World(server)
            let requests: [Request] = [
                .history(.user(2), limit: 500), .markRead(.user(2), upTo: 5), .page(after: 10, limit: 20),
                .history(.user(3)), .recall(.user(2), world.bobsMessage.description), .history(.group(2)),
                .conversations(limit: 1_000),
            ]
            for (name, asker) in try await world.askers() {
                let requests = requests.filter { asker.has($0) }
                let order = try await asker.askAtOnce(requests)
                #expect(order == Array(1...requests.count) + [0], "\(name)")
            }
        }
    }

    @Test
    func `a page of conversations fits into the shortest frame, and the next one goes on behind it`() async throws {
        var settings = GatewaySettings()
        settings.limits.maxFrameBytes = 1_024
        try await GatewayHarness.with(settings: settings) { server in
            for name in ["ann", "bob", "cat", "dan", "eve"] {
                let client = try await server.delimited()
                _ = try await client.register(name)
                try await client.wire.close()
            }
            for uid: UInt32 in 2...5 { _ = try await World.send("hi", uid, World.pair(1, uid), server) }
            let client = try await server.delimited()
            _ = try await client.authenticate("ann", device: "delimited")
            let asker = DelimitedAsker(client)
            let all = ["bob", "cat", "dan", "eve"].enumerated().map { "user \($0 + 2), \($1), unread 1 of 1" }
            #expect(try await asker.ask(.conversations()) == .conversations(Array(all[..<2]), more: true))
            let rest = try await asker.ask(.conversations(after: .user(3)))
            #expect(rest == .conversations(Array(all[2...]), more: false))
        }
    }

    @Test
    func `without a history there is none, over every protocol`() async throws {
        try await GatewayHarness.with(store: MemoryStore()) { server in
            let world = try await World(server)
            for (name, asker) in try await world.askers() {
                let outcome = try await asker.ask(.history(.user(2)))
                #expect(Expected.noMessages.holds(outcome), "\(name): \(outcome)")
            }
        }
    }
}

// MARK: - The protocols

extension InboxRequestRulesTests.Named {
    var conversation: Hermes_V1_Conversation {
        var conversation = Hermes_V1_Conversation()
        switch self {
        case .user(let uid): conversation.uid = uid
        case .group(let id): conversation.groupID = id
        case .nothing: break
        }
        return conversation
    }

    var id: IMPB_Conversation_id {
        var id = IMPB_Conversation_id()
        switch self {
        case .user(let uid): id.uid = uid
        case .group(let group): id.groupID = group
        case .nothing: break
        }
        return id
    }
}

extension InboxRequestRulesTests.Request {
    var body: Hermes_V1_Packet.OneOf_Body {
        switch self {
        case .page(let seq, let limit):
            var request = Hermes_V1_Synchronize()
            request.afterSeq = seq
            request.limit = limit
            return .synchronize(request)
        case .history(let named, let seq, let limit):
            var request = Hermes_V1_HistoryRequest()
            request.conversation = named.conversation
            request.beforeSeq = seq
            request.limit = limit
            return .history(request)
        case .markRead(let named, let seq):
            var request = Hermes_V1_MarkRead()
            request.conversation = named.conversation
            request.upToSeq = seq
            return .markRead(request)
        case .recall(let named, let id):
            var request = Hermes_V1_Recall()
            request.conversation = named.conversation
            request.messageID = id
            return .recall(request)
        case .conversations(let place, let limit):
            var request = Hermes_V1_ListConversations()
            if let place { request.after = place.conversation }
            request.limit = limit
            return .conversations(request)
        case .group(let command):
            return .group(Hermes_V1_GroupRequest(command))
        }
    }
}

/// A client that uses packets of the native protocol, over any carrier.
protocol PacketAsker: InboxRequestRulesTests.Asker {
    func send(_ packet: Hermes_V1_Packet) async throws
    func nextPacket() async throws -> Hermes_V1_Packet
}

extension PacketAsker {
    var hasLongFrames: Bool { true }

    func has(_ request: InboxRequestRulesTests.Request) -> Bool { true }

    private func packet(_ id: UInt64, _ body: Hermes_V1_Packet.OneOf_Body) -> Hermes_V1_Packet {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.body = body
        return packet
    }

    func ask(_ request: InboxRequestRulesTests.Request) async throws -> InboxRequestRulesTests.Outcome {
        try await send(packet(9, request.body))
        while true {
            let packet = try await nextPacket()
            guard packet.id == 9, case .result(let result) = packet.body else { continue }
            if result.error.code != 0 { return .refused(result.error.code) }
            switch result.value {
            case .history(let history): return .messages(history.messages.count, more: history.more)
            case .synchronized(let page):
                var seqs: [UInt64] = []
                for _ in 0..<page.count { seqs.append(try await nextPacket().event.seq) }
                return .entries(seqs)
            case .conversations(let list):
                let lines = list.conversations.map { summary in
                    let place =
                        summary.conversation.uid > 0
                        ? "user \(summary.conversation.uid)" : "group \(summary.conversation.groupID)"
                    return "\(place), \(summary.name), unread \(summary.unread) of \(summary.lastSeq)"
                }
                return .conversations(lines, more: list.more)
            case nil, .group: return .done
            default: throw Unexpected("\(result)")
            }
        }
    }

    func askAtOnce(_ requests: [InboxRequestRulesTests.Request]) async throws -> [Int] {
        for (index, request) in requests.enumerated() { try await send(packet(UInt64(index + 1), request.body)) }
        try await send(packet(1_000, .ping(Hermes_V1_Ping())))
        var order: [Int] = []
        while true {
            let packet = try await nextPacket()
            switch packet.body {
            case .result: order.append(Int(packet.id))
            case .pong: return order + [0]
            default: break
            }
        }
    }
}

final class DelimitedAsker: PacketAsker {
    private let client: DelimitedTestClient

    init(_ client: DelimitedTestClient) { self.client = client }

    func send(_ packet: Hermes_V1_Packet) async throws { try await client.wire.send(try DelimitedFrame(packet)) }

    func nextPacket() async throws -> Hermes_V1_Packet {
        guard let frame = try await client.wire.next() else { throw Unexpected("the server closed the connection") }
        // A packet from a server may have many parts.
        return try frame.packet(maxParts: nil)
    }
}

final class MQTTAsker: PacketAsker {
    private let client: MQTTTestClient
    private let isJSON: Bool

    init(_ server: GatewayHarness, isJSON: Bool) async throws {
        self.isJSON = isJSON
        client = try await MQTTTestClient.open(port: server.port("mqtt"))
        var connect = MQTTConnect(version: .v5, clientID: isJSON ? "json" : "binary")
        connect.userName = "ann"
        connect.password = ByteBuffer(string: "password of ann")
        try await client.send(.connect(connect))
        guard case .connack(let connack) = try await client.next(), connack.reason == .success else {
            throw Unexpected("no CONNACK")
        }
        _ = try await client.subscribe(isJSON ? "hermes/v1/down/json" : "hermes/v1/down", qos: .atMostOnce)
    }

    func send(_ packet: Hermes_V1_Packet) async throws {
        let payload = isJSON ? ByteBuffer(string: try packet.jsonString()) : try packet.wireBuffer()
        let topic = isJSON ? "hermes/v1/up/json" : "hermes/v1/up"
        try await client.send(.publish(MQTTPublish(topic: topic, payload: payload, qos: .atMostOnce, packetID: nil)))
    }

    func nextPacket() async throws -> Hermes_V1_Packet {
        let payload = try await client.publication().payload
        return try DelimitedFrame(body: payload, isJSON: isJSON).packet(maxParts: nil)
    }
}

final class IMPBAsker: InboxRequestRulesTests.Asker {
    private let client: IMPBTestClient

    init(_ client: IMPBTestClient) { self.client = client }

    var hasLongFrames: Bool { false }

    func has(_ request: InboxRequestRulesTests.Request) -> Bool {
        switch request {
        case .conversations: false
        // A conversation with the uid 0 names nothing.
        case .history(.user(0), _, _), .markRead(.user(0), _), .recall(.user(0), _): false
        default: true
        }
    }

    private func common(_ request: InboxRequestRulesTests.Request) throws -> IMPB_Common {
        var common = IMPB_Common()
        var message = IMPB_Message_msg()
        switch request {
        case .page(let seq, let limit):
            var body = IMPB_pull_request()
            body.afterSeq = seq
            body.limit = limit
            message.cmd = .pull
            message.body = try body.wireBytes()
        case .history(let named, let seq, let limit):
            var body = IMPB_history_request()
            body.conversation = named.id
            body.beforeSeq = seq
            body.limit = limit
            message.cmd = .history
            message.body = try body.wireBytes()
        case .markRead(let named, let seq):
            var body = IMPB_read_request()
            body.conversation = named.id
            body.upToSeq = seq
            message.cmd = .read
            message.body = try body.wireBytes()
        case .recall(let named, let id):
            var body = IMPB_recall_request()
            body.conversation = named.id
            body.messageID = id
            message.cmd = .recall
            message.body = try body.wireBytes()
        case .conversations: throw Unexpected("IMPB has no list of conversations")
        case .group(let command):
            common.method = .group
            common.body = try IMPB_Group_cmd(command).wireBytes()
            return common
        }
        common.method = .message
        common.body = try message.wireBytes()
        return common
    }

    func ask(_ request: InboxRequestRulesTests.Request) async throws -> InboxRequestRulesTests.Outcome {
        try await client.write(.request, 9, try common(request))
        let reply = try await client.reply(9)
        guard reply.isSuc else { return .refused(reply.error.code) }
        switch request {
        case .history:
            let history = try IMPB_history_response(wire: reply.respon, maxParts: nil)
            return .messages(history.messages.count, more: history.more)
        case .page:
            var seqs: [UInt64] = []
            let count = try IMPB_pull_response(wire: reply.respon).count
            for _ in 0..<count { seqs.append(try await nextSeq()) }
            return .entries(seqs)
        case .markRead, .recall, .conversations, .group: return .done
        }
    }

    /// Returns the seq of the next entry, which must be the next frame.
    private func nextSeq() async throws -> UInt64 {
        let frame = try await client.next()
        switch frame.type {
        case .notification: return try IMPB_Notification_msg(wire: frame.body).seq
        case .message:
            let base = try IMPB_base_msg(wire: frame.body)
            if base.type == .group { return try IMPB_Group_msg(wire: base.body).seq }
            return try IMPB_C2C_msg(wire: base.body).seq
        default: throw Unexpected("\(frame)")
        }
    }

    func askAtOnce(_ requests: [InboxRequestRulesTests.Request]) async throws -> [Int] {
        for (index, request) in requests.enumerated() {
            try await client.write(.request, UInt32(index + 1), try common(request))
        }
        try await client.wire.send(IMPBFrame(seq: 1_000, type: .ping))
        var order: [Int] = []
        while true {
            let frame = try await client.next()
            switch frame.type {
            case .request: order.append(Int(frame.seq))
            case .ping: return order + [0]
            default: break
            }
        }
    }
}
