// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOConcurrencyHelpers
import Testing

@testable import Hermes

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct InboxJournalTests {
    /// A store that fails when it is told to.
    private final class Failing: LocalStore {
        let store = MemoryLocalStore()
        let isFailing = NIOLockedValueBox(false)

        func records() -> [LocalRecord] { store.records() }

        func write(
            _ changes: [LocalChange],
            durably: Bool,
            completion: @escaping @Sendable (Result<Void, any Error>) -> Void
        ) {
            guard !isFailing.withLockedValue({ $0 }) else {
                return completion(.failure(HermesClientError(.storeFailed, "no space")))
            }
            store.write(changes, durably: durably, completion: completion)
        }
    }

    private static let session = Session(uid: 7, nickName: "ann", token: "t", epoch: 1, serverVersion: "")

    private static func event(_ seq: UInt64, epoch: UInt64 = 1) -> DelimitedLink.Event {
        var source = Hermes_V1_Event()
        source.seq = seq
        source.message.id = "M\(seq)"
        source.message.content.text = "\(seq)"
        return DelimitedLink.Event(epoch: epoch, seq: seq, event: InboxEvent(source), source: source)
    }

    private static func journal(_ store: any LocalStore, maxEntries: Int = 10) throws -> InboxJournal {
        InboxJournal(store: store, records: try store.records(), maxEntries: maxEntries)
    }

    private static func texts(_ journal: InboxJournal) -> [String] {
        journal.recent.map { $0.message?.text ?? "" }
    }

    @Test func `the last entries are kept whatever their numbers are, in order, also over a restart`() async throws {
        let store = MemoryLocalStore()
        let journal = try Self.journal(store)
        // Every other one, and every tenth, is one's own, which the app does not get.
        let seqs = (1...200).map { UInt64($0) }.filter { $0 % 10 == 1 }
        for seq in seqs { #expect(await journal.taken(Self.event(seq), of: Self.session)) }
        let expected = seqs.suffix(10).map { "\($0)" }
        #expect(Self.texts(journal) == expected)
        #expect(Self.texts(try Self.journal(store)) == expected)
        // With less room, and with more again.
        let smaller = try Self.journal(store, maxEntries: 3)
        #expect(Self.texts(smaller) == Array(expected.suffix(3)))
        #expect(await smaller.taken(Self.event(201), of: Self.session))
        #expect(Self.texts(try Self.journal(store, maxEntries: 100)) == expected.suffix(2) + ["201"])
        #expect(store.records().count { $0.key.hasPrefix("taken/") } == 3)
    }

    @Test func `a write that fails is told, and made up for with the next`() async throws {
        let store = Failing()
        let journal = try Self.journal(store)
        #expect(await journal.taken(Self.event(1), of: Self.session))
        store.isFailing.withLockedValue { $0 = true }
        #expect(await !journal.taken(Self.event(2), of: Self.session))
        #expect(journal.failure?.code == .storeFailed)
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 1))
        store.isFailing.withLockedValue { $0 = false }
        #expect(await journal.taken(Self.event(3), of: Self.session))
        #expect(journal.failure == nil)
        let next = try Self.journal(store)
        #expect(next.cursor == Cursor(epoch: 1, seq: 3))
        #expect(Self.texts(next) == ["1", "2", "3"])
        #expect(next.account?.uid == 7)
    }

    @Test func `once the store works again, what was taken is stored and acknowledged, although nothing else comes`()
        async throws
    {
        let store = Failing()
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            connection.accept(id: packet.id, head: 1)
            connection.event(1, "1")
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let events = client.events.makeAsyncIterator()
        _ = await events.next()
        store.isFailing.withLockedValue { $0 = true }
        let waiting = Task { await client.events.makeAsyncIterator().next() }  // Ended by the client's close.
        while client.storeError == nil { try await Task.sleep(for: .milliseconds(5)) }
        store.isFailing.withLockedValue { $0 = false }
        let packet = await server.firstPacket { _, packet in
            if case .acknowledge = packet.body { true } else { false }
        }
        #expect(packet?.acknowledge.upToSeq == 1)
        #expect(client.storeError == nil)
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 1))
        await client.close()
        _ = await waiting.value
        try await server.stop()
    }

    @Test func `what the store does not take is not acknowledged, so that it comes again`() async throws {
        let store = Failing()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate:
                connection.accept(id: packet.id, head: 2)
                connection.event(1, "1")
                connection.event(2, "2")
            case .acknowledge(let request):
                #expect(request.upToSeq == 2)
                #expect(!store.isFailing.withLockedValue { $0 })
            default: break
            }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let events = client.events.makeAsyncIterator()
        _ = await events.next()
        store.isFailing.withLockedValue { $0 = true }
        _ = await events.next()
        #expect(client.storeError?.code == .storeFailed)
        #expect(await client.cursor == Cursor(epoch: 1, seq: 0))
        store.isFailing.withLockedValue { $0 = false }
        await client.close()
        #expect(client.storeError == nil)
        #expect(await client.cursor == Cursor(epoch: 1, seq: 2))
        try await server.stop()
    }

    @Test func `another account's login forgets the inbox, another epoch the place alone`() async throws {
        let store = MemoryLocalStore()
        let journal = try Self.journal(store)
        #expect(await journal.taken(Self.event(5), of: Self.session))
        var session = Self.session
        session.epoch = 2
        await journal.loggedIn(session)
        #expect(journal.cursor == nil)
        #expect(Self.texts(try Self.journal(store)) == ["5"])
        session.uid = 8
        await journal.loggedIn(session)
        #expect(try Self.journal(store).recent.isEmpty)
        #expect(store.records().map(\.key) == ["account"])
    }
}
