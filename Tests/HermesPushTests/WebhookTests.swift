// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesCore
import HermesTestKit
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HermesPush

@Suite("Webhooks", .inTurns, .timeLimit(.minutes(1)))
struct WebhookTests {
    private typealias Answer = @Sendable (FakeEndpoint.Request, Int) -> FakeEndpoint.Answer

    private static let secret = "a secret of some length"

    private struct World {
        let clock = ManualClock(now: PushFixtures.now)
        let store = MemoryStore()
        let outbox: WebhookOutbox
        let poster: WebhookPoster
        let folder: PushFixtures.Folder
        private let configuration: WebhookPoster.Configuration
        private let http: PushHTTPClient

        init(
            _ url: String,
            http: PushHTTPClient,
            folder: PushFixtures.Folder,
            limit: Int = 1_000,
            backoff: Backoff? = nil
        ) throws {
            self.folder = folder
            let secretFile = try folder.write("secret", WebhookTests.secret + "\n")
            var configuration = WebhookPoster.Configuration(url: url, secretFile: secretFile, concurrency: 4)
            if let backoff { configuration.backoff = backoff }
            outbox = WebhookOutbox(store: store, kinds: [.online, .offline], limit: limit, time: clock)
            poster = try WebhookPoster(configuration, outbox: outbox, http: http, time: clock)
            self.configuration = configuration
            self.http = http
        }

        /// Returns the poster of a server that has just started. Its clock is not confirmed yet, so it does not follow
        /// a jump ahead.
        func restarted() throws -> WebhookPoster {
            try WebhookPoster(configuration, outbox: outbox, http: http, time: SteadyTime(clock))
        }

        func note(_ users: Int32...) async throws {
            for user in users { outbox.note(.online(try #require(UserID(rawValue: user)))) }
            await outbox.flush()
        }
    }

    private func withWorld(
        limit: Int = 1_000,
        backoff: Backoff? = nil,
        answer: @escaping Answer = { _, _ in .init(204) },
        _ body: (World, FakeEndpoint) async throws -> Void
    ) async throws {
        let folder = try PushFixtures.Folder()
        let endpoint = try await FakeEndpoint.start(answer: answer)
        let http = try PushFixtures.client()
        let result: Result<Void, any Error>
        do {
            let world = try World(endpoint.url + "/hook", http: http, folder: folder, limit: limit, backoff: backoff)
            try await body(world, endpoint)
            result = .success(())
        } catch { result = .failure(error) }
        await http.shutdown()
        await endpoint.stop()
        try result.get()
    }

    private static func users(_ requests: [FakeEndpoint.Request]) throws -> [Int] {
        try requests.compactMap { try PushFixtures.json($0.body)["user"] as? Int }
    }

    @Test(arguments: [200, 500])
    func `an answer that never ends is over after the time for a request`(status: Int) async throws {
        let endpoint = try await FakeEndpoint.start { _, _ in
            var answer = FakeEndpoint.Answer(status, body: "some")
            answer.isEndless = true
            return answer
        }
        let http = try PushHTTPClient(group: NIOSingletons.posixEventLoopGroup, timeout: .seconds(2))
        let start = ContinuousClock.now
        let answer: Result<PushHTTPClient.Answer, any Error>
        do { answer = .success(try await http.post(endpoint.url, headers: [], body: Data())) } catch {
            answer = .failure(error)
        }
        #expect(start.duration(to: .now) < .seconds(20))
        // A client that is not shut down ends the process.
        await http.shutdown()
        await endpoint.stop()
        if status == 200 {
            let answer = try answer.get()
            #expect(answer.status == 200 && String(decoding: answer.body, as: UTF8.self).hasPrefix("somex"))
        } else {
            #expect(throws: (any Error).self) { try answer.get() }
        }
    }

    @Test(arguments: ["HTTP/1.1 103 Early Hints\r\n\r\n", "x-more: text\r\n"])
    func `an answer whose head never ends is not read for long`(_ part: String) async throws {
        let channel = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Flood(String(repeating: part, count: 4096)))
                }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let http = try PushHTTPClient(group: NIOSingletons.posixEventLoopGroup, timeout: .seconds(30))
        let start = ContinuousClock.now
        await #expect(throws: (any Error).self) {
            try await http.post("http://127.0.0.1:\(channel.localAddress?.port ?? 0)/", headers: [], body: Data())
        }
        #expect(ContinuousClock.now - start < .seconds(10))
        await http.shutdown()
        try await channel.close()
    }

