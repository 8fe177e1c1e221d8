// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import SwiftProtobuf
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct DelimitedSocialTests {
    @Test func `contacts are asked answered listed and blocked`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let annUID = ann.uid
            let bob = try await Peer(registering: "bob", at: server)
            let bobUID = bob.uid

            let add = Hermes_V1_AddContact.with {
                $0.uid = bobUID
                $0.message = "it is me"
            }
            #expect(try await !ann.contact(2, .add(add)).hasError)
            let asked = try await bob.event().contact
            #expect(asked.kind == .requested)
            #expect(asked.uid == annUID)
            #expect(asked.nickName == "ann")
            #expect(asked.message == "it is me")
            let waiting = try await bob.contact(2, .list(.init())).contacts.contacts
            #expect(waiting.map(\.state) == [.incoming])

            let yes = Hermes_V1_AnswerContact.with {
                $0.uid = annUID
                $0.accept = true
            }
            #expect(try await !bob.contact(3, .answer(yes)).hasError)
            #expect(try await ann.event().contact.kind == .accepted)
            let list = try await ann.contact(4, .list(.init())).contacts
            #expect(list.contacts.map(\.uid) == [bobUID])
            #expect(list.contacts.map(\.state) == [.accepted])
            #expect(list.contacts.map(\.isOnline) == [true])
            #expect(!list.more)

            #expect(try await !bob.contact(5, .block(.with { $0.uid = annUID })).hasError)
            #expect(try await ann.event().contact.kind == .removed)
            #expect(try await ann.send("hello?", to: bobUID, id: 6).error.code == HermesError.Code.forbidden.rawValue)
            #expect(try await ann.contact(7, .add(add)).error.code == HermesError.Code.forbidden.rawValue)
            #expect(try await !bob.contact(8, .unblock(.with { $0.uid = annUID })).hasError)
            #expect(try await !ann.send("hello!", to: bobUID, id: 9).hasError)
            #expect(try await bob.event().message.content.text == "hello!")
        }
    }

    @Test func `who blocks a member does not see it type in a common group`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let bob = try await Peer(registering: "bob", at: server)
            let carl = try await Peer(registering: "carl", at: server)
            let (annUID, bobUID, carlUID) = (ann.uid, bob.uid, carl.uid)
            let create = Hermes_V1_CreateGroup.with {
                $0.name = "all three"
                $0.memberUids = [bobUID, carlUID]
            }
            let group = try await ann.group(2, .create(create)).group.id
            #expect(try await !bob.contact(2, .block(.with { $0.uid = annUID })).hasError)
            let typing = Hermes_V1_Typing.with { $0.conversation.groupID = group }
            #expect(try await !ann.ask(3, .typing(typing)).hasError)
            #expect(try await carl.ephemeral().typing.uid == annUID)
            #expect(try await !carl.ask(2, .typing(typing)).hasError)
            // Carl's event is the first that bob gets.
            #expect(try await bob.ephemeral().typing.uid == carlUID)
        }
    }

    @Test func `a blocked account is not heard nor told`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let annUID = ann.uid
            let bob = try await Peer(registering: "bob", at: server)
            let bobUID = bob.uid
            let typing = Hermes_V1_Typing.with { $0.conversation.uid = bobUID }
            func signal(_ session: String) -> Hermes_V1_Signal {
                .with {
                    $0.toUid = bobUID
                    $0.sessionID = session
                    $0.data = Data([1])
                }
            }
            #expect(try await !ann.ask(2, .typing(typing)).hasError)
            #expect(try await bob.ephemeral().typing.uid == annUID)
            let forbidden = HermesError.Code.forbidden.rawValue
            #expect(try await ann.ask(3, .signal(signal("a stranger's"))).error.code == forbidden)
            try await server.befriend(annUID, bobUID)
            #expect(try await !ann.ask(4, .signal(signal("before"))).hasError)
            #expect(try await bob.ephemeral().signal.signal.sessionID == "before")

            #expect(try await !bob.contact(2, .block(.with { $0.uid = annUID })).hasError)
            // To Ann, it seems that Bob ignores the event.
            #expect(try await !ann.ask(5, .typing(typing)).hasError)
            #expect(try await ann.ask(6, .signal(signal("blocked"))).error.code == forbidden)
            #expect(try await !bob.contact(3, .unblock(.with { $0.uid = annUID })).hasError)
            #expect(try await ann.ask(7, .signal(signal("no contact any more"))).error.code == forbidden)
            try await server.befriend(annUID, bobUID)
            #expect(try await !ann.ask(8, .signal(signal("after"))).hasError)
            #expect(try await bob.ephemeral().signal.signal.sessionID == "after")
        }
    }

    @Test func `bad contact requests are refused`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let annUID = ann.uid
            let bobUID = try await Peer(registering: "bob", at: server).uid
            func code(_ request: Hermes_V1_ContactRequest.OneOf_Request) async throws -> UInt32 {
                try await ann.contact(2, request).error.code
            }
            #expect(try await code(.add(.with { $0.uid = annUID })) == HermesError.Code.invalidArgument.rawValue)
            #expect(try await code(.add(.with { $0.uid = 99 })) == HermesError.Code.notFound.rawValue)
            #expect(try await code(.remove(.with { $0.uid = bobUID })) == HermesError.Code.notFound.rawValue)
            let long = Hermes_V1_AddContact.with {
                $0.uid = bobUID
                $0.message = String(repeating: "x", count: 257)
            }
            #expect(try await code(.add(long)) == HermesError.Code.tooLarge.rawValue)
        }
    }

    @Test(arguments: [99, 0, 1 << 31, .max] as [UInt32])
    func `a uid that no account can have is answered like one that no account has`(uid: UInt32) async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let annUID = ann.uid
            let notFound = HermesError.Code.notFound.rawValue
            let answer = Hermes_V1_AnswerContact.with {
                $0.uid = uid
                $0.accept = true
            }
            let requests: [Hermes_V1_ContactRequest.OneOf_Request] = [
                .add(.with { $0.uid = uid }), .answer(answer), .remove(.with { $0.uid = uid }),
                .block(.with { $0.uid = uid }), .unblock(.with { $0.uid = uid }),
            ]
            for request in requests { #expect(try await ann.contact(2, request).error.code == notFound, "\(request)") }
            #expect(try await ann.send("hello?", to: uid, id: 3).error.code == notFound)
            let get = Hermes_V1_AccountRequest.with { $0.get.uid = uid }
            #expect(try await ann.ask(4, .account(get)).error.code == notFound)
            let create = Hermes_V1_CreateGroup.with {
                $0.name = "trip"
                $0.memberUids = [uid]
            }
            #expect(try await ann.group(5, .create(create)).error.code == notFound)
            let signal = Hermes_V1_Signal.with {
                $0.toUid = uid
                $0.sessionID = "a call"
                $0.data = Data([1])
            }
            #expect(try await ann.ask(6, .signal(signal)).error.code == HermesError.Code.forbidden.rawValue)
            let watched = try await ann.ask(7, .presence(.with { $0.watchUids = [uid, annUID] })).presence.presences
            #expect(watched.map(\.uid) == [uid, annUID])
            #expect(watched.map(\.isOnline) == [false, true])
        }
    }

    @Test func `group messages reach every device once and the absent later`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let annUID = ann.uid
            let tablet = try await Peer("ann", device: "tablet", at: server)
            let bob = try await Peer(registering: "bob", at: server)
            let bobUID = bob.uid
            let carl = try await Peer(registering: "carl", at: server)
            let carlUID = carl.uid
            try await carl.close()

            let create = Hermes_V1_CreateGroup.with {
                $0.name = "trip"
                $0.memberUids = [bobUID, carlUID]
            }
            let group = try await ann.group(2, .create(create)).group
            #expect(group.name == "trip")
            #expect(group.memberCount == 3)
            for client in [ann, tablet, bob] {
                let created = try await client.event().group
                #expect(created.kind == .created)
                #expect(created.byUid == annUID)
                #expect(created.uids == [annUID, bobUID, carlUID])
            }

            let first = try await ann.talk(3, "one", in: group.id).receipt
            #expect(first.conversationSeq == 1)
            #expect(try await bob.talk(3, "two", in: group.id).receipt.conversationSeq == 2)
            let onTablet = [try await tablet.event().message, try await tablet.event().message]
            #expect(onTablet.map(\.content.text) == ["one", "two"])
            #expect(onTablet.map(\.own) == [true, false])
            #expect(onTablet.map(\.conversation.groupID) == [group.id, group.id])
            let atBob = try await bob.event().message
            #expect(atBob.content.text == "one")
            #expect(atBob.fromUid == annUID)
            // A device does not get the messages that it has sent itself.
            #expect(try await ann.event().message.content.text == "two")

            let again = try await Peer("carl", device: "one", at: server)
            #expect(try await again.event().group.kind == .created)
            #expect(try await again.event().message.content.text == "one")
            #expect(try await again.event().message.content.text == "two")

            let typing = Hermes_V1_Typing.with { $0.conversation.groupID = group.id }
            try await bob.ask(4, .typing(typing))
            let typed = try await again.ephemeral().typing
            #expect(typed.uid == bobUID)
            #expect(typed.conversation.groupID == group.id)

            let read = Hermes_V1_MarkRead.with {
                $0.conversation.groupID = group.id
                $0.upToSeq = 2
            }
            #expect(try await !ann.ask(5, .markRead(read)).hasError)
            #expect(try await tablet.event().readMark.upToSeq == 2)
            let recall = Hermes_V1_Recall.with {
                $0.conversation.groupID = group.id
                $0.messageID = first.messageID
            }
            #expect(try await !ann.ask(6, .recall(recall)).hasError)
            #expect(try await again.event().recalled.messageID == first.messageID)
            let history = try await again.ask(7, .history(.with { $0.conversation.groupID = group.id })).history
            #expect(history.messages.map(\.recalled) == [true, false])

            // A member who may not send messages may not send typing events either.
            let mute = Hermes_V1_ChangeGroup.with {
                $0.groupID = group.id
                $0.muted = true
            }
            #expect(try await !ann.group(8, .change(mute)).hasError)
            #expect(try await again.ask(9, .typing(typing)).error.code == HermesError.Code.forbidden.rawValue)
            #expect(try await !ann.ask(10, .typing(typing)).hasError)
        }
    }

    @Test func `a list begins after a number that may be an account's or a group's`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let id = try await ann.group(2, .create(.with { $0.name = "trip" })).group.id
            let invalid = HermesError.Code.invalidArgument.rawValue
            for (index, place) in [UInt32(1) << 31, .max].enumerated() {
                let number = UInt64(2 * index + 3)
                let groups = try await ann.group(number, .list(.with { $0.afterGroupID = place }))
                #expect(groups.error.code == invalid)
                let contacts = try await ann.contact(number + 1, .list(.with { $0.afterUid = place }))
                #expect(contacts.error.code == invalid)
            }
            #expect(try await ann.group(7, .list(.with { $0.afterGroupID = 0 })).groups.groups.map(\.id) == [id])
            #expect(try await ann.group(8, .list(.with { $0.afterGroupID = id })).groups.groups.isEmpty)
            let last = UInt32(Int32.max)
            #expect(try await !ann.group(9, .list(.with { $0.afterGroupID = last })).hasError)
            #expect(try await !ann.contact(10, .list(.with { $0.afterUid = last })).hasError)
            #expect(try await !ann.contact(11, .list(.init())).hasError)
        }
    }

    @Test func `removed members are refused everything`() async throws {
        try await GatewayHarness.with { server in
            let ann = try await Peer(registering: "ann", at: server)
            let annUID = ann.uid
            let bob = try await Peer(registering: "bob", at: server)
            let bobUID = bob.uid
            let create = Hermes_V1_CreateGroup.with {
                $0.name = "trip"
                $0.memberUids = [bobUID]
            }
            let id = try await ann.group(2, .create(create)).group.id
            let found = try await bob.group(2, .get(.with { $0.groupID = id })).group
            #expect(found.members.map(\.nickName) == ["ann", "bob"])
            #expect(found.members.map(\.role) == [.owner, .member])
            #expect(try await bob.group(3, .list(.init())).groups.groups.map(\.id) == [id])

            let remove = Hermes_V1_ChangeMembers.with {
                $0.groupID = id
                $0.removeUids = [bobUID]
            }
            #expect(try await bob.group(4, .changeMembers(remove)).error.code == HermesError.Code.forbidden.rawValue)
            #expect(try await !ann.group(4, .changeMembers(remove)).hasError)
            let forbidden = HermesError.Code.forbidden.rawValue
            #expect(try await bob.talk(5, "still here?", in: id).error.code == forbidden)
            #expect(try await bob.group(6, .get(.with { $0.groupID = id })).error.code == forbidden)
            #expect(try await bob.ask(7, .history(.with { $0.conversation.groupID = id })).error.code == forbidden)
            #expect(try await bob.ask(8, .typing(.with { $0.conversation.groupID = id })).error.code == forbidden)
            #expect(try await bob.group(9, .leave(.with { $0.groupID = id })).error.code == forbidden)
            #expect(try await bob.event().group.kind == .created)
            let removed = try await bob.event().group
            #expect(removed.kind == .membersRemoved)
            #expect(removed.uids == [bobUID])
            #expect(removed.byUid == annUID)

            let change = Hermes_V1_ChangeGroup.with {
                $0.groupID = id
                $0.name = "journey"
            }
            #expect(try await ann.group(10, .change(change)).group.name == "journey")
            #expect(try await !ann.group(11, .dissolve(.with { $0.groupID = id })).hasError)
            #expect(try await ann.group(12, .list(.init())).groups.groups.isEmpty)
            #expect(try await ann.talk(13, "anybody?", in: id).error.code == forbidden)
            let invalid = HermesError.Code.invalidArgument.rawValue
            #expect(try await ann.group(14, .create(.init())).error.code == invalid)
            #expect(try await ann.group(15, .leave(.init())).error.code == invalid)
            #expect(try await ann.talk(16, "nowhere", in: 0).error.code == invalid)
        }
    }
}

