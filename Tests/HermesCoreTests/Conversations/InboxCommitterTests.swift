// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct InboxCommitterTests {
    private let store = FakeStore()
    private let time = ManualTime()
    private let devices: DeviceRegistry
    private let results = Collector<Result<SendReceipt, HermesError>>()

    init() async throws {
        devices = DeviceRegistry(time: time)
        try await addAccounts(3, to: store.base)
    }

    private func committer(_ limits: CommitLimits = CommitLimits()) -> InboxCommitter {
        InboxCommitter(store: store, devices: devices, time: time, limits: limits)
    }

    private func append(
        _ number: Int,
        from sender: Int32 = 1,
        to peer: Int32 = 2,
        bytes: Int = 1
    ) throws -> MessageAppend {
        let sender = try principal(sender)
        let draft = MessageDraft(
            conversation: .direct(between: sender.user, and: try user(peer)),
            clientID: "\(number)",
            content: MessageContent(bytes: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: bytes))
        )
        return MessageAppend(
            id: MessageID(high: UInt64(number), low: 0),
            draft: draft,
            sender: sender,
            sentAt: time.now(),
            expiresAt: time.now().advanced(by: .seconds(60)),
            recipients: [sender.user, try user(peer)]
        )
    }

    private func submit(_ numbers: Range<Int>, to committer: InboxCommitter) throws {
        for number in numbers {
            committer.submit(.append(try append(number)) { [results] in results.add($0) })
        }
    }

    private func clientIDs(_ results: [Result<SendReceipt, HermesError>]) -> [String?] {
        results.map { try? $0.get().clientID }
    }

    @Test func `a receipt counts the devices that get the message`() async throws {
        let committer = committer()
        let phones = try (0..<3).map { RecordingAttachment(try principal(2, "d\($0)")) }
        for phone in phones { devices.attach(phone) }
        devices.attach(RecordingAttachment(try principal(3)))
        committer.submit(.append(try append(1)) { [results] in results.add($0) })
        let receipt = try await results.next(1)[0].get()
        #expect(receipt.deviceCount == 3)
        await committer.shutdown()
        #expect(phones.allSatisfy { $0.calls.count == 1 })
    }

    @Test func `groups what waits and keeps the order`() async throws {
        let committer = committer(CommitLimits(maxBatch: 10))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<26, to: committer)
        #expect(committer.statistics.waiting == 26)
        store.letThrough(10)
        let results = await results.next(26)
        #expect(clientIDs(results) == (0..<26).map(String.init))
        #expect(store.batches.map(\.count) == [1, 10, 10, 5])
        await committer.shutdown()
        #expect(committer.statistics.operations == 26)
        #expect(committer.statistics.waiting == 0)
    }

    @Test func `a transaction that takes only a part leaves the rest to the next`() async throws {
        let committer = committer(CommitLimits(maxBatch: 10, acknowledgementDelay: .seconds(3600)))
        store.close()
        store.cut(to: 4)
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<11, to: committer)
        committer.acknowledge(try user(2), try device("phone"), upTo: 1)
        store.letThrough(1)
        #expect(clientIDs(await results.next(1)) == ["0"])
        // The first part has begun, and the second part will fail.
        await store.waitForCommit()
        store.fail(1)
        store.letThrough(1)
        // The first part contains an acknowledgement and three messages.
        #expect(clientIDs(await results.next(3)) == (1..<4).map(String.init))
        await store.waitForCommit()
        #expect(committer.statistics.waiting == 7)
        committer.acknowledge(try user(2), try device("phone"), upTo: 2)
        store.letThrough(1)
        // The other messages of a batch fail together with those that the store has tried.
        #expect(clientIDs(await results.next(7)) == Array(repeating: nil, count: 7))
        #expect(store.batches.map(\.count) == [1, 4, 4])
        #expect(committer.statistics.waiting == 0)
        store.letThrough(10)
        await committer.shutdown()
        guard case .acknowledge(_, _, upTo: 2, _) = store.batches.joined().reversed().first else {
            Issue.record("\(String(describing: store.batches.joined().reversed().first))")
            return
        }
    }

    @Test func `acknowledgements of a commit that fails are not lost`() async throws {
        let committer = committer(CommitLimits(maxBatch: 10, acknowledgementDelay: .seconds(3600)))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        committer.acknowledge(try user(2), try device("phone"), upTo: 1)
        try submit(1..<3, to: committer)
        // The first commit has begun.
        store.fail(1)
        store.letThrough(1)
        #expect(clientIDs(await results.next(1)) == ["0"])
        await store.waitForCommit()
        store.letThrough(1)
        #expect(clientIDs(await results.next(2)) == [nil, nil])
        store.letThrough(10)
        await committer.shutdown()
        #expect(store.batches.map(\.count) == [1, 3, 1])
        guard case .acknowledge(_, _, upTo: 1, _) = store.batches.last?.first else {
            Issue.record("\(store.batches)")
            return
        }
    }

    @Test func `acknowledgements of several transactions are all kept if one fails`() async throws {
        let committer = committer(CommitLimits(maxBatch: 10, acknowledgementDelay: .seconds(3600)))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        for name in ["a", "b", "c"] { committer.acknowledge(try user(2), try device(name), upTo: 1) }
        try submit(1..<2, to: committer)
        store.cut(to: 1)
        store.letThrough(1)
        #expect(clientIDs(await results.next(1)) == ["0"])
        // The first acknowledgement is under way. The next commit fails.
        await store.waitForCommit()
        store.fail(1)
        store.letThrough(2)
        #expect(clientIDs(await results.next(1)) == [nil])
        #expect(store.batches.map(\.count) == [1, 1, 1])
        store.letThrough(10)
        // The acknowledgements are tried again after a second.
        while store.batches.count < 6 { await Task.yield() }
        await committer.shutdown()
        var devices: Set<String> = []
        for case .acknowledge(_, let device, upTo: 1, _) in store.batches.dropFirst(3).joined() {
            devices.insert(device.rawValue)
        }
        #expect(devices == ["a", "b", "c"])
    }

    @Test func `a message waits for no more than one of many acknowledgements`() async throws {
        let committer = committer(CommitLimits(maxBatch: 10, acknowledgementDelay: .seconds(3600)))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        for number in 0..<100 { committer.acknowledge(try user(2), try device("d\(number)"), upTo: 1) }
        try submit(1..<3, to: committer)
        store.cut(to: 4)
        store.letThrough(2)
        #expect(clientIDs(await results.next(3)) == ["0", "1", "2"])
        #expect(store.batches.prefix(2).map(\.count) == [1, 4])
        store.letThrough(100)
        await committer.shutdown()
        #expect(store.batches.joined().count == 103)
    }

    @Test func `what comes while a transaction takes its operations joins it`() async throws {
        let committer = committer(CommitLimits(maxBatch: 10))
        store.whileTaking { try? self.submit(1..<4, to: committer) }
        try submit(0..<1, to: committer)
        #expect(clientIDs(await results.next(4)) == (0..<4).map(String.init))
        #expect(store.batches.map(\.count) == [4])
        await committer.shutdown()
    }

    @Test
    func `accounts take turns: a message does not wait for the many of another account`() async throws {
        let committer = committer(CommitLimits(maxBatch: 10))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<100, to: committer)
        committer.submit(.append(try append(500, from: 3)) { [results] in results.add($0) })
        store.letThrough(20)
        let done = clientIDs(await results.next(101))
        #expect(done.firstIndex(of: "500").map { $0 <= 11 } == true, "it is in the first batch after its submission")
        #expect(done.filter { $0 != "500" } == (0..<100).map(String.init), "an account's own keep their order")
        await committer.shutdown()
    }

    @Test
    func `one account does not use up the room of others`() async throws {
        let committer = committer(CommitLimits(maxWaiting: 24))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<50, to: committer)
        let refused = await results.next(46)
        #expect(refused.allSatisfy { (try? $0.get()) == nil })
        committer.submit(.append(try append(500, from: 3)) { [results] in results.add($0) })
        store.letThrough(10)
        #expect(Set(clientIDs(await results.next(5))) == ["0", "1", "2", "3", "500"])
        await committer.shutdown()
    }

    @Test func `refuses when too much waits`() async throws {
        // One account may use an eighth of this limit.
        let committer = committer(CommitLimits(maxWaiting: 24))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<6, to: committer)
        // The two messages beyond the limit are refused at once, before the others are completed.
        let refused = await results.next(2)
        for result in refused {
            guard case .failure(let error) = result else {
                Issue.record("was accepted")
                continue
            }
            #expect(error.code == .overloaded)
            #expect(error.retryAfter != nil)
        }
        store.letThrough(10)
        #expect(clientIDs(await results.next(4)) == ["0", "1", "2", "3"])
        try submit(6..<7, to: committer)
        #expect(clientIDs(await results.next(1)) == ["6"])
        await committer.shutdown()
    }

    @Test func `refuses when what waits is too large`() async throws {
        // Each message has a little more than half a kilobyte.
        let committer = committer(CommitLimits(maxWaitingBytes: 1024))
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<4, to: committer)
        for result in await results.next(2) {
            guard case .failure(let error) = result else {
                Issue.record("was accepted")
                continue
            }
            #expect(error.code == .overloaded)
        }
        store.letThrough(10)
        #expect(clientIDs(await results.next(2)) == ["0", "1"])
        try submit(4..<5, to: committer)
        #expect(clientIDs(await results.next(1)) == ["4"])
        await committer.shutdown()
    }

    @Test func `a failed commit fails its batch alone`() async throws {
        let committer = committer()
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        store.fail(1)
        try submit(1..<4, to: committer)
        store.letThrough(2)
        let first = await results.next(4)
        #expect(clientIDs(first) == ["0", nil, nil, nil])
        for result in first.dropFirst() {
            #expect(throws: HermesError.self) { try result.get() }
        }
        store.letThrough(1)
        try submit(4..<5, to: committer)
        #expect(clientIDs(await results.next(1)) == ["4"])
        #expect(committer.statistics.failedBatches == 1)
        #expect(try await store.position(of: user(2)).head == 2)
        store.letThrough(10)
        await committer.shutdown()
    }

    @Test func `a failure counts until a commit that is as large succeeds`() async throws {
        let committer = committer()
        func failure(after number: Int, bytes: Int) async throws -> CommitFailure? {
            committer.submit(.append(try append(number, bytes: bytes)) { [results] in results.add($0) })
            _ = await results.next(1)
            return committer.statistics.failure
        }
        #expect(try await failure(after: 0, bytes: 1_000) == nil)
        store.fail(1)
        #expect(try await failure(after: 1, bytes: 1_000)?.reason == "full")
        #expect(try await failure(after: 2, bytes: 1) != nil, "a full disk may have room for it")
        #expect(try await failure(after: 3, bytes: 1_000) == nil)
        await committer.shutdown()
    }

    @Test func `a small commit's failure does not replace a large one's, except after a while`() async throws {
        let committer = committer()
        func failure(after number: Int, bytes: Int) async throws -> CommitFailure? {
            committer.submit(.append(try append(number, bytes: bytes)) { [results] in results.add($0) })
            _ = await results.next(1)
            return committer.statistics.failure
        }
        store.fail(2)
        let large = try #require(try await failure(after: 0, bytes: 1_000))
        time.advance(by: CommitFailure.memory - .seconds(1))
        let small = try #require(try await failure(after: 1, bytes: 1))
        #expect(small.bytes == large.bytes && small.at == time.uptime())
        #expect(try await failure(after: 2, bytes: 1) != nil, "a full disk may have room for it")
        time.advance(by: CommitFailure.memory)
        store.fail(1)
        #expect(try await failure(after: 3, bytes: 1) != nil)
        #expect(try await failure(after: 4, bytes: 1) == nil, "the size of the old failure is forgotten")
        await committer.shutdown()
    }

    @Test func `a refused operation does not disturb the others`() async throws {
        let committer = committer()
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        committer.submit(.append(try append(1, to: 77)) { [results] in results.add($0) })
        try submit(2..<3, to: committer)
        store.letThrough(10)
        #expect(clientIDs(await results.next(3)) == ["0", nil, "2"])
        await committer.shutdown()
    }

    @Test func `shutdown commits what waits then refuses`() async throws {
        let committer = committer()
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<5, to: committer)
        async let first: Void = committer.shutdown()
        async let second: Void = committer.shutdown()
        store.letThrough(10)
        _ = await (first, second)
        #expect(clientIDs(await results.next(5)) == ["0", "1", "2", "3", "4"])
        try submit(5..<6, to: committer)
        guard case .failure(let error)? = await results.next(1).first else {
            Issue.record("was accepted")
            return
        }
        #expect(error.code == .shuttingDown)
        await committer.shutdown()
    }

    @Test func `acknowledgements are coalesced and ride along`() async throws {
        let committer = committer(CommitLimits(acknowledgementDelay: .seconds(3600)))
        try submit(0..<20, to: committer)
        _ = await results.next(20)
        for seq in [3, 9, 5] as [UInt64] { committer.acknowledge(try user(2), try device("phone"), upTo: seq) }
        try submit(20..<21, to: committer)
        _ = await results.next(1)
        await committer.shutdown()
        let acknowledged = store.batches.joined().compactMap { operation -> UInt64? in
            guard case .acknowledge(_, _, let seq, _) = operation else { return nil }
            return seq
        }
        #expect(acknowledged == [9])
        #expect(try await store.base.devices(of: user(2)).first?.cursor == 9)
    }

    @Test func `acknowledgements are committed when nothing else comes`() async throws {
        let committer = committer(CommitLimits(acknowledgementDelay: .milliseconds(1)))
        committer.acknowledge(try user(2), try device("phone"), upTo: 1)
        await store.waitForCommit()
        #expect(store.batches.map(\.count) == [1])
        await committer.shutdown()
    }

    @Test func `shutdown commits acknowledgements`() async throws {
        let committer = committer(CommitLimits(acknowledgementDelay: .seconds(3600)))
        committer.acknowledge(try user(2), try device("phone"), upTo: 1)
        await committer.shutdown()
        #expect(store.batches.map(\.count) == [1])
    }

    @Test func `delivers once for each attachment and batch`() async throws {
        let committer = committer()
        let attachments = try [principal(1), principal(1, "pad"), principal(2), principal(3)].map(
            RecordingAttachment.init
        )
        for attachment in attachments { devices.attach(attachment) }
        store.close()
        try submit(0..<1, to: committer)
        await store.waitForCommit()
        try submit(1..<9, to: committer)
        store.letThrough(10)
        _ = await results.next(9)
        await committer.shutdown()
        for attachment in attachments.prefix(3) {
            #expect(attachment.calls.map { $0.map(\.seq) } == [[1], [2, 3, 4, 5, 6, 7, 8, 9]])
        }
        #expect(attachments[3].calls.isEmpty)
    }

    @Test func `keeps the order of each of many threads`() async throws {
        let committer = committer()
        let completed = Collector<(thread: Int, number: Int)>()
        let operations = try (0..<4).map { thread in
            try (0..<500).map { try append(thread * 1000 + $0, from: Int32(thread % 2 + 1), to: 3) }
        }
        await withTaskGroup(of: Void.self) { group in
            for (thread, operations) in operations.enumerated() {
                group.addTask {
                    for (number, operation) in operations.enumerated() {
                        committer.submit(.append(operation) { _ in completed.add((thread, number)) })
                    }
                }
            }
        }
        await committer.shutdown()
        let all = await completed.next(2000)
        for thread in 0..<4 { #expect(all.filter { $0.thread == thread }.map(\.number) == Array(0..<500)) }
        #expect(try await store.position(of: user(3)).head == 2000)
    }
}
