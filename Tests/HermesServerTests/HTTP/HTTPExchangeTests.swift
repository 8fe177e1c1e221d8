// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOHTTP1
import Testing

@testable import HermesServer

/// The events of one connection of the HTTP port.
@Suite struct HTTPExchangeTests {
    private static func head(
        _ fields: HTTPHeaders = [:],
        uri: String = "/",
        version: HTTPVersion = .http1_1
    ) -> HTTPRequestHead {
        var headers = fields
        if version == .http1_1, !headers.contains(name: "host") { headers.add(name: "host", value: "localhost") }
        return HTTPRequestHead(version: version, method: .POST, uri: uri, headers: headers)
    }

    private func exchange() -> HTTPExchange { HTTPExchange(now: .zero) }

    @Test func `the first head has five seconds from the connection on, whatever comes of it`() {
        var exchange = exchange()
        exchange.bytesArrived(now: .seconds(4))
        exchange.bytesArrived(now: .seconds(4.9))
        #expect(exchange.deadlineReached(now: .seconds(4.9)) == .wait(until: .seconds(5)))
        guard case .say(let word) = exchange.deadlineReached(now: .seconds(5)) else {
            Issue.record("not late")
            return
        }
        #expect(word.status == .requestTimeout)
        #expect(exchange.ended(now: .seconds(5)) == .now)
        #expect(!exchange.isReading)
        #expect(exchange.ended(now: .seconds(6)) == .nothing)
    }

    @Test func `who says nothing is closed without a word`() {
        #expect(exchange().deadlineReached(now: .seconds(5)) == .close)
    }

