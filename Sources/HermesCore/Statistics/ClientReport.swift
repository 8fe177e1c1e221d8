// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The counts of a client since its last report. The values are checked.
package struct ClientReport: Hashable, Sendable {
    /// The counts of one network.
    package struct Network: Hashable, Sendable {
        /// The client's name for the kind of network, for example "wifi"; empty if there is none.
        package var label: String
        /// The counts that the client reported.
        package var counts: ReportCounts
        /// The last heartbeat interval; zero if no interval was reported.
        package var heartbeat: Duration
        /// Whether the client's search for the interval has ended.
        package var isHeartbeatStable: Bool

        /// Checks the label, and reduces counts that are too large.
        ///
        /// - Throws: `.tooLarge` if the label is longer than 64 bytes; `.invalidArgument` if it is not printable.
        package init(
            label: String,
            counts: ReportCounts,
            heartbeat: Duration = .zero,
            isHeartbeatStable: Bool = false
        ) throws(HermesError) {
            self.label = try ClientReport.name(label, atMost: ClientReport.maxLabelBytes, "network label")
            self.counts = counts.clamped
            self.heartbeat = heartbeat
            self.isHeartbeatStable = isHeartbeatStable
        }
    }

    /// The app's version; empty if it is unknown.
    package var appVersion: String
    package var networks: [Network]

    /// The maximum number of networks in a report.
    package static let maxNetworks = 16
    package static let maxVersionBytes = 32
    package static let maxLabelBytes = 64

    /// Checks a report.
    ///
    /// - Throws: `.tooLarge` if there are too many networks, or if the version is longer than 32 bytes;
    ///   `.invalidArgument` if the version is not printable.
    package init(appVersion: String, networks: [Network]) throws(HermesError) {
        guard networks.count <= Self.maxNetworks else {
            throw HermesError(.tooLarge, "a report holds at most \(Self.maxNetworks) networks")
        }
        self.appVersion = try Self.name(appVersion, atMost: Self.maxVersionBytes, "app version")
        self.networks = networks
    }

    /// The sum over all networks.
    package var counts: ReportCounts { networks.reduce(into: ReportCounts()) { $0.add($1.counts) } }

    /// Checks a name that may become a label of a metric.
    package static func name(_ text: String, atMost bytes: Int, _ what: String) throws(HermesError) -> String {
        guard text.utf8.count <= bytes, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else {
            throw HermesError(
                .ofValue(text.utf8.count, atMost: bytes),
                "\(what): at most \(bytes) bytes of printable ASCII"
            )
        }
        return text
    }
}
