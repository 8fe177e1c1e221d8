// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore

/// Random numbers that are the same in every run (``SplitMix``).
struct SeededGenerator: RandomNumberGenerator {
    private var numbers: SplitMix

    init(seed: UInt64) { numbers = SplitMix(state: seed) }

    mutating func next() -> UInt64 { numbers.next() }

    /// Random bytes.
    mutating func body(_ count: ClosedRange<Int>) -> ByteBuffer {
        let length = Int.random(in: count, using: &self)
        return ByteBuffer(bytes: (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &self) })
    }

    /// A random text of ASCII, Chinese, emoji, control and separator characters.
    mutating func text(_ count: ClosedRange<Int>) -> String {
        let scalars = Array("ab:z\n\r\t 0é你好\u{0301}👍🏽\u{0}".unicodeScalars)
        var text = ""
        for _ in 0..<Int.random(in: count, using: &self) {
            text.unicodeScalars.append(scalars[Int.random(in: scalars.indices, using: &self)])
        }
        return text
    }
}
