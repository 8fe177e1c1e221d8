// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The heartbeat intervals that networks allow. They are learned from clients whose search for an interval has ended,
/// and are used for clients that still search. Each account has one vote in a network, so that no account decides for
/// other accounts. Does no I/O.
package struct HeartbeatPriors: Sendable {
    private struct Network: Sendable {
        /// The last votes in seconds, with the oldest vote first.
        var votes: [(user: UserID, seconds: Int)] = []
        /// The number of the network's last vote. Votes are numbered over all networks.
        var usedAt: UInt64
    }

    /// The minimum number of votes that are needed to derive an interval for a network.
    package static let quorum = 5
    /// The maximum number of votes that are kept for a network. Older votes are forgotten.
    static let kept = 64
    /// The range of accepted intervals, in seconds. Intervals outside this range are mistakes or lies, and are ignored.
    package static let believable = 10...1800

    private let maxNetworks: Int
    private var networks: [String: Network] = [:]
    private var reports: UInt64 = 0

    /// - Parameter maxNetworks: the maximum number of networks that are remembered. If there are more networks, the
    ///   network whose last vote is the oldest is forgotten.
    package init(maxNetworks: Int = 1000) { self.maxNetworks = max(1, maxNetworks) }

    /// Counts a vote: the search of an account's client in a network has ended with this interval. The vote replaces an
    /// earlier vote of the account.
    package mutating func settled(at interval: Duration, in label: String, by user: UserID) {
        guard let seconds = Int(exactly: interval.components.seconds), Self.believable.contains(seconds),
            !label.isEmpty
        else { return }
        reports &+= 1
        if networks[label] == nil, networks.count >= maxNetworks,
            let oldest = networks.min(by: { $0.value.usedAt < $1.value.usedAt })
        {
            networks[oldest.key] = nil
        }
        var network = networks[label] ?? Network(usedAt: reports)
        network.usedAt = reports
        let earlier = network.votes.firstIndex { $0.user == user }
        if let earlier {
            network.votes.remove(at: earlier)
        } else if network.votes.count >= Self.kept {
            network.votes.removeFirst()
        }
        network.votes.append((user, seconds))
        networks[label] = network
    }

    /// Returns a good first interval for a network. The interval is chosen so that at least three out of four votes in
    /// this network are for this interval or for a longer one.
    ///
    /// - Returns: nil if too little is known.
    package func interval(in label: String) -> Duration? {
        guard let votes = networks[label]?.votes, votes.count >= Self.quorum else { return nil }
        return .seconds(votes.map(\.seconds).sorted()[votes.count / 4])
    }

    /// The number of remembered networks.
    package var count: Int { networks.count }
}
