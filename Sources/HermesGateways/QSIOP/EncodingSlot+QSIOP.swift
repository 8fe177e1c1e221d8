// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// The slot for a whole QSIOP frame.
    static var qsiop: Self { Self(rawValue: 8) }
}
