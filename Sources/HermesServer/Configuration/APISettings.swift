// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The HTTP API for back ends.
package struct APISettings: Sendable, Hashable {
    package var isEnabled = true
    /// The sustained rate of one key, in requests per second.
    package var requestsPerSecond = 100
    /// The largest number of requests that one key may send at once.
    package var burst = 200

    package init() {}

    package init(requestsPerSecond: Int, burst: Int) {
        self.requestsPerSecond = requestsPerSecond
        self.burst = burst
    }
}

extension APISettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .flag(
            \.isEnabled,
            "http.api.enabled",
            "Whether the API for back ends is served under /v1 on the HTTP port. 'hermes apikey' creates its keys."
        ),
        .number(
            \.requestsPerSecond,
            "http.api.requestsPerSecond",
            in: 1...1_000_000,
            "The largest number of requests per second that one API key may send, on average."
        ),
        .number(
            \.burst,
            "http.api.burst",
            in: 1...1_000_000,
            "The largest number of requests that one API key may send at once, after a pause."
        ),
    ]
}
