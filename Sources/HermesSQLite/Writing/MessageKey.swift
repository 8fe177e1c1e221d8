// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The primary key of a message's row. It is the upper half of the message's id, which begins with the time. If other
/// ids have the same upper half, the key is one of the next few numbers.
enum MessageKey {
    /// The largest difference between a key and the upper half of its message's id. All ids of one generator have
    /// different upper halves, but ids of two generators in the same millisecond may share one.
    static let maxShift: Int64 = 4095

    /// The possible keys of a message with this id.
    static func candidates(_ id: MessageID) -> ClosedRange<Int64> {
        let first = Int64(bitPattern: id.high)
        let (last, overflow) = first.addingReportingOverflow(maxShift)
        return first...(overflow ? .max : last)
    }

    static func id(key: Int64, shift: Int64, low: UInt64) -> MessageID {
        MessageID(high: UInt64(bitPattern: key &- shift), low: low)
    }
}
