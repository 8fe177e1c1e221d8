// Hermes
// SPDX-License-Identifier: Apache-2.0

extension InboxPage {
    /// The size that is counted for an entry in addition to its content, in bytes: about as much as a protocol writes
    /// around it.
    package static let entryOverhead = 512

    /// Returns the first entries of the page that fit into `maxBytes`, at least one. The client requests the remaining
    /// entries.
    package func cut(toBytes maxBytes: Int) -> InboxPage {
        let count = entries.countFitting(inBytes: maxBytes) { $0.event.bytes }
        return count == entries.count ? self : InboxPage(entries: Array(entries.prefix(count)), position: position)
    }
}

extension HistoryPage {
    /// Creates a page of the newest messages that fit into `maxBytes`, at least one.
    ///
    /// - Parameters:
    ///   - found: the messages that were read, ascending: one more than `limit`, if there are that many.
    ///   - isFoundCut: whether older messages follow that were not read.
    package init(newestOf found: [Message], limit: Int, maxBytes: Int, isFoundCut: Bool = false) {
        let asked = found.suffix(limit)
        let count = asked.reversed().countFitting(inBytes: maxBytes) { $0.content.bytes.count }
        self.init(messages: Array(asked.suffix(count)), hasMore: count < found.count || isFoundCut)
    }
}

extension ConversationPage {
    /// The size that is counted for a conversation in addition to its name, in bytes: about as much as a protocol
    /// writes around it.
    package static let entryOverhead = 192

    /// Creates a page of the first conversations that fit into `maxBytes`, at least one.
    ///
    /// - Parameters:
    ///   - found: the conversations that were read: `limit` of them, if there are that many.
    ///   - limit: the requested number of conversations.
    package init(firstOf found: [ConversationSummary], limit: Int, maxBytes: Int) {
        let count = found.countFitting(inBytes: maxBytes, overhead: Self.entryOverhead) { $0.name.utf8.count }
        let isWhole = count == found.count && count < limit
        self.init(conversations: Array(found.prefix(count)), next: isWhole ? nil : found[..<count].last?.place)
    }
}

extension Collection {
    /// Returns how many of the first elements fit into `maxBytes`; at least one if there is any.
    ///
    /// - Parameter overhead: the size that is added for each element, in bytes.
    fileprivate func countFitting(
        inBytes maxBytes: Int,
        overhead: Int = InboxPage.entryOverhead,
        _ bytes: (Element) -> Int
    ) -> Int {
        var sum = 0
        var count = 0
        for element in self {
            sum += bytes(element) + overhead
            guard count == 0 || sum <= maxBytes else { break }
            count += 1
        }
        return count
    }
}
