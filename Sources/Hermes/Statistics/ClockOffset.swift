// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Estimates how far the server's clock is ahead of the device's clock, from requests and their round-trip times.
///
/// The server's time stamp lies between the request and the answer, and the fastest answer leaves the least
/// uncertainty. So the estimate uses the fastest of the last answers, as NTP's clock filter does (RFC 5905, section
/// 10). Reads no clock: the caller passes the times.
struct ClockOffset: Sendable {
    private struct Sample: Sendable {
        var offset: Int64
        var roundTrip: Int64
    }

    private var samples: [Sample] = []

    /// The number of answers that are kept: as many as NTP's clock filter has stages.
    private static let kept = 8
    /// The longest round trip that is used for the estimate, in milliseconds.
    private static let longest: Int64 = 30_000

    /// The server's clock minus the device's clock, in milliseconds; nil if it is unknown.
    var milliseconds: Int64? { samples.min { $0.roundTrip < $1.roundTrip }?.offset }

    /// Takes the times of an answer into account. All times are in milliseconds since 1970.
    ///
    /// - Parameters:
    ///   - askedAt: the time at which the request was sent, by the device's clock.
    ///   - answeredAt: the time at which the answer arrived, by the device's clock.
    ///   - serverTime: the time at which the server answered, by the server's clock.
    mutating func answered(askedAt: Int64, answeredAt: Int64, serverTime: Int64) {
        let roundTrip = answeredAt &- askedAt
        // Skip impossible times. This also skips all values that would overflow.
        guard (0...Self.longest).contains(roundTrip), (0...Self.latest).contains(serverTime),
            (0...Self.latest).contains(askedAt)
        else { return }
        let sample = Sample(offset: serverTime - (askedAt + roundTrip / 2), roundTrip: roundTrip)
        if let best = samples.min(by: { $0.roundTrip < $1.roundTrip }) {
            // If the offsets differ by more than the round trips explain, one of the clocks was set.
            let doubt = (best.roundTrip + roundTrip) / 2 + 1
            if abs(best.offset - sample.offset) > doubt + Self.drift { samples = [] }
        }
        samples.append(sample)
        if samples.count > Self.kept { samples.removeFirst() }
    }

    /// The latest time that is accepted: the year 3000, in milliseconds since 1970.
    private static let latest: Int64 = 32_503_680_000_000
    /// The largest drift of the clocks between samples, in milliseconds. A larger difference means that a clock was
    /// set.
    private static let drift: Int64 = 200
}