    /// Answers a request with text that never ends.
    private final class Flood: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let text: String

        init(_ text: String) { self.text = text }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if !text.hasPrefix("HTTP") {
                context.write(wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 200 OK\r\n")), promise: nil)
            }
            more(context)
        }

        private func more(_ context: ChannelHandlerContext) {
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text))).whenSuccess {
                let (handler, context) = bound.value
                handler.more(context)
            }
        }
    }

    @Test
    func `of several nodes, the one on duty posts, and the next one once it has gone`() async throws {
        let (folder, store, time) = (try PushFixtures.Folder(), MemoryStore(), ManualClock())
        let endpoint = try await FakeEndpoint.start { _, _ in .init(204) }
        let http = try PushFixtures.client()
        let network = MemoryNetwork()
        var nodes: [(messenger: Messenger, outbox: WebhookOutbox, poster: WebhookPoster)] = []
        for number in UInt8(0)...1 {
            let node = try await store.join(try #require(NodeID(rawValue: number)))
            let messenger = Messenger(
                accountStore: store,
                messageStore: store,
                socialStore: store,
                sessionStore: store,
                pushTokenStore: store,
                time: time,
                bus: network.bus(of: node),
                placeStore: store
            )
            try await messenger.load()
            let outbox = WebhookOutbox(
                store: store,
                kinds: [.online],
                limit: 10,
                time: time,
                cluster: messenger.cluster
            )
            let poster = try WebhookPoster(
                .init(url: endpoint.url + "/hook", secretFile: try folder.write("secret", Self.secret)),
                outbox: outbox,
                http: http,
                time: time
            )
            nodes.append((messenger, outbox, poster))
        }
        // The two nodes find each other.
        for _ in 0..<2 {
            network.settle()
            for node in nodes { await node.messenger.cluster?.work() }
        }
        try await nodes[1].outbox.append([.online(try #require(UserID(rawValue: 7)))], marks: [:])
        let posting = Task { [poster = nodes[1].poster] in await poster.run() }
        try await Task.sleep(for: .milliseconds(300))
        #expect(endpoint.received.isEmpty)
        await nodes[0].messenger.cluster?.leave()
        time.advance(by: .seconds(1))
        await nodes[1].messenger.cluster?.work()
        while endpoint.received.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        #expect(try Self.users(endpoint.received) == [7])
        posting.cancel()
        await posting.value
        for node in nodes { await node.messenger.shutdown() }
        await http.shutdown()
        await endpoint.stop()
    }

    @Test
    func `an event is posted as JSON with a signature that the receiver can check`() async throws {
        try await withWorld { world, endpoint in
            try await world.note(7)
            #expect(try await world.poster.postDue() == .init(posted: 1, failed: 0))
            let request = try #require(endpoint.received.first)
            #expect(request.path == "/hook")
            #expect(request.headers["content-type"] == "application/json")
            let body = try PushFixtures.json(request.body)
            #expect(body["type"] as? String == "online")
            #expect(body["user"] as? Int == 7)
            #expect(body["time"] as? Int == 1_800_000_000_000)
            #expect((body["id"] as? String)?.count == 26)
            #expect(body["id"] as? String == request.headers["hermes-event-id"])
            let signed = Data("1800000000.".utf8) + Data(request.body)
            let key = SymmetricKey(data: Data(Self.secret.utf8))
            let code = HMAC<SHA256>.authenticationCode(for: signed, using: key).map { String(format: "%02x", $0) }
            #expect(request.headers["hermes-signature"] == "t=1800000000,v1=\(code.joined())")
            #expect(try await world.store.webhookQueue().count == 0)
        }
    }

    @Test
    func `the signature has the time of a clock that was set ahead, or back, at once`() async throws {
        try await withWorld { world, endpoint in
            let poster = try world.restarted()
            try await world.note(7)
            world.clock.jump(by: .seconds(1_200))
            #expect(try await poster.postDue() == .init(posted: 1, failed: 0))
            world.clock.jump(by: .seconds(-1_200))
            try await world.note(7)
            #expect(try await poster.postDue() == .init(posted: 1, failed: 0))
            let signatures = endpoint.received.map { $0.headers["hermes-signature"] ?? "" }
            #expect(signatures.map { $0.prefix { $0 != "," } } == ["t=1800001200", "t=1800000000"])
        }
    }

    @Test
    func `a secret file that becomes unusable after the start changes nothing`() async throws {
        try await withWorld { world, endpoint in
            _ = try world.folder.write("secret", "short")
            #expect(throws: PushConfigurationError.self) { try world.restarted() }
            try await world.note(7)
            #expect(try await world.poster.postDue() == .init(posted: 1, failed: 0))
            let request = try #require(endpoint.received.first)
            let signature = WebhookSignature.value(
                Array(request.body),
                secret: SymmetricKey(data: Data(Self.secret.utf8)),
                now: PushFixtures.now
            )
            #expect(request.headers["hermes-signature"] == signature)
        }
    }

    @Test
    func `the signature is the one that openssl computes`() {
        let value = WebhookSignature.value(
            Array("{}".utf8),
            secret: SymmetricKey(data: Data("whsec_0123456789abcdef".utf8)),
            now: Timestamp(rawValue: 1_700_000_000_999)
        )
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac whsec_0123456789abcdef
        #expect(value == "t=1700000000,v1=d0c329a0542d1a8e66b0b5503cf2d2f8f8e174c98224b843c11f74ea14c341e9")
    }

    @Test
    func `what fails is posted again with the same id, in the user's order, later each time`() async throws {
        let failing: Answer = { _, count in .init(count <= 2 ? 500 : 200) }
        try await withWorld(answer: failing) { world, endpoint in
            try await world.note(1, 1)
            for expected in [0, 0, 2] {
                #expect(try await world.poster.postDue().posted == expected)
                #expect(try await world.poster.postDue() == .init(posted: 0, failed: 0), "not before its time")
                world.clock.advance(by: .seconds(10))
            }
            let ids = endpoint.received.compactMap { $0.headers["hermes-event-id"] }
            #expect(ids.count == 4)
            #expect(Set(ids.prefix(3)).count == 1)
            #expect(ids[3] > ids[2])
            #expect(world.poster.statistics.posted == 2)
            #expect(world.poster.statistics.failed == 2)
        }
    }

    @Test
    func `an event is taken with the status, however long the answer is`() async throws {
        let long = String(repeating: "x", count: 1 << 20)
        let answer: Answer = { _, _ in .init(200, body: long) }
        try await withWorld(answer: answer) { world, _ in
            try await world.note(1)
            #expect(try await world.poster.postDue() == .init(posted: 1, failed: 0))
            world.clock.advance(by: .seconds(3600))
            #expect(try await world.poster.postDue() == .init(posted: 0, failed: 0))
        }
    }

    @Test
    func `one user's trouble is not another's`() async throws {
        let failing: Answer = { request, _ in
            let isFirst =
                String(decoding: request.body, as: UTF8.self).contains("\"user\":1,")
                || String(decoding: request.body, as: UTF8.self).contains("\"user\":1}")
            return .init(isFirst ? 500 : 200)
        }
        try await withWorld(answer: failing) { world, endpoint in
            try await world.note(1, 2, 1, 3)
            #expect(try await world.poster.postDue() == .init(posted: 2, failed: 1))
            #expect(try Self.users(endpoint.received).sorted() == [1, 2, 3])
        }
    }

    @Test
    func `an event that takes its time holds up no other user's; later events of its user wait for it`() async throws {
        let slow: Answer = { request, _ in
            var answer = FakeEndpoint.Answer(200)
            answer.isEndless = (try? Self.users([request])) == [1]
            return answer
        }
        try await withWorld(answer: slow) { world, endpoint in
            let posting = Task { [poster = world.poster] in await poster.run() }
            let start = ContinuousClock.now
            try await world.note(1)
            _ = await endpoint.requests(1)
            try await world.note(1, 2, 3)
            let requests = await endpoint.requests(3)
            #expect(ContinuousClock.now - start < .seconds(8))
            #expect(try Self.users(requests).sorted() == [1, 2, 3])
            try await Task.sleep(for: .seconds(2))
            #expect(endpoint.received.count == 3)
            posting.cancel()
            await posting.value
        }
    }

    @Test
    func `after a failure, the waiting events of a slow user hold up no other user's`() async throws {
        let trouble: Answer = { request, _ in
            let users = try? Self.users([request])
            var answer = FakeEndpoint.Answer(users == [1] ? 500 : 200)
            answer.isEndless = users == [2]
            return answer
        }
        try await withWorld(answer: trouble) { world, endpoint in
            let posting = Task { [poster = world.poster] in await poster.run() }
            try await world.note(1)
            _ = await endpoint.requests(1)
            let start = ContinuousClock.now
            // The slow user has as many events as the poster posts at a time after a failure.
            try await world.note(2, 2, 2, 2, 3)
            let requests = await endpoint.requests(3)
            #expect(ContinuousClock.now - start < .seconds(8))
            #expect(try Self.users(requests).sorted() == [1, 2, 3])
            posting.cancel()
            await posting.value
        }
    }

    @Test
    func `the wait after a failure begins when the attempt has ended`() async throws {
        let clock = Mutex<ManualClock?>(nil)
        let slow: Answer = { _, _ in
            let present = clock.withLock { $0 }
            present?.advance(by: .seconds(20))
            return .init(503, headers: ["retry-after": "30"])
        }
        try await withWorld(answer: slow) { world, _ in
            clock.withLock { $0 = world.clock }
            try await world.note(1)
            #expect(try await world.poster.postDue() == .init(posted: 0, failed: 1))
            world.clock.advance(by: .seconds(30))
            #expect(try await world.poster.postDue() == .init(posted: 0, failed: 0), "not before its time")
            world.clock.advance(by: .seconds(2))
            #expect(try await world.poster.postDue() == .init(posted: 0, failed: 1))
        }
    }

    @Test
    func `an event that is always refused does not hold up another user's for long`() async throws {
        let failing: Answer = { request, _ in
            .init(String(decoding: request.body, as: UTF8.self).contains("\"user\":1,") ? 403 : 200)
        }
        let slow = Backoff(base: .seconds(600), limit: .seconds(600))
        try await withWorld(backoff: slow, answer: failing) { world, endpoint in
            let posting = Task { [poster = world.poster] in await poster.run() }
            try await world.note(1)
            _ = await endpoint.requests(1)
            let start = ContinuousClock.now
            try await world.note(2)
            #expect(try Self.users(await endpoint.requests(2)) == [1, 2])
            #expect(ContinuousClock.now - start < .seconds(60))
            posting.cancel()
            await posting.value
        }
    }

    @Test
    func `where nobody is there time alone is waited for, whatever comes meanwhile`() {
        var failures = 0
        for expected in 1...3 {
            #expect(WebhookPoster.pause(after: .init(posted: 0, failed: 2), failures: &failures) == .backOff)
            #expect(failures == expected)
        }
        #expect(WebhookPoster.pause(after: .init(posted: 1, failed: 2), failures: &failures) == .none)
        #expect(failures == 0)
        #expect(WebhookPoster.pause(after: .init(posted: 0, failed: 0), failures: &failures) == .untilStored)
    }

    @Test
    func `after a day an event is given up, and counted`() async throws {
        let failing: Answer = { _, _ in .init(500) }
        try await withWorld(answer: failing) { world, endpoint in
            try await world.note(1)
            _ = try await world.poster.postDue()
            world.clock.advance(by: .seconds(24 * 3600))
            _ = try await world.poster.postDue()
            #expect(endpoint.received.count == 1)
            #expect(world.poster.statistics.givenUp == 1)
            #expect(try await world.store.webhookQueue().count == 0)
        }
    }

    @Test
    func `a server that starts with its clock ahead gives up no event of an earlier run`() async throws {
        let failing: Answer = { _, _ in .init(500) }
        try await withWorld(answer: failing) { world, endpoint in
            try await world.note(1)
            world.clock.jump(by: .seconds(25 * 3600))
            let later = try world.restarted()
            #expect(try await later.postDue() == .init(posted: 0, failed: 1))
            #expect(endpoint.received.count == 1)
            #expect(later.statistics.givenUp == 0)
            #expect(try await world.store.webhookQueue().count == 1)
            // From now on the clock is confirmed.
            world.clock.advance(by: .seconds(600))
            _ = try await later.postDue()
            #expect(endpoint.received.count == 1)
            #expect(later.statistics.givenUp == 1)
            #expect(try await world.store.webhookQueue().count == 0)
        }
    }

    @Test
    func `the queue is bounded: the oldest go, and are counted`() async throws {
        try await withWorld(limit: 3) { world, endpoint in
            try await world.note(1, 2, 3, 4, 5)
            #expect(world.outbox.statistics.dropped == 2)
            _ = try await world.poster.postDue()
            #expect(try Self.users(endpoint.received).sorted() == [3, 4, 5])
        }
    }

    @Test
    func `what is not asked for is not queued`() async throws {
        try await withWorld { world, _ in
            let user = try #require(UserID(rawValue: 1))
            try await world.outbox.append(
                [
                    .messageUndelivered(
                        user,
                        InboxEntry(seq: 1, committedAt: PushFixtures.now, event: .expired(through: 1))
                    )
                ],
                marks: [:]
            )
            #expect(try await world.store.webhookQueue().count == 0)
        }
    }

    @Test
    func `it runs by itself, and ends when it is cancelled`() async throws {
        try await withWorld { world, endpoint in
            await withDiscardingTaskGroup { group in
                group.addTask { await world.outbox.run() }
                group.addTask { await world.poster.run() }
                if let user = UserID(rawValue: 9) { world.outbox.note(.offline(user)) }
                _ = await endpoint.requests(1)
                group.cancelAll()
            }
            let users = try Self.users(endpoint.received)
            #expect(users.first == 9)
        }
    }

    @Test
    func `a URL or a secret that cannot be used stops the start`() async throws {
        let folder = try PushFixtures.Folder()
        let http = try PushFixtures.client()
        let short = try folder.write("short", "short")
        let outbox = WebhookOutbox(store: MemoryStore(), kinds: [], limit: 1, time: ManualClock())
        for (url, file, key) in [
            ("ftp://example.org", "", "webhooks.url"), ("https://", "", "webhooks.url"),
            ("https://example.org", short, "webhooks.secretFile"),
            ("https://example.org", folder.path + "/missing", "webhooks.secretFile"),
        ] {
            let error = #expect(throws: PushConfigurationError.self) {
                try WebhookPoster(.init(url: url, secretFile: file), outbox: outbox, http: http, time: ManualClock())
            }
            #expect(error?.key == key)
        }
        await http.shutdown()
    }
}
