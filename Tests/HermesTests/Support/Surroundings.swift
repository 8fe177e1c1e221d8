// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

/// A store of the server and a carrier. `all` contains each carrier with the memory store, and some carriers with
/// SQLite.
struct Surroundings: Sendable, CustomTestStringConvertible {
    let store: TestStore
    let carrier: Carrier

    static let all =
        Carrier.allCases.map { Self(store: .memory, carrier: $0) }
        + [Carrier.delimited, .mqtt].map { Self(store: .sqlite, carrier: $0) }

    var testDescription: String { "\(store), \(carrier)" }
}
