// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// The slot for a whole LiveRoom frame.
    static var liveRoom: Self { Self(rawValue: 0) }
    /// The slot for the LiveRoom frame for viewers that never sent *enter*, if this frame differs from the frame for
    /// other viewers.
    static var liveRoomPlain: Self { Self(rawValue: 7) }
}
