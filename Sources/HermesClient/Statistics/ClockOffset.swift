// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How far the server's clock is ahead of the device's, by questions to the server and the time that the answers took.
///
/// The server's time stamp lies somewhere between question and answer: the quicker the answer, the surer the estimate. So
/// the quickest of the last answers counts (as in NTP's clock filter, RFC 5905, section 10). A value; times are passed in.
struct ClockOffset: Sendable {
    private struct Sample: Sendable {
        var offset: Int64
        var roundTrip: Int64
    }

    private var samples: [Sample] = []

    /// As many answers count as NTP's filter has stages.
    private static let kept = 8
    /// An answer that took longer says nothing.
    private static let longest: Int64 = 30_000

    /// The server's clock minus the device's, in milliseconds; nil: nothing is known yet.
    var milliseconds: Int64? { samples.min { $0.roundTrip < $1.roundTrip }?.offset }

    /// The server answered; all times are in milliseconds since 1970.
    ///
    /// - Parameters:
    ///   - askedAt: when the question was sent, by the device's clock.
    ///   - answeredAt: when the answer came, by the device's clock.
    ///   - serverTime: the server's clock at the answer.
    mutating func answered(askedAt: Int64, answeredAt: Int64, serverTime: Int64) {
        let roundTrip = answeredAt &- askedAt
        // Nonsense is left out, and with it what would overflow.
        guard (0...Self.longest).contains(roundTrip), (0...Self.latest).contains(serverTime),
            (0...Self.latest).contains(askedAt)
        else { return }
        let sample = Sample(offset: serverTime - (askedAt + roundTrip / 2), roundTrip: roundTrip)
        if let best = samples.min(by: { $0.roundTrip < $1.roundTrip }) {
            // Both cannot be true: one of the clocks was set.
            let doubt = (best.roundTrip + roundTrip) / 2 + 1
            if abs(best.offset - sample.offset) > doubt + Self.drift { samples = [] }
        }
        samples.append(sample)
        if samples.count > Self.kept { samples.removeFirst() }
    }

    /// The year 3000.
    private static let latest: Int64 = 32_503_680_000_000
    /// So far clocks run apart between samples, with nobody setting them.
    private static let drift: Int64 = 200
}
