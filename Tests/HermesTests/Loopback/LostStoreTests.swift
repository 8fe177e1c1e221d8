// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// A server that restarts with less data than before, because of a power cut or a restored snapshot of its machine.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct LostStoreTests {
    /// The app's events: the texts, and the reported losses.
    private static func seen(_ count: Int, from client: HermesClient) async -> [String] {
        var seen: [String] = []
        for await event in client.events {
            if let message = event.message {
                seen.append(message.text ?? "")
            } else if event.kind == .inboxReset {
                seen.append("reset")
            }
            if seen.count == count { break }
        }
        return seen
    }

    @Test func `new messages under the numbers of lost ones are shown, after the loss was told`() async throws {
        let told = Log<UInt64>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate(let request) = packet.body else { return }
            told.append(request.acknowledgedSeq)
            if connection.number == 1 {
                connection.accept(id: packet.id, head: 5)
                for seq in UInt64(1)...5 { connection.event(seq, "\(seq)") }
                connection.close()
            } else {
                // The last three entries are lost.
                connection.accept(id: packet.id, head: 2, acknowledged: 2)
                for seq in UInt64(3)...6 { connection.event(seq, "new \(seq)", id: "N\(seq)") }
            }
        }
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let expected = ["1", "2", "3", "4", "5", "reset", "new 3", "new 4", "new 5", "new 6"]
        #expect(await Self.seen(expected.count, from: client) == expected)
        await client.close()
        // The app took the last entry by closing the client.
        #expect(await client.cursor == Cursor(epoch: 1, seq: 6))
        let acknowledged = await server.firstPacket { number, packet in
            if number == 2, case .acknowledge(let request) = packet.body { request.upToSeq == 6 } else { false }
        }
        #expect(acknowledged != nil)
        #expect(client.recentEvents.count == 9)
        let next = try HermesClient(configuration)
        _ = try await next.logIn(.token("token-1"))
        #expect(told.all.last == 6)
        await next.close()
        try await server.stop()
    }

    @Test func `what the app kept of an earlier run and the server lost is told, and the cursor goes back`()
        async throws
    {
        let store = MemoryLocalStore()
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            if connection.number == 1 {
                connection.accept(id: packet.id, head: 3)
                for seq in UInt64(1)...3 { connection.event(seq, "\(seq)") }
            } else {
                connection.accept(id: packet.id, head: 1)
                connection.event(2, "new 2", id: "N2")
            }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let first = try HermesClient(configuration)
        _ = try await first.logIn(.token("t"))
        #expect(await Self.seen(3, from: first) == ["1", "2", "3"])
        await first.close()
        let second = try HermesClient(configuration)
        _ = try await second.logIn(.token("token-1"))
        #expect(await Self.seen(2, from: second) == ["reset", "new 2"])
        await second.close()
        let third = try HermesClient(configuration)
        #expect(await third.cursor == nil)
        _ = try await third.logIn(.token("token-1"))
        // The acknowledged seq must not be 3, because new entries up to 3 would be skipped.
        let request = await server.firstPacket { number, _ in number == 3 }
        guard case .authenticate(let login) = request?.body else {
            Issue.record("no login")
            return
        }
        #expect(login.acknowledgedSeq == 2)
        await third.close()
        try await server.stop()
    }

    @Test(arguments: [nil, Credential.token("token-1"), .password(nickName: "ann", password: "a")])
    func `what was lost below the new head is told, and the new entries under its seqs are shown`(
        credentialOfNextRun: Credential?
    ) async throws {
        let newest = Log<Hermes_V1_KnownEntry?>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .send(let send): connection.receipt(for: send, id: packet.id, seq: 4)
            case .authenticate(let request):
                newest.append(request.hasNewest ? request.newest : nil)
                if connection.number == 1 {
                    connection.accept(id: packet.id, head: 3)
                    for seq in UInt64(1)...3 { connection.event(seq, "\(seq)") }
                } else {
                    // The store went back to a saved state. In this state, the device had acknowledged the first entry.
                    // The second entry was in this state, too.
                    connection.accept(id: packet.id, head: 5, acknowledged: 1, inboxReset: true)
                    connection.event(2, "2", id: "M2")
                    for seq in UInt64(3)...5 { connection.event(seq, "new \(seq)", id: "N\(seq)") }
                }
            default: break
            }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = MemoryLocalStore()
        var client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        #expect(await Self.seen(3, from: client) == ["1", "2", "3"])
        // The newest entry is that of the device's own message.
        _ = try await client.send(.text("mine"), to: .user(8), clientID: "the-id").receipt()
        if let credentialOfNextRun {
            await client.close()
            client = try HermesClient(configuration)
            _ = try await client.logIn(credentialOfNextRun)
        } else {
            server.closeConnection()
        }
        #expect(await Self.seen(4, from: client) == ["reset", "new 3", "new 4", "new 5"])
        await client.close()
        #expect(await client.cursor == Cursor(epoch: 1, seq: 5))
        #expect(newest.all.map { $0?.seq } == [nil, 4])
        #expect(newest.all.last??.id == "M-the-id")
        // After the loss, only entries of the present inbox count.
        let next = try HermesClient(configuration)
        _ = try await next.logIn(.token("token-1"))
        #expect(newest.all.last??.id == "N5")
        await next.close()
        try await server.stop()
    }

    @Test func `after a new epoch a message that this device sent is not shown as another device's`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate where connection.number == 1: connection.accept(id: packet.id)
            case .authenticate:
                // The server has no record of this device.
                connection.accept(id: packet.id, epoch: 2, head: 2)
                connection.event(1, "mine", own: "the-id", id: "M-the-id")
                connection.event(2, "another's")
            case .send(let send): connection.receipt(for: send, id: packet.id, seq: 1)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        _ = try await client.send(.text("mine"), to: .user(8), clientID: "the-id").receipt()
        server.closeConnection()
        #expect(await Self.seen(2, from: client) == ["reset", "another's"])
        await client.close()
        #expect(await client.cursor == Cursor(epoch: 2, seq: 2))
        try await server.stop()
    }

    @Test func `after a new epoch what comes again is not shown again, and what is new is`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            if connection.number == 1 {
                connection.accept(id: packet.id, head: 3)
                for seq in UInt64(1)...3 { connection.event(seq, "\(seq)") }
                connection.close()
            } else {
                // The server has recorded that the first entry was taken, and has lost the third entry.
                connection.accept(id: packet.id, epoch: 2, head: 2, acknowledged: 1)
                connection.event(2, "2", id: "M2")
                connection.event(3, "new 3", id: "N3")
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        #expect(await Self.seen(5, from: client) == ["1", "2", "3", "reset", "new 3"])
        await client.close()
        #expect(await client.cursor == Cursor(epoch: 2, seq: 3))
        try await server.stop()
    }
}
