// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Hermes
import HermesGateways
import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore
@testable import HermesServer

/// The number of viewers, for people who watch a live room without an account.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct RoomAudienceTests {
    /// Counts the requests for a number.
    private final class Counter: Sendable {
        let asked = Mutex(0)

        @Sendable func count(_ room: RoomName) -> Int {
            asked.withLock { asked in
                asked += 1
                return asked
            }
        }
    }

    private static func audience(
        _ clock: ManualClock,
        _ counter: Counter,
        rules: String = "",
        isAnonymousAllowed: Bool = true
    ) throws -> RoomAudience {
        RoomAudience(
            isAnonymousAllowed: isAnonymousAllowed,
            access: TopicAccess(try TopicRules(parsing: rules)),
            uptime: { clock.uptime() },
            count: counter.count
        )
    }

    @Test func `a count serves everybody for two seconds`() async throws {
        let clock = ManualClock()
        let counter = Counter()
        let audience = try Self.audience(clock, counter)
        for _ in 0..<100 { #expect(await audience.viewers(of: .lobby) == .viewers(1)) }
        clock.advance(by: .milliseconds(1_999))
        #expect(await audience.viewers(of: .lobby) == .viewers(1))
        clock.advance(by: .milliseconds(1))
        #expect(await audience.viewers(of: .lobby) == .viewers(2))
        #expect(counter.asked.withLock { $0 } == 2)
    }

    @Test func `strangers who name many rooms cause a bounded number of counts`() async throws {
        let clock = ManualClock()
        let counter = Counter()
        let audience = try Self.audience(clock, counter)
        var busy = 0
        for second in 0..<10 {
            for number in 0..<2_000 {
                let room = try #require(RoomName("room-\(second)-\(number)"))
                if await audience.viewers(of: room) == .busy { busy += 1 }
            }
            clock.advance(by: .seconds(1))
        }
        let most = RoomAudience.burst + 9 * RoomAudience.rate
        #expect(counter.asked.withLock { $0 } == most && busy == 20_000 - most)
        // A number that is already known is still returned.
        #expect(await audience.viewers(of: .lobby) == .viewers(most + 1))
    }

    @Test func `who may not watch is told nothing, and nothing is counted`() async throws {
        let clock = ManualClock()
        let counter = Counter()
        let closed = try Self.audience(clock, counter, isAnonymousAllowed: false)
        #expect(await closed.viewers(of: .lobby) == .forbidden)
        let ruled = try Self.audience(clock, counter, rules: "deny anonymous read room/staff\n")
        let staff = try #require(RoomName("staff"))
        #expect(await ruled.viewers(of: staff) == .forbidden)
        #expect(counter.asked.withLock { $0 } == 0)
        #expect(await ruled.viewers(of: .lobby) == .viewers(1))
    }

    @Test func `whoever watches in a browser learns how many there are`() async throws {
        try await withServer { server in
            func get(_ room: String, _ method: String = "GET") async throws -> HTTPProbe.Answer {
                try await HTTPProbe.send(method, "/room/\(room)/viewers", port: server.port("http"))
            }
            let nobody = try await get("lobby")
            #expect(nobody.status == 200 && nobody.text == "{\"viewers\":0}")
            #expect(nobody.headers["content-type"] == "application/json")
            #expect(nobody.headers["cache-control"] == "no-store")
            #expect(nobody.headers["access-control-allow-origin"] == nil)
            let watchers = try (0..<3).map { try server.mqtt(as: nil, id: "watcher-\($0)") }
            for watcher in watchers {
                try await watcher.connect()
                try await watcher.subscribe(to: "room/hall", qos: .atMostOnce)
            }
            #expect(try await get("hall").text == "{\"viewers\":3}")
            for watcher in watchers { await watcher.close() }
            for bad in ["%2e%2e", "a%20b", "a%2Fb", String(repeating: "a", count: 65)] {
                #expect(try await get(bad).status == 400, "\(bad)")
            }
            #expect(try await get("lobby", "POST").status == 404)
        }
    }

    @Test func `where the operator wants accounts, nobody learns it without one`() async throws {
        func closed(_ settings: inout ServerSettings) { settings.http.listener.isAnonymousAllowed = false }
        try await withServer(configure: closed) { server in
            let answer = try await HTTPProbe.get("/room/lobby/viewers", port: server.port("http"))
            #expect(answer.status == 403 && answer.text == "{}")
        }
    }
}
#endif
