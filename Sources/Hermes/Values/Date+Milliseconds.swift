// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

extension Date {
    /// Creates a date from a time stamp, in milliseconds since 1970.
    package init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// Creates a date from a time stamp, in milliseconds since 1970; nil if the time stamp is 0 (not specified) or
    /// negative.
    package init?(knownMilliseconds milliseconds: Int64) {
        guard milliseconds > 0 else { return nil }
        self.init(milliseconds: milliseconds)
    }

    /// The time stamp in milliseconds since 1970.
    package var milliseconds: Int64 { Int64(exactly: (timeIntervalSince1970 * 1000).rounded()) ?? 0 }
}

extension URL {
    /// Creates a URL from a text that the server sent; nil if the text is empty or not a URL.
    package init?(wire text: String) {
        guard !text.isEmpty else { return nil }
        self.init(string: text)
    }
}

extension Duration {
    /// Creates a duration from a number of seconds that the server sent, limited to the range from 0 to 10^9 s; zero
    /// if the value is not finite.
    package init(wireSeconds seconds: Double) {
        self = seconds.isFinite ? .seconds(min(max(seconds, 0), 1e9)) : .zero
    }

    /// The number of seconds.
    package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
