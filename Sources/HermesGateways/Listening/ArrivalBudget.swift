// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The budget of one loop for telling rooms about joins and leaves. Pure.
///
/// Each join, and each leave, goes to everybody in the room. So the work in one room grows with the square of the
/// number of joins. A client pays for its own join, but many addresses may join at once. So all rooms of a loop share a
/// number of frames a second. A join beyond it is not told, and neither is its leave. Texts are never held back here.
struct ArrivalBudget {
    /// The frames a second; they take about a tenth of a processor.
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
