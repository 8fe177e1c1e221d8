// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How long a heartbeat interval networks stand, learned from the clients that have found out, for those that have not.
/// Pure. Knows labels of networks and intervals, and not whose they are.
package struct HeartbeatPriors: Sendable {
    private struct Network: Sendable {
        /// The last reports, in seconds, of which the oldest is at `next` once there are as many as are kept.
        var seconds: [Int] = []
        var next = 0
        /// Counts up with each report of any network.
        var usedAt: UInt64
    }

    /// So many reports there must be before the clients of a network are told.
    package static let quorum = 5
    /// So many of the last reports count.
    static let kept = 64
    /// What is beyond is no interval that a network stands, but a mistake or a lie.
    package static let believable = 10...1800

    private let maxNetworks: Int
    private var networks: [String: Network] = [:]
    private var reports: UInt64 = 0

    /// - Parameter maxNetworks: how many networks are remembered; then the one without news for longest is forgotten.
    package init(maxNetworks: Int = 1000) { self.maxNetworks = max(1, maxNetworks) }

    /// A client's search in a network has come to this end.
    package mutating func settled(at interval: Duration, in label: String) {
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
        if network.seconds.count < Self.kept {
            network.seconds.append(seconds)
        } else {
            network.seconds[network.next] = seconds
            network.next = (network.next + 1) % Self.kept
        }
        networks[label] = network
    }

    /// A good first guess for a network: three of four clients there stand at least this interval.
    ///
    /// - Returns: nil if too little is known.
    package func interval(in label: String) -> Duration? {
        guard let seconds = networks[label]?.seconds, seconds.count >= Self.quorum else { return nil }
        return .seconds(seconds.sorted()[seconds.count / 4])
    }

    /// How many networks are remembered.
    package var count: Int { networks.count }
}
