// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension InboxPage {
    /// The part of the page that fits into a number of bytes, at least one entry; the client asks for the rest.
    func cut(toBytes maxBytes: Int) -> InboxPage {
        var bytes = 0
        let fitting = entries.prefix { entry in
            let isFirst = bytes == 0
            bytes += entry.event.bytes + 512
            return isFirst || bytes <= maxBytes
        }
        return InboxPage(entries: Array(fitting), position: position)
    }
}
