// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite("What a node keeps of the others") struct ClusterStateTests {
    @Test func `a link gives out each message once, in ascending order, and shows gaps`() {
        var link = LinkNumbers()
        let numbers: [UInt64] = [1, 1, 2, 5, 3, 6]
        let arrivals = numbers.map { link.received($0) }
        #expect(arrivals == [.next, .late, .next, .afterGap, .late, .next])
        let beats: [UInt64] = [6, 2, 8]
        let gaps = beats.map { link.beat($0) }
        #expect(gaps == [false, false, true])
        let later: [UInt64] = [8, 9]
        let further = later.map { link.received($0) }
        #expect(further == [.late, .next])
        #expect(link.last == 9)
    }

    @Test func `a set of nodes is a bitmap`() throws {
        let (one, last) = (try #require(NodeID(rawValue: 0)), try #require(NodeID(rawValue: 63)))
        #expect(NodeID(rawValue: 64) == nil)
        let both: NodeSet = [NodeSet(one), NodeSet(last)]
        #expect(both.nodes == [one, last])
        #expect(both.contains(last) && !NodeSet(one).contains(last))
        let bits: UInt64 = 1 << 63 | 1
        #expect(both.rawValue == bits)
    }

    @Test func `ends are given to those who missed them, until they are forgotten`() throws {
        var log = ChangeLog<AccountEnd>(limit: 4)
        #expect(log.after(0)?.isEmpty == true)
        let ends = try (1...6).map { AccountEnd.devices(try user($0), .revoked, .all) }
        let numbers = ends.map { log.append($0) }
        #expect(numbers == [1, 2, 3, 4, 5, 6])
        #expect(log.after(6)?.isEmpty == true)
        #expect(log.after(4) == Array(ends[4...]))
        #expect(log.after(2) == Array(ends[2...]))
        #expect(log.after(1) == nil)
    }

    @Test func `a spared login is no login of another node`() throws {
        let one = try user(1)
        let end = AccountEnd.devices(one, .revoked, .allBut(.next()))
        #expect(end.elsewhere == .devices(one, .revoked, .all))
        let kept = AccountEnd.devices(one, .revoked, .only(try device("phone")))
        #expect(kept.elsewhere == kept)
        let clients = AccountEnd.topicClients(one, name: "a", .revoked, .allBut(.next()))
        #expect(clients.elsewhere == .topicClients(one, name: "a", .revoked, .all))
    }

    @Test func `presence follows the versions, whatever the order`() throws {
        var directory = PresenceDirectory()
        let one = try user(1)
        func note(_ version: UInt64) -> Bool {
            directory.note(PresenceChange(user: one, version: version), now: .zero)
        }
        #expect(!directory.isOnline(one))
        // Version 5 shows that the user went offline and online again, although version 4 had not arrived.
        let turned = ([3, 2, 3, 5, 6, 4] as [UInt64]).map(note)
        #expect(turned == [true, false, false, false, true, false])
        #expect(!directory.isOnline(one))
        directory.forget(now: PresenceDirectory.memory - .seconds(1))
        #expect(directory.version(of: one) == 6)
        directory.forget(now: PresenceDirectory.memory)
        #expect(directory.version(of: one) == 0)
    }

    @Test func `what the record says wins over what was heard before it was read`() throws {
        var directory = PresenceDirectory()
        let users = try (1...4).map { try user($0) }
        func change(_ index: Int, _ version: UInt64) -> PresenceChange {
            PresenceChange(user: users[index], version: version)
        }
        for index in 0..<3 { _ = directory.note(change(index, 1), now: .zero) }
        let before = directory.changes
        // This change arrives while the record is being read, so it is newer.
        _ = directory.note(change(2, 3), now: .zero)
        let turned = directory.reload([change(0, 1), change(3, 5)], changesBefore: before, now: .zero)
        #expect(Set(turned) == [users[1], users[3]])
        let states = users.map { directory.isOnline($0) }
        #expect(states == [true, false, true, true])
        // The message about the real transition has the same version, so it contains nothing new.
        let hasTurned = directory.note(change(1, 2), now: .zero)
        #expect(!hasTurned)
    }

    @Test func `a process that is alone sends nothing and has no roster`() async throws {
        let store = MemoryStore()
        try await addAccounts(2, to: store)
        let messenger = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            placeStore: store
        )
        #expect(messenger.devices.roster == nil && messenger.cluster == nil)
        #expect(LoneNode().node == nil)
        let phone = RecordingAttachment(try principal(1))
        messenger.devices.attach(phone)
        let online = try await store.online(after: nil, limit: 10)
        #expect(online.isEmpty)
        await messenger.shutdown()
    }

    @Test(arguments: PlaceStoreConformance.cases)
    func `places`(_ conformance: ConformanceCase) async throws {
        try await conformance.run { settings in MemoryStore(settings: settings) }
    }
}

/// The knowledge of a node about another node's subscribers.
@Suite struct PeerInterestTests {
    private func interest(_ filter: String, _ subscribers: Int, shared: Bool = false) throws -> TopicInterest {
        let filter = try #require(TopicFilter(filter))
        return TopicInterest(.init(filter: filter, share: shared ? filter : nil), subscribers: subscribers)
    }

    @Test func `messages after a gap wait for the answer, and count after it`() throws {
        var peer = PeerInterest()
        let a = try interest("a", 1)
        #expect(peer.told([a], number: 3) == ([], true))
        let (new, mustAsk) = peer.answered([try interest("b", 5)], upTo: 2)
        #expect(Set(new) == [a, try interest("b", 1)] && !mustAsk)
        #expect(peer.told([a], number: 3) == ([], false))
        #expect(peer.told([try interest("a", 0)], number: 4) == ([try interest("a", 0)], false))
        #expect(peer.told([a], number: 6) == ([], true))
        #expect(peer.answered([try interest("b", 1)], upTo: 4).mustAsk)
        let again = peer.answered([try interest("b", 2)], upTo: 5)
        #expect(again.new == [a] && !again.mustAsk)
    }

    @Test func `a message that fills a gap counts, even if the next gap is not filled`() throws {
        var peer = PeerInterest()
        _ = peer.answered([], upTo: 1)
        _ = peer.told([try interest("d", 1)], number: 4)
        #expect(peer.told([try interest("b", 1)], number: 2) == ([try interest("b", 1)], true))
        #expect(peer.answered([try interest("b", 1)], upTo: 3) == ([try interest("d", 1)], false))
    }

    @Test func `an answer that a later one overtook changes nothing`() throws {
        var peer = PeerInterest()
        _ = peer.answered([try interest("a", 1)], upTo: 5)
        let late = peer.answered([], upTo: 4)
        #expect(late.new == [] && !late.mustAsk)
        #expect(peer.all == [try interest("a", 1)])
    }

    @Test func `ordinary subscribers count as one, members of shares as many as they are`() throws {
        #expect(try interest("a", 7).subscribers == 1)
        #expect(try interest("a", 7, shared: true).subscribers == 7)
    }
}
