// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The name of an account, for people: 1 to 64 characters after Unicode normalisation, no control characters, no white
/// space at either end. Two names are the same if their ``key``s are.
package struct NickName: Sendable, Hashable, CustomStringConvertible {
    /// As it is shown.
    package let rawValue: String
    /// As it is compared: NFKC, case folded.
    package let key: String

    package init(_ text: String) throws(HermesError) {
        throw HermesError(.unsupported, "not yet")
    }

    package var description: String { rawValue }
}
