// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import Logging
import Testing

@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct LogTailTests {
    private func fill(_ tail: LogTail, _ count: Int, _ text: String = "line") {
        for number in 0..<count {
            tail.append(time: Int64(number), level: .info, label: "hermes", message: "\(text) \(number)", fields: [])
        }
    }

    @Test
    func `lines are found by level, label, text and number, the newest ones first in the limit`() {
        let tail = LogTail()
        let logger = Logger(label: "hermes") { label in
            LineLogHandler(level: .debug, format: .logfmt, label: label, tail: tail) { _ in }
        }
        var mqtt = logger
        mqtt[metadataKey: "gateway"] = "mqtt"
        logger.debug("one")
        mqtt.warning("Two", metadata: ["reason": "Because"])
        mqtt.error("three")
        logger.trace("below the level of the log")
        func found(
            after number: Int64? = nil,
            _ level: Logger.Level = .trace,
            label: String? = nil,
            text: String = "",
            limit: Int = 9
        ) -> [String] {
            tail.lines(after: number, atLeast: level, label: label, containing: text, limit: limit).map(\.message)
        }
        #expect(found() == ["one", "Two", "three"] && tail.last == 3)
        #expect(found(.warning) == ["Two", "three"])
        #expect(found(label: "mqtt") == ["Two", "three"] && found(label: "hermes") == ["one"])
        #expect(found(text: "BECAUSE") == ["Two"] && found(text: "two") == ["Two"])
        #expect(found(after: 2) == ["three"] && found(limit: 2) == ["Two", "three"])
        #expect(tail.lines(limit: 9)[1].fields == "gateway=mqtt reason=Because")
    }

    @Test
    func `lines and bytes are bounded, and long lines are cut`() {
        let tail = LogTail()
        fill(tail, LogTail.maxLines + 700)
        let lines = tail.lines(limit: .max)
        #expect(lines.count == LogTail.maxLines && lines.first?.message == "line 700")
        #expect(lines.map(\.number) == Array(701...Int64(LogTail.maxLines + 700)))
        fill(tail, 1_000, String(repeating: "x", count: 100_000))
        let long = tail.lines(limit: .max)
        #expect(long.allSatisfy { $0.message.utf8.count <= LogTail.maxLineBytes + 3 })
        #expect(long.reduce(0) { $0 + $1.message.utf8.count } <= LogTail.maxBytes && long.count > 200)
    }

    @Test
    func `a field that is called like a secret is shown without its value`() {
        let tail = LogTail()
        tail.append(
            time: 0,
            level: .info,
            label: "hermes",
            message: "m",
            fields: [("accessToken", "abc123"), ("PASSWORD", "abc123"), ("path", "abc")]
        )
        #expect(tail.lines(limit: 1).first?.fields == "accessToken=… PASSWORD=… path=abc")
    }

    #if Pages
    @Test
    func `the console shows the log to operators, and nothing that anybody typed into a login`() async throws {
        try await withServer(store: .sqlite) { server in
            let olga = try await ConsoleProbe(server, .operator)
            for _ in 0..<2 { _ = try await olga.logIn("operator", "another password") }
            _ = try await olga.logIn("<b>evil\u{202E}", "evil password")
            _ = try await olga.send("DELETE", "/users/nobody")
            _ = try await olga.send("DELETE", "/users/nobody/tokens")
            let text = try await olga.send("GET", "/log?limit=500").text
            let lines = try #require(try JSONParser.parse(Array(text.utf8))["lines"]?.array)
            #expect(lines.contains { $0["fields"]?.string?.contains("action=revokeTokens") == true }, "\(text)")
            for secret in ["another password", "evil password", ConsoleProbe.password, olga.requestToken ?? "?"] {
                #expect(!text.contains(secret))
            }
            #expect(try await olga.send("GET", "/log?level=all").status == 400)
            #expect(try await olga.send("GET", "/log?limit=100000").status == 400)
            let viewer = try await ConsoleProbe(server, .viewer)
            #expect(try await viewer.send("GET", "/log").status == 403)
        }
    }
    #endif
}
