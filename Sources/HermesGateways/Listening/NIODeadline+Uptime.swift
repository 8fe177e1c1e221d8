// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

extension NIODeadline {
    /// The time from the start of NIO's clock to this moment.
    var uptime: Duration { .nanoseconds(Int64(clamping: uptimeNanoseconds)) }
}
