// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

/// The statements of the MQTT standards that a test checks. A failure shows the statements, and
/// `scripts/mqtt-conformance` lists the test under each of them.
struct StatementsTrait: TestTrait {
    let comments: [Comment]
}

extension Trait where Self == StatementsTrait {
    /// - Parameter identifiers: the identifiers in one line, each after its version:
    ///   `3.1.1 [MQTT-a.b.c-n], 5.0 [MQTT-a.b.c-n]`.
    static func statements(_ identifiers: String) -> Self {
        StatementsTrait(comments: [Comment(rawValue: identifiers)])
    }
}
