// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What it may cost on one loop to tell rooms who comes and goes. Pure.
///
/// Each join is told to everybody in the room, and so is its leave: in one room the work grows with the square of those who
/// come. Who joins pays for its own join, but many addresses may join at once. So all rooms of a loop share a number of
/// frames in a second; joins beyond it are not told, nor are their leaves. What is said is never held back here.
struct ArrivalBudget {
    /// Some tenth of a processor.
    static let rate = 100_000
    static let burst = 400_000

    private let rate: Int
    private let burst: Int
    private var bucket: TokenBucket

    init(rate: Int = Self.rate, burst: Int = Self.burst) {
        self.rate = rate
        self.burst = burst
        bucket = TokenBucket(burst: burst, now: .zero)
    }

    /// Whether a join is told; it is charged together with its leave.
    ///
    /// - Parameters:
    ///   - viewers: those in the room on this loop.
    ///   - now: of a clock that never goes back.
    mutating func tells(_ viewers: Int, now: Duration) -> Bool {
        guard bucket.hasToken(rate: rate, burst: burst, now: now) else { return false }
        bucket.take(2 * max(1, viewers))
        return true
    }
}
