// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesPush

extension PublicNames {
    fileprivate var isIdle: Bool { pending.isEmpty }
}

@Suite("Names of push services", .inTurns, .timeLimit(.minutes(1))) struct PublicNamesTests {
    /// A resolver with answers from the test. A lookup of a name without an answer waits until there is one.
    private final class Resolver: Sendable {
        private struct State {
            var asked: [String] = []
            var answers: [String: PublicNames.Lookup] = [:]
            var waiting: [String: [CheckedContinuation<PublicNames.Lookup, Never>]] = [:]
        }

        private let state = Mutex(State())
        private let (started, start) = AsyncStream<String>.makeStream()

        var asked: [String] { state.withLock { $0.asked } }

        func set(_ host: String, _ answer: PublicNames.Lookup) {
            let waiting = state.withLock { state in
                state.answers[host] = answer
                return state.waiting.removeValue(forKey: host) ?? []
            }
            for continuation in waiting { continuation.resume(returning: answer) }
        }

        @Sendable func lookUp(_ host: String) async -> PublicNames.Lookup {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state in
                    state.asked.append(host)
                    let answer = state.answers[host]
                    if answer == nil { state.waiting[host, default: []].append(continuation) }
                    return answer
                }
                start.yield(host)
                if let answer { continuation.resume(returning: answer) }
            }
        }

        /// Waits until `count` more lookups have begun.
        func untilStarted(_ count: Int) async {
            var left = count
            for await _ in started {
                left -= 1
                if left == 0 { return }
            }
        }

        /// Ends all waiting lookups.
        func release() {
            for host in state.withLock({ Array($0.waiting.keys) }) { set(host, .none) }
        }
    }

    private static let outside: PublicNames.Lookup = .found([[8, 8, 8, 8], [8, 8, 4, 4]])

    @Test func `an answer is used until it is old, and renewed without a wait`() async throws {
        let (resolver, time) = (Resolver(), ManualClock())
        let names = PublicNames(time: time, lookUp: resolver.lookUp)
        resolver.set("a.org", Self.outside)
        #expect(await names.address(of: "a.org", for: nil) == .address("8.8.8.8"))
        // The addresses rotate. A connection in use keeps its address, unless the connection cannot be made.
        resolver.set("a.org", .found([[8, 8, 4, 4], [8, 8, 8, 8]]))
        time.advance(by: .seconds(59))
        #expect(await names.address(of: "a.org", for: nil) == .address("8.8.8.8"))
        #expect(resolver.asked.count == 1)
        await names.unreachable("a.org", at: "8.8.8.8")
        #expect(await names.address(of: "a.org", for: nil) == .address("8.8.4.4"))
    }

    @Test func `a name that leads nowhere or inside is looked up once for many messages`() async throws {
        let (resolver, time) = (Resolver(), ManualClock())
        let names = PublicNames(time: time, lookUp: resolver.lookUp)
        resolver.set("no.org", .none)
        resolver.set("in.org", .found([[8, 8, 8, 8], [127, 0, 0, 1]]))
        for _ in 0..<10 {
            #expect(await names.address(of: "no.org", for: nil) == .nowhere(.zero))
            #expect(await names.address(of: "in.org", for: nil) == .nowhere(.zero))
        }
        #expect(resolver.asked == ["no.org", "in.org"])
        for hour in 1...24 {
            time.advance(by: .seconds(3600))
            #expect(await names.address(of: "no.org", for: nil) == .nowhere(.seconds(hour * 3600)))
        }
        resolver.set("no.org", Self.outside)
        time.advance(by: .seconds(3600))
        #expect(await names.address(of: "no.org", for: nil) == .address("8.8.8.8"))
    }

    @Test func `two answers with a long time between them say nothing of that time`() async throws {
        let (resolver, time) = (Resolver(), ManualClock())
        let names = PublicNames(time: time, lookUp: resolver.lookUp)
        resolver.set("no.org", .none)
        #expect(await names.address(of: "no.org", for: nil) == .nowhere(.zero))
        time.advance(by: .seconds(24 * 3600))
        #expect(await names.address(of: "no.org", for: nil) == .nowhere(.zero))
        // A remembered answer does not count as a new answer.
        time.advance(by: .seconds(250))
        #expect(await names.address(of: "no.org", for: nil) == .nowhere(.zero))
        time.advance(by: .seconds(6 * 3600 - 250))
        #expect(await names.address(of: "no.org", for: nil) == .nowhere(.seconds(6 * 3600)))
        // In between, the name had addresses.
        time.advance(by: .seconds(3600))
        resolver.set("no.org", Self.outside)
        #expect(await names.address(of: "no.org", for: nil) == .address("8.8.8.8"))
        time.advance(by: .seconds(2 * 3600))
        resolver.set("no.org", .none)
        #expect(await names.address(of: "no.org", for: nil) == .nowhere(.zero))
    }

    @Test func `failed connections change a host's address, and ask for it, at most twice a minute`() async throws {
        let (resolver, time) = (Resolver(), ManualClock())
        let names = PublicNames(time: time, lookUp: resolver.lookUp)
        resolver.set("a.org", Self.outside)
        guard case .address(var address) = await names.address(of: "a.org", for: nil) else {
            Issue.record("not found")
            return
        }
        var changes = 0
        for _ in 0..<600 {
            await names.unreachable("a.org", at: address)
            guard case .address(let next) = await names.address(of: "a.org", for: nil) else { continue }
            if next != address { changes += 1 }
            address = next
            while await !names.isIdle { await Task.yield() }
            time.advance(by: .milliseconds(100))
        }
        #expect(changes == 2)
        #expect(resolver.asked.count <= 3)
    }

    @Test func `a name that has led somewhere is asked again while others use every other lookup`() async throws {
        let (resolver, time) = (Resolver(), ManualClock())
        var settings = PublicNames.Settings()
        settings.lookups = (total: 3, kept: 1)
        settings.perAccount = (running: 1, waiting: 4)
        let names = PublicNames(settings: settings, time: time, lookUp: resolver.lookUp)
        let people = try (1...3).map { try #require(UserID(rawValue: $0)) }
        resolver.set("good.org", Self.outside)
        #expect(await names.address(of: "good.org", for: people[2]) == .address("8.8.8.8"))
        resolver.set("good.org", .found([[8, 8, 4, 4]]))
        time.advance(by: .seconds(61))
        await withDiscardingTaskGroup { group in
            for (index, person) in people.prefix(2).enumerated() {
                group.addTask { _ = await names.address(of: "slow\(index).org", for: person) }
            }
            // This count includes the very first lookup.
            await resolver.untilStarted(3)
            #expect(await names.address(of: "good.org", for: people[2]) == .address("8.8.8.8"), "the old one is used")
            while await names.address(of: "good.org", for: people[2]) != .address("8.8.4.4") { await Task.yield() }
            while await !names.isIdle {
                resolver.release()
                await Task.yield()
            }
        }
    }

    @Test func `slow names of some accounts leave room for the others`() async throws {
        let (resolver, time) = (Resolver(), ManualClock())
        var settings = PublicNames.Settings()
        settings.lookups = (total: 4, kept: 1)
        settings.perAccount = (running: 1, waiting: 4)
        let names = PublicNames(settings: settings, time: time, lookUp: resolver.lookUp)
        let strangers = try (1...2).map { try #require(UserID(rawValue: $0)) }
        let victim = try #require(UserID(rawValue: 9))
        resolver.set("good.org", Self.outside)
        await withDiscardingTaskGroup { group in
            for (index, stranger) in strangers.enumerated() {
                for number in 0..<10 {
                    group.addTask { _ = await names.address(of: "slow\(index)-\(number).org", for: stranger) }
                }
            }
            await resolver.untilStarted(2)
            #expect(await names.address(of: "good.org", for: victim) == .address("8.8.8.8"))
            // Each stranger has one lookup, and the victim has one.
            #expect(resolver.asked.count == 3)
            for _ in 0..<20 {
                resolver.release()
                await Task.yield()
            }
            group.cancelAll()
            while await !names.isIdle {
                resolver.release()
                await Task.yield()
            }
        }
    }

    @Test func `nobody waits longer than the deadline, and a slow name is not asked again at once`() async throws {
        let (resolver, time) = (Resolver(), ManualClock())
        var quick = PublicNames.Settings()
        quick.deadline = .milliseconds(1)
        let settings = quick
        let names = PublicNames(settings: settings, time: time, lookUp: resolver.lookUp)
        #expect(await names.address(of: "slow.org", for: nil) == .unknown(.seconds(30)))
        #expect(await names.address(of: "slow.org", for: nil) == .unknown(.seconds(30)))
        // The first lookup still runs.
        time.advance(by: .seconds(60))
        #expect(await names.address(of: "slow.org", for: nil) == .unknown(settings.deadline))
        #expect(resolver.asked.count == 1)
        resolver.release()
    }

    @Test func `a client connects to the address that was checked, whatever the name leads to`() async throws {
        let endpoint = try await FakeEndpoint.start { _, _ in .init(201) }
        let http = try PushFixtures.client()
        let port = try #require(endpoint.url.split(separator: ":").last)
        // The name does not exist, so it cannot be resolved again.
        let answer = try await http.post(
            "http://push.service.invalid:\(port)/x",
            over: .init(host: "push.service.invalid", address: "127.0.0.1"),
            headers: [],
            body: Data()
        )
        #expect(answer.status == 201)
        #expect(endpoint.received.first?.headers["host"] == "push.service.invalid:\(port)")
        await http.shutdown()
        await endpoint.stop()
    }

    @Test func `routes without requests are few`() async throws {
        let endpoint = try await FakeEndpoint.start { _, _ in .init(201) }
        let http = try PushFixtures.client()
        let port = try #require(endpoint.url.split(separator: ":").last)
        for number in 0..<70 {
            let host = "n\(number).service.invalid"
            _ = try await http.post(
                "http://\(host):\(port)/x",
                over: .init(host: host, address: "127.0.0.1"),
                headers: [],
                body: Data()
            )
        }
        #expect(http.routes.withLock { $0.clients.count } == 64)
        await http.shutdown()
        await endpoint.stop()
    }
}
