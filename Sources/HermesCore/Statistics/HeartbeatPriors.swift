// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The heartbeat intervals that networks allow, learned from clients that have settled, for clients that have not.
/// Pure. Each account has one vote in a network, so that nobody decides it for others.
package struct HeartbeatPriors: Sendable {
    private struct Network: Sendable {
        /// The last votes in seconds, the oldest first.
        var votes: [(user: UserID, seconds: Int)] = []
        /// Increases with each report of any network.
        var usedAt: UInt64
    }

    /// The number of votes before the clients of a network are told.
    package static let quorum = 5
    /// The number of last votes that count.
    static let kept = 64
    /// Intervals outside this range are mistakes or lies.
    package static let believable = 10...1800

    private let maxNetworks: Int
    private var networks: [String: Network] = [:]
    private var reports: UInt64 = 0

    /// - Parameter maxNetworks: the number of remembered networks; beyond it, the one without reports for longest is
    ///   forgotten.
    package init(maxNetworks: Int = 1000) { self.maxNetworks = max(1, maxNetworks) }

    /// The search of an account's client in a network ended with this interval. It takes the place of the account's
    /// earlier vote.
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

    /// A good first guess for a network: three of four clients there have settled at this interval or a longer one.
    ///
    /// - Returns: nil if too little is known.
    package func interval(in label: String) -> Duration? {
        guard let votes = networks[label]?.votes, votes.count >= Self.quorum else { return nil }
        return .seconds(votes.map(\.seconds).sorted()[votes.count / 4])
    }

    /// The number of remembered networks.
    package var count: Int { networks.count }
}
