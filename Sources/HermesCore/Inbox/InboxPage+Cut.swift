// Hermes
// SPDX-License-Identifier: Apache-2.0

extension InboxPage {
    /// The number of bytes that are counted for an entry in addition to its content. A protocol adds about as many
    /// bytes to an entry.
    package static let entryOverhead = 512

    /// Returns the first entries of the page that fit into `maxBytes`, but at least one entry. The client requests the
    /// remaining entries.
    package func cut(toBytes maxBytes: Int) -> InboxPage {
        let count = entries.countFitting(inBytes: maxBytes) { $0.event.bytes }
        return count == entries.count ? self : InboxPage(entries: Array(entries.prefix(count)), position: position)
    }
}

extension HistoryPage {
    /// Creates a page of the newest messages that fit into `maxBytes`, but at least one message.
    ///
    /// - Parameters:
    ///   - found: the messages that were read, in ascending order. There are `limit` + 1 messages, or fewer if fewer
    ///     exist.
    ///   - isFoundCut: whether there are older messages that were not read.
    package init(newestOf found: [Message], limit: Int, maxBytes: Int, isFoundCut: Bool = false) {
        let asked = found.suffix(limit)
        let count = asked.reversed().countFitting(inBytes: maxBytes) { $0.content.bytes.count }
        self.init(messages: Array(asked.suffix(count)), hasMore: count < found.count || isFoundCut)
    }
}

extension ConversationPage {
    /// The number of bytes that are counted for a conversation in addition to its name. A protocol adds about as many
    /// bytes to a conversation.
    package static let entryOverhead = 192

    /// Creates a page of the first conversations that fit into `maxBytes`, but at least one conversation.
    ///
    /// - Parameters:
    ///   - found: the conversations that were read. There are `limit` conversations, or fewer if fewer exist.
    ///   - limit: the requested number of conversations.
    package init(firstOf found: [ConversationSummary], limit: Int, maxBytes: Int) {
        let count = found.countFitting(inBytes: maxBytes, overhead: Self.entryOverhead) { $0.name.utf8.count }
        let isWhole = count == found.count && count < limit
        self.init(conversations: Array(found.prefix(count)), next: isWhole ? nil : found[..<count].last?.place)
    }
}

extension Collection {
    /// Returns how many of the first elements fit into `maxBytes`; at least one if the collection is not empty.
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
