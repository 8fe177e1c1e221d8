// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct ConsoleSessionsTests {
    private let limits = ConsoleSessions.Limits(
        idle: .seconds(10),
        lifetime: .seconds(60),
        maxOfOne: 2,
        maxInAll: 3
    )

    private func name(_ text: String) throws -> AdministratorName { try AdministratorName(text) }

    @Test func `a session ends when it is not used, and what a page polls is no use`() throws {
        var sessions = ConsoleSessions(limits: limits)
        let token = sessions.begin(try name("ann"), .viewer, now: .zero).token.hash
        let used = sessions.session(token, isUse: true, now: .seconds(9))
        let polled = sessions.session(token, isUse: false, now: .seconds(18))
        let late = sessions.session(token, isUse: true, now: .seconds(19))
        #expect(used?.name.rawValue == "ann" && polled != nil && late == nil)
        #expect(sessions.count == 0)
    }

    @Test func `a session that is used all the time ends nevertheless`() throws {
        var sessions = ConsoleSessions(limits: limits)
        let token = sessions.begin(try name("ann"), .viewer, now: .zero).token.hash
        let alive = (1...60).map { sessions.session(token, isUse: true, now: .seconds($0)) != nil }
        #expect(alive == Array(repeating: true, count: 59) + [false])
    }

    @Test func `a further session takes the place of the administrator's oldest, and the table is bounded`() throws {
        var sessions = ConsoleSessions(limits: limits)
        let first = sessions.begin(try name("ann"), .viewer, now: .seconds(1)).token.hash
        let second = sessions.begin(try name("ann"), .viewer, now: .seconds(2)).token.hash
        let bob = sessions.begin(try name("bob"), .viewer, now: .seconds(3)).token.hash
        let third = sessions.begin(try name("ann"), .viewer, now: .seconds(4)).token.hash
        let alive = [first, second, bob, third].map { sessions.session($0, isUse: false, now: .seconds(4)) != nil }
        #expect(alive == [false, true, true, true])
        _ = sessions.begin(try name("eve"), .viewer, now: .seconds(5))
        #expect(sessions.count == 3)
    }

    @Test func `each session has a token and a request token of its own`() throws {
        var sessions = ConsoleSessions(limits: limits)
        let one = sessions.begin(try name("ann"), .viewer, now: .zero)
        let other = sessions.begin(try name("ann"), .viewer, now: .zero)
        #expect(one.token.hash != other.token.hash && one.session.requestToken != other.session.requestToken)
        #expect(one.session.requestToken != one.token.text)
        sessions.end(of: try name("ann"))
        #expect(sessions.count == 0)
    }

    @Test func `changes are limited, and come back with time`() throws {
        var sessions = ConsoleSessions()
        let token = sessions.begin(try name("ann"), .operator, now: .zero).token.hash
        let atOnce = (0..<100).count { _ in sessions.mayChange(token, now: .zero) }
        #expect(atOnce == Int(ConsoleSessions.changeBurst))
        let later = (0..<2).map { _ in sessions.mayChange(token, now: .seconds(1)) }
        #expect(later == [true, false])
    }
}
