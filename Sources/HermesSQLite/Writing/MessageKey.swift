// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The primary key of a message's row: the upper half of its id, which begins with the time, or one of the next few
/// numbers if other ids have the same upper half.
enum MessageKey {
    /// The number of ids that may share their upper half. A generator's own differ; those of another one in the same
    /// millisecond may not.
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
