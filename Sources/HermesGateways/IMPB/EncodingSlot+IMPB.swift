// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// The slot for a whole IMPB frame.
    static var impb: Self { Self(rawValue: 9) }
}
