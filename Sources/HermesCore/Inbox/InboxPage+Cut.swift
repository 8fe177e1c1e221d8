// Hermes
// SPDX-License-Identifier: Apache-2.0

extension InboxPage {
    /// The size that an entry counts for beside its content, in bytes: about as much as a protocol writes around it.
    package static let entryOverhead = 512

    /// The part of the page that fits into a number of bytes, at least one entry; the client asks for the rest.
    package func cut(toBytes maxBytes: Int) -> InboxPage {
        let count = entries.countFitting(inBytes: maxBytes) { $0.event.bytes }
        return count == entries.count ? self : InboxPage(entries: Array(entries.prefix(count)), position: position)
    }
}

extension HistoryPage {
    /// The newest messages that fit into a number of bytes, at least one.
    ///
    /// - Parameters:
    ///   - found: the messages that were read, ascending: one more than `limit`, if there are that many.
    ///   - isFoundCut: whether older ones follow that were not read.
    package init(newestOf found: [Message], limit: Int, maxBytes: Int, isFoundCut: Bool = false) {
        let asked = found.suffix(limit)
        let count = asked.reversed().countFitting(inBytes: maxBytes) { $0.content.bytes.count }
        self.init(messages: Array(asked.suffix(count)), hasMore: count < found.count || isFoundCut)
    }
}

extension Collection {
    /// Returns how many of the first elements fit, at least one if there is any.
    fileprivate func countFitting(inBytes maxBytes: Int, _ bytes: (Element) -> Int) -> Int {
        var sum = 0
        var count = 0
        for element in self {
            sum += bytes(element) + InboxPage.entryOverhead
            guard count == 0 || sum <= maxBytes else { break }
            count += 1
        }
        return count
    }
}
