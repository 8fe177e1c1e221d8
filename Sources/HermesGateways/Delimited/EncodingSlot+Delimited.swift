// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// The slot for a whole Delimited frame.
    static var delimited: Self { Self(rawValue: 1) }
    /// The slot for a Delimited frame with the JSON of a packet.
    static var delimitedJSON: Self { Self(rawValue: 6) }
}