    @Test func `between requests a connection may be idle, and a further head has its five seconds`() throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(), now: .seconds(1))
        exchange.endReceived(now: .seconds(1))
        #expect(exchange.owed == 1)
        #expect(exchange.deadline == .seconds(61))
        exchange.answerBegan()
        #expect(exchange.answered(now: .seconds(2)) == false)
        #expect(exchange.deadlineReached(now: .seconds(31.9)) == .wait(until: .seconds(32)))
        #expect(exchange.deadlineReached(now: .seconds(32)) == .close)
        exchange.bytesArrived(now: .seconds(20))
        #expect(exchange.deadline == .seconds(25))
    }

    @Test func `a head that begins just before the end of the idle time has its five seconds, too`() throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(), now: .seconds(1))
        exchange.endReceived(now: .seconds(1))
        #expect(exchange.answered(now: .seconds(2)) == false)
        exchange.bytesArrived(now: .seconds(31.9))
        #expect(exchange.deadlineReached(now: .seconds(32)) == .wait(until: .seconds(36.9)))
    }

    @Test func `a body must come in time, and is limited however its length is told`() throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(), now: .zero)
        guard case .say(let word) = exchange.deadlineReached(now: .seconds(20)) else {
            Issue.record("not late")
            return
        }
        #expect(word.status == .requestTimeout)
        try exchange.bodyReceived(2 << 20)
        #expect(throws: HTTPExchange.LastWord.self) { try exchange.bodyReceived(1) }
        // The error that was thrown is sent instead of the answer.
        #expect(exchange.ended(now: .seconds(1)) == .now)
        #expect(exchange.owed == 0)
    }

    @Test func `what is refused waits for the answers before it, and is not said into one that has begun`() throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(), now: .zero)
        exchange.endReceived(now: .zero)
        #expect(exchange.ended(now: .zero) == .afterAnswers)
        #expect(exchange.answered(now: .zero) == true)
        var second = self.exchange()
        try second.headReceived(Self.head(), now: .zero)
        second.endReceived(now: .zero)
        try second.headReceived(Self.head(), now: .zero)
        #expect(second.ended(now: .zero) == .afterAnswers)
        #expect(second.owed == 1)
        var begun = self.exchange()
        try begun.headReceived(Self.head(), now: .zero)
        begun.answerBegan()
        #expect(begun.ended(now: .zero) == .nothing)
        var answered = self.exchange()
        try answered.headReceived(Self.head(), now: .zero)
        answered.answerBegan()
        #expect(answered.answered(now: .zero) == false)
        #expect(answered.ended(now: .zero) == .nothing)
    }

    @Test func `a peer that takes nothing of its answer is closed`() throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(), now: .zero)
        exchange.endReceived(now: .zero)
        exchange.answerMoved(now: .seconds(50))
        #expect(exchange.deadlineReached(now: .seconds(60)) == .wait(until: .seconds(110)))
        #expect(exchange.deadlineReached(now: .seconds(110)) == .close)
    }

    @Test(arguments: [["connection": "close"], ["upgrade": "h2c", "connection": "upgrade"]] as [HTTPHeaders])
    func `the last request is the last`(_ fields: HTTPHeaders) throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(fields), now: .zero)
        exchange.endReceived(now: .zero)
        #expect(!exchange.isReading)
        #expect(exchange.endsAfterAnswers)
        #expect(exchange.answered(now: .zero) == true)
    }

    @Test func `a server that stops answers what was begun`() throws {
        var idle = exchange()
        #expect(idle.stop() == true)
        var busy = exchange()
        try busy.headReceived(Self.head(), now: .zero)
        #expect(busy.stop() == false)
        busy.endReceived(now: .zero)
        #expect(busy.answered(now: .zero) == true)
    }

    @Test func `only who announces a body is told to continue, and once`() throws {
        func isTold(_ head: HTTPRequestHead) throws -> Bool {
            var exchange = exchange()
            try exchange.headReceived(head, now: .zero)
            let isTold = exchange.tellsToContinue(now: .zero)
            #expect(exchange.tellsToContinue(now: .zero) == false)
            return isTold
        }
        #expect(try isTold(Self.head(["expect": "100-continue", "content-length": "1"])))
        #expect(try isTold(Self.head(["expect": "100-Continue", "transfer-encoding": "chunked"])))
        #expect(try !isTold(Self.head(["expect": "100-continue"])))
        #expect(try !isTold(Self.head(["expect": "100-continue", "content-length": "0"])))
        #expect(try !isTold(Self.head(["expect": "more", "content-length": "1"])))
        #expect(try !isTold(Self.head(["content-length": "1"])))
        #expect(try !isTold(Self.head(["expect": "100-continue", "content-length": "1"], version: .http1_0)))
    }

    @Test(arguments: [0, 1])
    func `who asks behind an owed answer is told to continue after it, unless the body has begun`(
        received: Int
    ) throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(), now: .zero)
        exchange.endReceived(now: .zero)
        try exchange.headReceived(Self.head(["expect": "100-continue", "content-length": "1"]), now: .zero)
        #expect(exchange.tellsToContinue(now: .zero) == false)
        try exchange.bodyReceived(received)
        exchange.answerBegan()
        #expect(exchange.answered(now: .zero) == false)
        let isTold = exchange.tellsToContinue(now: .seconds(5))
        #expect(isTold == (received == 0))
        #expect(exchange.readDeadline == .seconds(isTold ? 25 : 20))
    }

    private static let broken: [(HTTPHeaders, UInt)] = [
        (["host": "a, b"], 400), (["host": "a/b"], 400), (["host": "u@a"], 400),
        (["content-length": "+1"], 400), (["content-length": "0x1"], 400), (["content-length": "-1"], 400),
        (["content-length": "1, 1"], 400), (["content-length": "99999999999999999999"], 400),
        (["content-length": "2097153"], 413), (["transfer-encoding": "chunked", "content-length": "1"], 400),
        (["transfer-encoding": "gzip, chunked"], 501), (["transfer-encoding": "identity"], 501),
    ]

    private static let heads: [(HTTPRequestHead, UInt)] = {
        var heads = broken.map { (head($0.0), $0.1) }
        for (name, status) in [("host", 400), ("content-length", 400), ("transfer-encoding", 501)] as [(String, UInt)] {
            let value = name == "transfer-encoding" ? "chunked" : "1"
            heads.append((head(HTTPHeaders([(name, value), (name, value)])), status))
        }
        // Comparing these names would take quadratic time.
        let marks = String(repeating: "\u{301}\u{323}", count: 2_000)
        for name in ["host", "if-none-match", "authorization", "accept-encoding", "origin"] {
            heads.append((head([name: marks]), 400))
        }
        heads.append((head(uri: "/" + marks), 400))
        heads.append((head(uri: "/" + String(repeating: "%CC%81%CC%A3", count: 2_000)), 400))
        heads.append((head(uri: "/?a%FF=" + String(repeating: "%cc%81", count: 2_000)), 400))
        heads.append((head(uri: "a"), 400))
        heads.append((head(uri: ""), 400))
        heads.append((head(["transfer-encoding": "chunked"], version: .http1_0), 400))
        return heads
    }()

    @Test(arguments: heads)
    func `what is no request is refused`(_ head: HTTPRequestHead, _ status: UInt) {
        var exchange = exchange()
        let word = #expect(throws: HTTPExchange.LastWord.self) { try exchange.headReceived(head, now: .zero) }
        #expect(word?.status.code == status)
        #expect(exchange.ended(now: .zero) == .now)
    }

    @Test(arguments: ["/v1/users/jos%C3%A9", "/?a=e%CC%81", "/a%", "/%GG%1", "/%FF"])
    func `a target with other characters, well encoded or not, is for the routes to judge`(_ uri: String) throws {
        var exchange = exchange()
        try exchange.headReceived(Self.head(["x-name": "José", "x-other": "e\u{301}"], uri: uri), now: .zero)
        #expect(exchange.owed == 1)
    }

    @Test func `a request of 1_1 has a Host, one of 1_0 need not`() throws {
        var exchange = exchange()
        let bare = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/")
        #expect(throws: HTTPExchange.LastWord.self) { try exchange.headReceived(bare, now: .zero) }
        try exchange.headReceived(HTTPRequestHead(version: .http1_0, method: .GET, uri: "/"), now: .zero)
        #expect(exchange.endsAfterAnswers, "without keep-alive it is the last")
        #expect(exchange.isReading, "its body may follow")
        exchange.endReceived(now: .zero)
        #expect(exchange.endsAfterAnswers && !exchange.isReading)
    }

    @Test(arguments: [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (-86_400, "Wed, 31 Dec 1969 00:00:00 GMT"),
        (-604_801, "Wed, 24 Dec 1969 23:59:59 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (4_102_444_799, "Thu, 31 Dec 2099 23:59:59 GMT"),
    ])
    func `the date is as RFC 9110 writes it`(_ second: Int, _ text: String) {
        #expect(HTTPDate.text(second) == text)
    }
}
