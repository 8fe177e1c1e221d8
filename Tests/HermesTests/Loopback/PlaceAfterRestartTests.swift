// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

extension FakeServer.Connection where Decoder == DelimitedFrameDecoder {
    /// Sends an entry that the server has deleted.
    fileprivate func expired(_ seq: UInt64) {
        var event = Hermes_V1_Event()
        event.seq = seq
        event.expired.toSeq = seq
        send(.event(event))
    }
}

/// The place where the inbox continues after the app was killed, and the events that the app gets.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct PlaceAfterRestartTests {
    /// Copies the present state of the store, as if the app were killed now.
    private static func copy(of store: MemoryLocalStore) async throws -> MemoryLocalStore {
        let copy = MemoryLocalStore()
        let changes = store.records().map { LocalChange(key: $0.key, value: $0.value) }
        try await copy.write(changes, durably: true)
        return copy
    }

    private static func journal(_ store: MemoryLocalStore) -> InboxJournal {
        InboxJournal(store: store, records: store.records(), maxEntries: 10)
    }

    private static func seen(_ count: Int, from client: HermesClient) async -> [String] {
        var seen: [String] = []
        for await event in client.events {
            switch event.kind {
            case .message(let message): seen.append(message.text ?? "")
            case .inboxReset: seen.append("reset")
            default: seen.append("\(event.kind)")
            }
            if seen.count == count { break }
        }
        return seen
    }

    @Test(arguments: [false, true])
    func `what the device sent and the server deleted is not reported as lost`(isSentFirst: Bool) async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate where connection.number == 1:
                connection.accept(id: packet.id, head: 1)
                connection.event(1, "1")
            case .authenticate(let login):
                connection.accept(id: packet.id, head: 2, acknowledged: 2)
                if login.acknowledgedSeq < 2 { connection.expired(2) }
                connection.event(3, "3")
            case .send(let send): connection.receipt(for: send, id: packet.id, seq: 2)
            default: break
            }
        }
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let first = try HermesClient(configuration)
        _ = try await first.logIn(.token("t"))
        #expect(await Self.seen(1, from: first) == ["1"])
        if isSentFirst { try await first.send("mine", to: .user(8)).receipt() }
        // The app takes the entry when it asks for the next entry. The close of the client ends the task.
        let next = Task { await Self.seen(1, from: first) }
        if !isSentFirst {
            while Self.journal(store).cursor == nil { try await Task.sleep(for: .milliseconds(2)) }
            try await first.send("mine", to: .user(8)).receipt()
        }
        let acknowledgement = await server.firstPacket { _, packet in
            if case .acknowledge(let request) = packet.body { request.upToSeq == 2 } else { false }
        }
        #expect(acknowledgement != nil)
        #expect(Self.journal(store).cursor == Cursor(epoch: 1, seq: 2))
        configuration.localStore = try await Self.copy(of: store)
        let second = try HermesClient(configuration)
        _ = try await second.logIn(.token("token-1"))
        #expect(await Self.seen(1, from: second) == ["3"])
        await second.close()
        await first.close()
        _ = await next.value
        try await server.stop()
    }

    @Test func `entries that come again and are not shown again move the place in the store`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            connection.accept(id: packet.id, epoch: connection.number == 1 ? 1 : 2, head: 2)
            for seq in UInt64(1)...2 { connection.event(seq, "\(seq)") }
            if connection.number == 1 { connection.close() }
        }
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        #expect(await Self.seen(3, from: client) == ["1", "2", "reset"])
        #expect(Self.journal(store).owesReset)
        let next = Task { await Self.seen(1, from: client) }  // Ended by the client's close.
        let acknowledgement = await server.firstPacket { number, packet in
            if number == 2, case .acknowledge(let request) = packet.body { request.upToSeq == 2 } else { false }
        }
        #expect(acknowledgement != nil)
        #expect(Self.journal(store).cursor == Cursor(epoch: 2, seq: 2))
        #expect(!Self.journal(store).owesReset)
        await client.close()
        #expect(await next.value.isEmpty)
        try await server.stop()
    }

    /// In epoch 1, the server has lost the newest entries. Epoch 2 is a new inbox.
    @Test(arguments: [1, 2] as [UInt64])
    func `a reset that the app has not taken is told to its next run, and then no more`(epoch: UInt64) async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate(let login) = packet.body else { return }
            switch connection.number {
            case 1:
                connection.accept(id: packet.id, head: 3)
                for seq in UInt64(1)...3 { connection.event(seq, "\(seq)") }
            case 2:
                connection.accept(id: packet.id, epoch: epoch, head: 1, acknowledged: 1)
            default:
                connection.accept(id: packet.id, epoch: epoch, head: 3, acknowledged: 1)
                for seq in UInt64(2)...3 where seq > login.acknowledgedSeq {
                    connection.event(seq, "new \(seq)", id: "N\(seq)")
                }
            }
        }
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let first = try HermesClient(configuration)
        _ = try await first.logIn(.token("t"))
        #expect(await Self.seen(3, from: first) == ["1", "2", "3"])
        await first.close()
        // This run ends before the app has received anything.
        let second = try HermesClient(configuration)
        _ = try await second.logIn(.token("token-1"))
        configuration.localStore = try await Self.copy(of: store)
        let third = try HermesClient(configuration)
        _ = try await third.logIn(.token("token-1"))
        #expect(await Self.seen(2, from: third) == ["reset", "new 2"])
        await third.close()
        let fourth = try HermesClient(configuration)
        _ = try await fourth.logIn(.token("token-1"))
        #expect(await Self.seen(1, from: fourth) == ["new 3"])
        await fourth.close()
        await second.close()
        try await server.stop()
    }

    @Test func `a reset that the app returns when it closes the client is told again`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            connection.accept(id: packet.id, epoch: connection.number == 1 ? 1 : 2)
            if connection.number == 1 { connection.close() }
        }
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        #expect(await Self.seen(1, from: client) == ["reset"])
        await client.close(takingLastEvent: false)
        #expect(Self.journal(store).owesReset)
        let next = try HermesClient(configuration)
        _ = try await next.logIn(.token("token-1"))
        #expect(await Self.seen(1, from: next) == ["reset"])
        await next.close()
        #expect(!Self.journal(store).owesReset)
        try await server.stop()
    }

    @Test func `the place in the store goes back only with a reset, which another account is not told`() {
        let store = MemoryLocalStore()
        let journal = Self.journal(store)
        var session = Session(uid: 7, nickName: "ann", token: "t", epoch: 2, serverVersion: "")
        journal.loggedIn(session)
        journal.passed(Cursor(epoch: 2, seq: 5), of: 7)
        journal.passed(Cursor(epoch: 2, seq: 4), of: 7)
        journal.passed(Cursor(epoch: 1, seq: 9), of: 7)
        // This cursor belongs to another account.
        journal.passed(Cursor(epoch: 2, seq: 9), of: 8)
        journal.reset(to: Cursor(epoch: 2, seq: 1), of: 8)
        #expect(Self.journal(store).cursor == Cursor(epoch: 2, seq: 5))
        #expect(!Self.journal(store).owesReset)
        journal.reset(to: Cursor(epoch: 2, seq: 3), of: 7)
        #expect(Self.journal(store).cursor == Cursor(epoch: 2, seq: 3))
        #expect(Self.journal(store).owesReset)
        session.uid = 8
        journal.loggedIn(session)
        #expect(store.records().map(\.key) == ["account"])
    }
}
