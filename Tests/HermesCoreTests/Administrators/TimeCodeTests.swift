// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct TimeCodeTests {
    /// The codes are from RFC 6238, appendix B, for SHA-1. Each code is the last six of the eight digits there.
    @Test(
        arguments: [
            (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (1_234_567_890, "005924"),
            (2_000_000_000, "279037"), (20_000_000_000, "353130"),
        ] as [(Int64, String)]
    )
    func `the codes are those of the standard`(seconds: Int64, code: String) {
        let secret = Array("12345678901234567890".utf8)
        let now = Timestamp(rawValue: seconds * 1000)
        #expect(TimeCode.code(of: TimeCode.step(at: now), secret: secret) == code)
        #expect(TimeCode.step(of: code, secret: secret, now: now, after: 0) == seconds / 30)
    }

    @Test func `a code is accepted for a step before and after its own, and never again`() {
        let secret: [UInt8] = [1, 2, 3]
        let code = TimeCode.code(of: 1000, secret: secret)
        func step(at step: Int64, after used: Int64 = 0) -> Int64? {
            TimeCode.step(of: code, secret: secret, now: Timestamp(rawValue: step * 30_000), after: used)
        }
        #expect(step(at: 999) == 1000)
        #expect(step(at: 1001) == 1000)
        #expect(step(at: 998) == nil)
        #expect(step(at: 1002) == nil)
        #expect(step(at: 1000, after: 1000) == nil)
    }

    @Test(arguments: ["", "12345", "1234567", "abcdef", "٠٠٠٠٠٠", String(repeating: "9", count: 10_000)])
    func `anything else is no code`(text: String) {
        #expect(TimeCode.step(of: text, secret: [1], now: Timestamp(rawValue: 1), after: -10) == nil)
    }

    /// The cases are from RFC 4648, section 10.
    @Test func `base32 is the standard's`() {
        let cases = ["": "", "f": "MY", "fo": "MZXQ", "foo": "MZXW6", "foob": "MZXW6YQ", "foobar": "MZXW6YTBOI"]
        for (text, encoded) in cases { #expect(TimeCode.base32(Array(text.utf8)) == encoded) }
    }
}
