// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Random numbers that are the same in every run (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Some bytes.
    mutating func body(_ count: ClosedRange<Int>) -> ByteBuffer {
        let length = Int.random(in: count, using: &self)
        return ByteBuffer(bytes: (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &self) })
    }

    /// A text of ASCII, Chinese, emoji, control and separator characters.
    mutating func text(_ count: ClosedRange<Int>) -> String {
        let scalars = Array("ab:z\n\r\t 0é你好\u{0301}👍🏽\u{0}".unicodeScalars)
        var text = ""
        for _ in 0..<Int.random(in: count, using: &self) {
            text.unicodeScalars.append(scalars[Int.random(in: scalars.indices, using: &self)])
        }
        return text
    }
}