/// A client that keeps the events that arrive before an answer, because an event may come before or after the answer.
private final class Peer {
    private let client: DelimitedTestClient
    private var kept: [Hermes_V1_Packet] = []
    let session: Hermes_V1_Session

    /// Registers a new account.
    init(registering name: String, at server: GatewayHarness) async throws {
        client = try await server.delimited()
        session = try await client.register(name)
    }

    init(_ name: String, device: String, at server: GatewayHarness) async throws {
        client = try await server.delimited()
        var request = Hermes_V1_Authenticate()
        request.password.nickName = name
        request.password.password = "password of \(name)"
        request.device.id = device
        try await client.write(1, .authenticate(request))
        session = try await client.result(1).session
    }

    var uid: UInt32 { session.uid }

    func close() async throws { try await client.wire.close() }

    private func next(_ take: (Hermes_V1_Packet) -> Bool) async throws -> Hermes_V1_Packet {
        if let index = kept.firstIndex(where: take) { return kept.remove(at: index) }
        while true {
            let packet = try await client.next()
            if take(packet) { return packet }
            kept.append(packet)
        }
    }

    /// Returns the next inbox entry, in order.
    func event() async throws -> Hermes_V1_Event {
        try await next { if case .event = $0.body { true } else { false } }.event
    }

