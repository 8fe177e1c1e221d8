// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Logging
import Testing

@testable import HermesGateways

@Suite struct LoginLogTests {
    @Test func `at most ten lines a second are logged, and the next one has the number left out`() {
        let (lines, clock) = (LogRecorder(), ManualClock())
        let logger = lines.logger(.info)
        let log = LoginLog(time: clock)
        for _ in 1...100 { log.failed(.badCredentials, address: "192.0.2.1", user: "ann", to: logger) }
        #expect(lines.all.count == LoginLog.linesPerSecond)
        let first: Logger.Metadata = ["reason": "bad_credentials", "address": "192.0.2.1", "user": "ann"]
        #expect(lines.all.first == first)
        clock.advance(by: .seconds(1))
        log.failed(.notAuthorized, address: nil, to: logger)
        let next: Logger.Metadata = ["reason": "not_authorized", "skipped": "90"]
        #expect(lines.all.last == next)
        log.failed(.delayed, address: nil, to: logger)
        #expect(lines.all.last?["skipped"] == nil)
    }

    @Test func `failed handshakes do not use up the lines of failed logins`() {
        let (lines, clock) = (LogRecorder(), ManualClock())
        let logger = lines.logger(.info)
        let log = LoginLog(time: clock)
        for _ in 1...100 { log.handshakeFailed("no TLS", address: "192.0.2.1", to: logger) }
        let first: Logger.Metadata = ["reason": "no TLS", "address": "192.0.2.1"]
        #expect(lines.all == [first])
        log.failed(.badCredentials, address: "192.0.2.2", to: logger)
        #expect(lines.all.count == 2)
        let login: Logger.Metadata = ["reason": "bad_credentials", "address": "192.0.2.2"]
        #expect(lines.all.last == login, "and it counts only the lines of its kind")
        clock.advance(by: .seconds(1))
        log.handshakeFailed("no TLS", address: nil, to: logger)
        let next: Logger.Metadata = ["reason": "no TLS", "skipped": "99"]
        #expect(lines.all.last == next)
    }

    @Test func `a client that returns with a refused certificate fills neither the log nor the lines of others`() {
        let (lines, clock) = (LogRecorder(), ManualClock())
        let logger = lines.logger(.info)
        let log = LoginLog(time: clock)
        for _ in 1...100 { log.certificateRefused("revoked", address: "192.0.2.1", to: logger) }
        let first: Logger.Metadata = ["reason": "revoked", "address": "192.0.2.1"]
        #expect(lines.all == [first])
        log.handshakeFailed("no TLS", address: "192.0.2.2", to: logger)
        #expect(lines.all.count == 2)
        clock.advance(by: .seconds(1))
        log.certificateRefused("revoked", address: nil, to: logger)
        let next: Logger.Metadata = ["reason": "revoked", "skipped": "99"]
        #expect(lines.all.last == next)
    }

    @Test func `a token that a client shows as its name is not logged`() {
        let lines = LogRecorder()
        let tokens = ["hk_opensesame", "eyJhbGciOiJub25lIn0.e30.", AccessToken().text]
        let logger = lines.logger(.info)
        let log = LoginLog(time: ManualClock())
        for token in tokens { log.failed(.badCredentials, address: nil, user: token, client: token, to: logger) }
        let hidden: Logger.Metadata = ["reason": "bad_credentials", "user": "(hidden)", "client": "(hidden)"]
        #expect(lines.all == [hidden, hidden, hidden])
        let name = String(repeating: "x", count: AccessToken.bytes)
        let names = ["ann", name + "x", "." + String(name.dropFirst())]
        #expect(names.map { LoginLog.claimed($0) } == names)
    }

    @Test func `a stranger's text cannot forge or hide a line`() {
        #expect(LoginLog.shown("Ann O'Neill é") == "Ann O'Neill é")
        #expect(LoginLog.shown("a\r\nb\u{1B}[2J\u{202E}c\u{85}") == "a\\u{d}\\u{a}b\\u{1b}[2J\\u{202e}c\\u{85}")
        let long = LoginLog.shown(String(repeating: "x", count: 70_000))
        #expect(long == String(repeating: "x", count: 64) + "…")
    }
}
