// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// A whole IMPB frame.
    static var impb: Self { Self(rawValue: 9) }
}
