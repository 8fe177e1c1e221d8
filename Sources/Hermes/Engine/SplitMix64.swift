// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A small random number generator with value semantics. The same seed gives the same numbers.
struct SplitMix64: RandomNumberGenerator, Sendable {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Returns a random number, at least 0 and below 1.
    mutating func nextFraction() -> Double { Double.random(in: 0..<1, using: &self) }
}
