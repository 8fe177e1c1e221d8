// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// A whole Delimited frame.
    static var delimited: Self { Self(rawValue: 1) }
    /// The JSON of a packet, in a Delimited frame.
    static var delimitedJSON: Self { Self(rawValue: 6) }
}
