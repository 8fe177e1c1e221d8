// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOConcurrencyHelpers
import Testing

@testable import Hermes

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct InboxJournalTests {
    /// A store that fails when the test requests it.
    private final class Failing: LocalStore {
        let store = MemoryLocalStore()
        let isFailing = NIOLockedValueBox(false)
        private let failures = NIOLockedValueBox(0)

        /// The number of writes that failed.
        var failureCount: Int { failures.withLockedValue { $0 } }

        func records() -> [LocalRecord] { store.records() }

        func write(
            _ changes: [LocalChange],
            durably: Bool,
            completion: @escaping @Sendable (Result<Void, any Error>) -> Void
        ) {
            guard !isFailing.withLockedValue({ $0 }) else {
                completion(.failure(HermesClientError(.storeFailed, "no space")))
                return failures.withLockedValue { $0 += 1 }
            }
            store.write(changes, durably: durably, completion: completion)
        }
    }

    /// A store that delays its writes while the test requests it.
    private final class Holding: LocalStore {
        private typealias Write = @Sendable (_ error: HermesClientError?) -> Void
        private let store = MemoryLocalStore()
        private let held = NIOLockedValueBox<[Write]?>(nil)

        var heldCount: Int { held.withLockedValue { $0?.count ?? 0 } }

        func records() -> [LocalRecord] { store.records() }

        func hold() { held.withLockedValue { $0 = [] } }

        /// Ends the delayed writes. Carries them out, or makes them fail with the error. Carries out later writes at
        /// once.
        func release(_ error: HermesClientError? = nil) {
            let writes = held.withLockedValue { held in
                defer { held = nil }
                return held ?? []
            }
            for write in writes { write(error) }
        }

        func write(
            _ changes: [LocalChange],
            durably: Bool,
            completion: @escaping @Sendable (Result<Void, any Error>) -> Void
        ) {
            let write: Write = { [store] error in
                if let error { return completion(.failure(error)) }
                store.write(changes, durably: durably, completion: completion)
            }
            let isHeld = held.withLockedValue { held in
                held?.append(write)
                return held != nil
            }
            if !isHeld { write(nil) }
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

    /// Records in the store that the app has taken an event.
    private static func taken(_ event: DelimitedLink.Event, in journal: InboxJournal) async -> Bool {
        journal.taken(event, of: session)
        return await journal.flush()
    }

    private static func texts(_ journal: InboxJournal) -> [String] {
        journal.recent.map { $0.message?.text ?? "" }
    }

    @Test func `the last entries are kept whatever their numbers are, in order, also over a restart`() async throws {
        let store = MemoryLocalStore()
        let journal = try Self.journal(store)
        // The other seqs belong to the account's own messages, which the app does not get.
        let seqs = (1...200).map { UInt64($0) }.filter { $0 % 10 == 1 }
        for seq in seqs { #expect(await Self.taken(Self.event(seq), in: journal)) }
        let expected = seqs.suffix(10).map { "\($0)" }
        #expect(Self.texts(journal) == expected)
        #expect(Self.texts(try Self.journal(store)) == expected)
        // The journal has less room, and then more room again.
        let smaller = try Self.journal(store, maxEntries: 3)
        #expect(Self.texts(smaller) == Array(expected.suffix(3)))
        #expect(await Self.taken(Self.event(201), in: smaller))
        #expect(Self.texts(try Self.journal(store, maxEntries: 100)) == expected.suffix(2) + ["201"])
        #expect(store.records().count { $0.key.hasPrefix("taken/") } == 3)
    }

    @Test func `a write that fails is told, and made up for with the next`() async throws {
        let store = Failing()
        let journal = try Self.journal(store)
        #expect(await Self.taken(Self.event(1), in: journal))
        store.isFailing.withLockedValue { $0 = true }
        #expect(await !Self.taken(Self.event(2), in: journal))
        #expect(journal.failure?.code == .storeFailed)
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 1))
        store.isFailing.withLockedValue { $0 = false }
        #expect(await Self.taken(Self.event(3), in: journal))
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

    @Test func `entries that the store took late are acknowledged, although the app took a reset after them`()
        async throws
    {
        let store = Failing()
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            // At the second connection, the server has lost the second entry.
            connection.accept(id: packet.id, head: connection.number == 1 ? 2 : 1)
            guard connection.number == 1 else { return }
            for seq in UInt64(1)...2 { connection.event(seq, "\(seq)") }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let events = client.events.makeAsyncIterator()
        #expect(await events.next()?.message?.text == "1")
        store.isFailing.withLockedValue { $0 = true }
        #expect(await events.next()?.message?.text == "2")
        server.closeConnection()
        #expect(await events.next()?.kind == .inboxReset)
        let failureCount = store.failureCount
        let waiting = Task { await client.events.makeAsyncIterator().next() }  // Ended by the client's close.
        while store.failureCount == failureCount { try await Task.sleep(for: .milliseconds(2)) }
        store.isFailing.withLockedValue { $0 = false }
        let packet = await server.firstPacket { _, packet in
            if case .acknowledge = packet.body { true } else { false }
        }
        #expect(packet?.acknowledge.upToSeq == 1)
        await client.close()
        _ = await waiting.value
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 1))
        try await server.stop()
    }

    @Test func `the store gets the place of a reset once it works again, although the app takes nothing`()
        async throws
    {
        let store = Failing()
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            guard connection.number == 1 else { return connection.accept(id: packet.id, head: 3, acknowledged: 3) }
            connection.accept(id: packet.id, head: 5)
            for seq in UInt64(1)...5 { connection.event(seq, "\(seq)") }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let first = try HermesClient(configuration)
        _ = try await first.logIn(.token("t"))
        let events = first.events.makeAsyncIterator()
        for _ in 1...5 { _ = await events.next() }
        await first.close()
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 5))
        store.isFailing.withLockedValue { $0 = true }
        let second = try HermesClient(configuration)
        _ = try await second.logIn(.token("token-1"))
        #expect(second.storeError?.code == .storeFailed)
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 5))
        store.isFailing.withLockedValue { $0 = false }
        while try Self.journal(store).cursor != Cursor(epoch: 1, seq: 3) {
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(try Self.journal(store).owesReset)
        await second.close(takingLastEvent: false)
        try await server.stop()
    }

    @Test(arguments: [false, true])
    func `quick moves of the place cause two writes, and the last place is stored`(isFirstFailing: Bool) async throws {
        let store = Holding()
        let journal = try Self.journal(store)
        journal.loggedIn(Self.session)
        let failures = Log<Void>()
        journal.whenWriteFailed { failures.append(()) }
        store.hold()
        for seq in UInt64(1)...50 { journal.passed(Cursor(epoch: 1, seq: seq), of: 7) }
        #expect(store.heldCount == 1)
        store.release(isFirstFailing ? HermesClientError(.storeFailed, "no space") : nil)
        #expect(failures.all.count == (isFirstFailing ? 1 : 0))
        if isFirstFailing { #expect(await journal.flush()) }
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 50))
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

    @Test func `an entry counts as recorded only once the write that another call has begun ends`() async throws {
        let store = Holding()
        let journal = try Self.journal(store)
        journal.loggedIn(Self.session)
        store.hold()
        let first = Task { await Self.taken(Self.event(1), in: journal) }  // Awaited below.
        while store.heldCount == 0 { try await Task.sleep(for: .milliseconds(2)) }
        let cursor = NIOLockedValueBox<Cursor?>(nil)
        let second = Task {  // Awaited below.
            let isRecorded = await Self.taken(Self.event(1), in: journal)
            let records = try Self.journal(store).cursor
            cursor.withLockedValue { $0 = records }
            return isRecorded
        }
        // The sleep is long enough for the second call to begin.
        try await Task.sleep(for: .milliseconds(50))
        #expect(cursor.withLockedValue { $0 } == nil)
        // The first call's write fails; the second call writes again.
        store.release(HermesClientError(.storeFailed, "no space"))
        #expect(await !first.value)
        #expect(try await second.value)
        #expect(cursor.withLockedValue { $0 } == Cursor(epoch: 1, seq: 1))
    }

    @Test func `a close takes the entry that it has recorded, and no later one that the app gets meanwhile`()
        async throws
    {
        let store = Holding()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate:
                connection.accept(id: packet.id, head: 2)
                connection.event(1, "1")
                connection.event(2, "2")
            case .acknowledge(let request):
                #expect(request.upToSeq == 1)
            default: break
            }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        #expect(await client.events.makeAsyncIterator().next()?.message?.text == "1")
        while await client.driver.events.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        store.hold()
        let closing = Task { await client.close() }  // Awaited below.
        while store.heldCount == 0 { try await Task.sleep(for: .milliseconds(2)) }
        let loop = Task { await client.events.makeAsyncIterator().next()?.message?.text }  // Awaited below.
        // The sleep is long enough for the loop to ask for the next entry.
        try await Task.sleep(for: .milliseconds(50))
        store.release()
        #expect(await loop.value == "2")
        await closing.value
        #expect(await client.cursor == Cursor(epoch: 1, seq: 1))
        #expect(try Self.journal(store).cursor == Cursor(epoch: 1, seq: 1))
        try await server.stop()
    }

    @Test func `an entry that is not the last any more is not taken in its place`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            connection.accept(id: packet.id, head: 2)
            connection.event(1, "1")
            connection.event(2, "2")
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let events = client.events.makeAsyncIterator()
        _ = await events.next()
        let first = await client.driver.handedOver
        #expect(first?.seq == 1)
        _ = await events.next()
        await client.driver.close(taking: first)
        #expect(await client.cursor == Cursor(epoch: 1, seq: 1))
        try await server.stop()
    }

    @Test func `counts that were taken are gone in the next run although their removal failed`() async throws {
        let store = Failing()
        var statistics = Hermes_V1_Statistics()
        statistics.appVersion = "1.2"
        try await Self.journal(store).keep(statistics)
        let journal = try Self.journal(store)
        let failures = Log<Void>()
        journal.whenWriteFailed { failures.append(()) }
        store.isFailing.withLockedValue { $0 = true }
        #expect(journal.takeStatistics() == statistics)
        #expect(failures.all.count == 1)
        store.isFailing.withLockedValue { $0 = false }
        #expect(await journal.flush())
        #expect(try Self.journal(store).takeStatistics() == nil)
    }

    @Test func `another account's login forgets the inbox, another epoch the place alone`() async throws {
        let store = MemoryLocalStore()
        let journal = try Self.journal(store)
        #expect(await Self.taken(Self.event(5), in: journal))
        var session = Self.session
        session.epoch = 2
        journal.loggedIn(session)
        #expect(journal.cursor == nil)
        #expect(Self.texts(try Self.journal(store)) == ["5"])
        session.uid = 8
        journal.loggedIn(session)
        #expect(try Self.journal(store).recent.isEmpty)
        #expect(store.records().map(\.key) == ["account"])
    }
}
