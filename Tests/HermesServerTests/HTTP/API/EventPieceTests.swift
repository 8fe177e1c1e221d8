// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesServer

@Suite("What is written to the reader of a stream at once")
struct EventPieceTests {
    private static let chunkBytes = 64 << 10

    /// A stream for which many pieces wait.
    private static func stream(_ isAllowed: (@Sendable () -> Bool)?) throws -> EventStream {
        let stream = EventStream(
            APIKey(id: 1, name: "key", scopes: [], createdAt: Timestamp(rawValue: 0)),
            topics: [],
            kinds: [.online],
            settings: EventSettings { $0.maxQueuedBytes = 64 << 20 },
            allowance: EventAllowance(perSecond: 1_000_000, now: .zero),
            memory: EventMemory(limit: .max),
            metrics: EventMetrics(),
            time: StandingTime(),
            isAllowed: isAllowed
        )
        let user = try #require(UserID(rawValue: 1))
        for _ in 0..<10_000 { stream.take(.notice(.online(user)), at: Timestamp(rawValue: 1)) }
        return stream
    }

    @Test(arguments: [false, true])
    func `a watcher whose session ends between two pieces gets no more, also while the server stops`(
        _ isStopping: Bool
    ) async throws {
        let isAllowed = Atomic(true)
        let stream = try Self.stream { isAllowed.load(ordering: .relaxed) }
        var rest = EventStream.Rest(await stream.next())
        let first = stream.nextPiece(of: &rest)
        #expect(first?.text.readableBytes ?? 0 >= Self.chunkBytes)
        if isStopping { stream.end(.serverStopping) }
        let second = stream.nextPiece(of: &rest)
        #expect(second?.text.readableBytes ?? 0 >= Self.chunkBytes && !rest.events.isEmpty)
        isAllowed.store(false, ordering: .relaxed)
        let third = stream.nextPiece(of: &rest)
        #expect(third == nil)
        let end: StreamEnd = isStopping ? .serverStopping : .keyRevoked
        #expect(await stream.next().end == end)
    }

    @Test
    func `a reader whose key is revoked between two pieces gets no more`() async throws {
        let stream = try Self.stream(nil)
        var rest = EventStream.Rest(await stream.next())
        let first = stream.nextPiece(of: &rest)
        #expect(first != nil && !rest.events.isEmpty)
        stream.end(.keyRevoked)
        let second = stream.nextPiece(of: &rest)
        #expect(second == nil)
        #expect(await stream.next().end == .keyRevoked)
    }
}
