// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesServer
import Logging
import Synchronization
import Testing

/// Collects lines.
private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func logger(_ format: LogFormat) -> Logger {
        Logger(label: "test") { _ in
            LineLogHandler(level: .info, format: format) { line in self.lines.withLock { $0.append(line) } }
        }
    }
}

@Suite struct LogTests {
    @Test func `logfmt is one line whatever the value`() throws {
        let lines = Lines()
        lines.logger(.logfmt).info("two words", metadata: ["plain": "a1", "bad key\n": "x\ny \"q\" \u{2028}\u{1B}[0m"])
        let line = try #require(lines.all.first)
        #expect(line.hasSuffix(#"level=info msg="two words" bad_key_="x\ny \"q\" \u2028\u001b[0m" plain=a1"# + "\n"))
        #expect(line.hasPrefix("time="))
        #expect(line.filter(\.isNewline).count == 1)
    }

    @Test func `JSON is JSON`() throws {
        let lines = Lines()
        lines.logger(.json).warning("a \"b\"", metadata: ["k": "\u{0}\u{7F}\\"])
        let line = try #require(lines.all.first)
        let object = try JSONDecoder().decode([String: String].self, from: Data(line.utf8))
        #expect(object["msg"] == "a \"b\"")
        #expect(object["level"] == "warning")
        #expect(object["k"] == "\u{0}\u{7F}\\")
    }

    @Test func `what is less important is left out`() {
        let lines = Lines()
        lines.logger(.logfmt).debug("quiet")
        #expect(lines.all.isEmpty)
    }
}