    func ephemeral() async throws -> Hermes_V1_Ephemeral {
        try await next { if case .ephemeral = $0.body { true } else { false } }.ephemeral
    }

    @discardableResult
    func ask(_ id: UInt64, _ body: Hermes_V1_Packet.OneOf_Body) async throws -> Hermes_V1_Result {
        try await client.write(id, body)
        return try await next { if case .result = $0.body { $0.id == id } else { false } }.result
    }

    func contact(_ id: UInt64, _ request: Hermes_V1_ContactRequest.OneOf_Request) async throws -> Hermes_V1_Result {
        try await ask(id, .contact(.with { $0.request = request }))
    }

    func group(_ id: UInt64, _ request: Hermes_V1_GroupRequest.OneOf_Request) async throws -> Hermes_V1_Result {
        try await ask(id, .group(.with { $0.request = request }))
    }

    func talk(_ id: UInt64, _ text: String, in group: UInt32) async throws -> Hermes_V1_Result {
        let send = Hermes_V1_Send.with {
            $0.to.groupID = group
            $0.content.text = text
        }
        return try await ask(id, .send(send))
    }

    func send(_ text: String, to uid: UInt32, id: UInt64) async throws -> Hermes_V1_Result {
        let send = Hermes_V1_Send.with {
            $0.to.uid = uid
            $0.content.text = text
        }
        return try await ask(id, .send(send))
    }
}
