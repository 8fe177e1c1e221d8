// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

extension ClientStatistics {
    /// Returns the sums for each app version, sorted by version.
    package func versions(
        _ period: DeliveryHistory.Period,
        now: Timestamp
    ) -> [(appVersion: String, counts: ReportCounts)] {
        DeliveryHistory.versions(of: history.groups(period, now: now))
    }
}
