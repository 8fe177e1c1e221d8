// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension EncodingSlot {
    /// A whole LiveRoom frame.
    static var liveRoom: Self { Self(rawValue: 0) }
    /// A whole LiveRoom frame for viewers that did not enter, where it is another one.
    static var liveRoomPlain: Self { Self(rawValue: 7) }
}
