// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

/// Cuts the power at many moments of a mixed load. `HERMES_POWERCUT_CUTS` sets the number of cuts (by default 20 for
/// each durability). `HERMES_POWERCUT_SEED` sets the seed that selects the moments.
@Suite("Power cuts", .inTurns)
struct PowerCutTests {
    /// The numbers that every commit advances.
    private struct Progress: Hashable, CustomStringConvertible {
        var head: UInt64 = 0
        var sessionHead: UInt64 = 0
        /// The number in the retained message.
        var retained = 0
        var groups = 0
        var accounts = 0

        var description: String {
            "\(head) messages, \(sessionHead) publications, retained \(retained), \(groups) groups, \(accounts) accounts"
        }
    }

    /// The acknowledged commits at a point of the record.
    private struct Mark {
        let position: Int
        let progress: Progress
    }

    private struct Record {
        let operations: [RecordingFiles.Operation]
        let marks: [Mark]
        let epoch: UInt64
        let people: [Principal]
        let session: DurableSessionID
    }

    @Test(arguments: SQLiteStore.Durability.allCases)
    func `what is promised is kept`(durability: SQLiteStore.Durability) async throws {
        let environment = ProcessInfo.processInfo.environment
        let cuts = environment["HERMES_POWERCUT_CUTS"].flatMap { Int($0) } ?? 20
        var random = SplitMix(state: environment["HERMES_POWERCUT_SEED"].flatMap { UInt64($0) } ?? 1)
        let directory = try TemporaryDirectory()
        let record = try await load(directory, durability)
        let first = try #require(record.marks.first).position
        let last = record.operations.count
        let places = (0..<cuts).map { _ in Int.random(in: first...last, using: &random) }.sorted()
        var image = DiskImage()
        var done = 0
        for place in places {
            for operation in record.operations[done..<place] { image.apply(operation) }
            done = place
            let left = try TemporaryDirectory()
            for (file, bytes) in image.afterCut(using: &random) {
                try Data(bytes).write(to: URL(fileURLWithPath: left.path + file.dropFirst(directory.path.count)))
            }
            try await check(left, record, at: place, durability)
        }
    }

    /// Runs a mixed load, and records it.
    private func load(_ directory: TemporaryDirectory, _ durability: SQLiteStore.Durability) async throws -> Record {
        var random = SplitMix(state: 7)
        RecordingFiles.start(directory.path)
        let store = try directory.openStore(durability: durability)
        let world = try await StoreWorld(store: store)
        let sessions = SessionWorld(store)
        let session = try sessions.open("kept", expiry: nil).id
        // The accounts and the session must be on the disk before the first cut. Without this checkpoint, the
        // durability `normal` may lose them.
        try await store.pool.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
        // The log is written back often, so that some cuts happen during a write-back.
        store.checkpointer.setStart(pages: 60)
        var progress = Progress(accounts: 2)
        var strangers: [UserID] = []
        var marks = [Mark(position: RecordingFiles.count, progress: progress)]
        for round in 0..<240 {
            switch Int.random(in: 0..<14, using: &random) {
            case 0:
                let name = StoreWorld.name("more\(round)")
                let account = try await store.create(
                    NewAccount(nickName: name, password: PasswordHash(phc: "")),
                    now: StoreWorld.now
                )
                strangers.append(account.id)
                progress.accounts += 1
            case 6 where !strangers.isEmpty:
                _ = try world.commit(.deleteAccount(strangers.removeFirst()))
                progress.accounts -= 1
            case 7...8:
                progress.retained += 1
                try sessions.change(.retain(sessions.publication("\(progress.retained)", topic: "kept")))
            case 9:
                _ = try world.commit(.group(.create(name: "g\(round)", members: []), by: world[0].user))
                progress.groups += 1
            case 1...2:
                try sessions.publish("\(progress.sessionHead + 1)", to: [session])
                progress.sessionHead += 1
                if round % 3 == 0 { try sessions.change(.completed(session, [progress.sessionHead])) }
            case 3:
                for person in 0...1 { try world.acknowledge(person, upTo: progress.head) }
            case 4:
                _ = try await store.purge(now: StoreWorld.now, limit: 50)
            case 5 where round % 4 == 0:
                try await store.maintain(uptime: .seconds(round * 100))
            default:
                let size = Int.random(in: 1...12, using: &random)
                let batch = (1...size).map { index in
                    let text = "\(progress.head + UInt64(index)) " + String(repeating: "x", count: round * 20)
                    return WriteOperation.append(world.message(text, from: 0, to: 1, clientID: "\(round) \(index)"))
                }
                _ = try store.commit(batch, now: StoreWorld.now)
                progress.head += UInt64(size)
            }
            marks.append(Mark(position: RecordingFiles.count, progress: progress))
        }
        let operations = RecordingFiles.stop()
        let epoch = store.epoch
        try store.close()
        return Record(operations: operations, marks: marks, epoch: epoch, people: world.people, session: session)
    }

    private func check(
        _ directory: TemporaryDirectory,
        _ record: Record,
        at place: Int,
        _ durability: SQLiteStore.Durability
    ) async throws {
        let store = try SQLiteStore.open(
            directory: directory.path,
            durability: durability,
            settings: StoreSettings(),
            bootID: "after",
            logger: TemporaryDirectory.silent
        )
        defer { try? store.close() }
        #expect(store.epoch != record.epoch, "clients are not told (cut at \(place))")
        let world = StoreWorld(store: store, people: record.people)
        let health = try await store.pool.read { try String.fetchOne($0, sql: "PRAGMA integrity_check(1)") }
        #expect(health == "ok", "cut at \(place)")

        // All data is in the state of the same moment.
        let position = try await store.position(of: world[1].user)
        let kept = try #require(try await store.sessions().first { $0.id == record.session })
        let found = Progress(
            head: position.head,
            sessionHead: kept.head - UInt64(StoreMark.sessionJump),
            retained: try await SessionWorld(store).retainedTexts().first.flatMap { Int($0) } ?? 0,
            groups: try await store.groups(of: world[0].user, after: nil, limit: 1000).count,
            accounts: try await store.accounts(after: nil, limit: 1000).count
        )
        let moment = record.marks.lastIndex { $0.progress == found }
        #expect(moment != nil, "half a commit: \(found) (cut at \(place))")
        if durability == .full, let moment {
            let told = try #require(record.marks.lastIndex { $0.position <= place })
            #expect(moment >= told, "\(found) of \(record.marks[told].progress) (cut at \(place))")
        }
        let page = try await store.entries(of: world[1].user, after: 0, limit: 1000)
        for entry in page.entries {
            guard case .message = entry.event else { continue }
            #expect(StoreWorld.summary(entry).hasPrefix("\(entry.seq):\(entry.seq) "))
        }
        // The store can still be used. The sender's inbox has an entry for each message and each group.
        let own = try await store.position(of: world[0].user).head
        #expect(own == found.head + UInt64(found.groups))
        #expect(try world.send("next", from: 0, to: 1).inboxSeq == own + 1)
        #expect(try await store.position(of: world[1].user).head == found.head + 1)
        let next = try SessionWorld(store).publish("next", to: [record.session])
        #expect(next == [found.sessionHead + UInt64(StoreMark.sessionJump) + 1])
    }
}
