// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The HTTP API for back ends.
package struct APISettings: Sendable, Hashable {
    package var isEnabled: Bool
    /// The sustained rate of one key, in requests per second.
    package var requestsPerSecond: Int
    /// The largest number of requests that one key may send at once.
    package var burst: Int

    package init(isEnabled: Bool = true, requestsPerSecond: Int = 100, burst: Int = 200) {
        self.isEnabled = isEnabled
        self.requestsPerSecond = requestsPerSecond
        self.burst = burst
    }
}

extension APISettings {
    private static let defaults = APISettings()

    private static let enabled = Setting.flag(
        "http.api.enabled",
        default: defaults.isEnabled,
        "Whether the API for back ends is served under /v1 on the HTTP port. 'hermes apikey' creates its keys."
    )
    private static let requestsPerSecond = Setting.number(
        "http.api.requestsPerSecond",
        default: defaults.requestsPerSecond,
        in: 1...1_000_000,
        "The largest number of requests per second that one API key may send, on average."
    )
    private static let burst = Setting.number(
        "http.api.burst",
        default: defaults.burst,
        in: 1...1_000_000,
        "The largest number of requests that one API key may send at once, after a pause."
    )

    static let settings: [SettingDescriptor] = [enabled.descriptor, requestsPerSecond.descriptor, burst.descriptor]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            isEnabled: try values.value(of: Self.enabled),
            requestsPerSecond: try values.value(of: Self.requestsPerSecond),
            burst: try values.value(of: Self.burst)
        )
    }
}
