// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Answers the requests of accounts about their inboxes and conversations, for all protocols. The service checks that
/// the account takes part in the conversation, limits entries and bytes, lets readers take turns, and determines the
/// cost of an answer. Thread-safe.
///
/// The completion of a read runs in a task of the ``ReadGate``, and the completion of a change runs on the committer's
/// thread. If the request is refused, the completion runs at once on the caller's thread. Completions must not block; a
/// gateway posts the result to the mailbox of its event loop.
package final class InboxRequests: Sendable {
    private let store: any MessageStore
    private let social: any SocialStore
    private let time: any TimeSource
    private let committer: InboxCommitter
    private let reads: ReadGate
    /// The gate for the heads of inboxes. Several reads run at once, so that the store can run them together.
    let heads: ReadGate
    private let recallWindow: Duration

    /// - Parameters:
    ///   - reads: the gate in which all reads except those of heads take turns.
    ///   - maxWaitingHeads: the largest number of waiting reads of heads.
    ///   - recallWindow: the time after sending within which a message can be recalled.
    init(
        store: any MessageStore,
        social: any SocialStore,
        time: any TimeSource,
        committer: InboxCommitter,
        reads: ReadGate,
        maxWaitingHeads: Int,
        recallWindow: Duration
    ) {
        self.store = store
        self.social = social
        self.time = time
        self.committer = committer
        self.reads = reads
        heads = ReadGate(maxRunning: ReadGate.maxSharedReads, maxWaiting: maxWaitingHeads)
        self.recallWindow = recallWindow
    }

    /// Answers a request.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - user: the account that asks.
    ///   - source: the source in whose turn a read runs (``ReadGate``); nil means the account.
    ///   - maxBytes: the largest size of a page, in bytes. Each entry counts with its content and an overhead, such as
    ///     ``InboxPage/entryOverhead``. One entry always fits.
    ///   - completion: called exactly once. Errors: `.invalidArgument`, `.notFound`, `.forbidden`, `.overloaded`,
    ///     `.storageUnavailable`, `.shuttingDown`.
    package func answer(
        _ request: InboxRequest,
        for user: UserID,
        source: CommitSource? = nil,
        maxBytes: Int = .max,
        completion: @escaping @Sendable (Result<InboxReply, HermesError>) -> Void
    ) {
        let source = source ?? .account(user)
        switch request {
        case .page(let seq, let limit):
            read(source, completion) { () async throws(HermesError) in
                try await self.page(of: user, after: seq, limit: limit, maxBytes: maxBytes)
            }
        case .history(let conversation, let seq, let limit):
            do throws(HermesError) {
                _ = try conversation.recipients(for: user)
            } catch {
                return completion(.failure(error))
            }
            let reading = HistoryReading(
                conversation: conversation,
                before: seq.map(Self.storable),
                limit: PageLimit.history.applied(to: limit),
                maxBytes: maxBytes,
                reader: user
            )
            if !readHistory(reading, source, completion) { completion(.failure(ReadGate.tooManyReads)) }
        case .conversations(let place, let limit):
            read(source, completion) { () async throws(HermesError) in
                try await self.conversations(of: user, after: place, limit: limit, maxBytes: maxBytes)
            }
        case .markRead(let conversation, let seq):
            markRead(conversation, upTo: seq, by: user, completion)
        case .recall(let id, let conversation):
            recall(id, in: conversation, by: user, completion)
        }
    }

    /// Reads a page for the delivery of an inbox to a connection. Most clients that connect again have all entries. For
    /// them, only the head of the inbox is read, together with the heads of other inboxes.
    ///
    /// - Parameters:
    ///   - user: the account of the inbox.
    ///   - seq: the seq after which the page begins.
    ///   - limit: the largest number of entries in the page.
    ///   - head: the newest seq that the caller knows to be committed.
    ///   - source: the source in whose turn the read runs.
    ///   - completion: as for ``answer(_:for:source:maxBytes:completion:)``.
    package func deliver(
        to user: UserID,
        after seq: UInt64,
        limit: Int,
        head: UInt64,
        source: CommitSource,
        completion: @escaping @Sendable (Result<InboxReply, HermesError>) -> Void
    ) {
        let request = InboxRequest.page(after: seq, limit: limit)
        guard seq >= head else { return answer(request, for: user, source: source, completion: completion) }
        let isAccepted = heads.run(for: source) { [self] in
            do throws(HermesError) {
                let position = try await store.position(of: user)
                guard position.head <= seq else {
                    // The caller does not know the newest entries.
                    return answer(request, for: user, source: source, completion: completion)
                }
                let page = InboxPage(entries: [], position: position)
                completion(.success(InboxReply(answer: .page(page), cost: ReadCost(entries: 0, bytes: 0))))
            } catch {
                completion(.failure(error))
            }
        }
        if !isAccepted { completion(.failure(ReadGate.tooManyReads)) }
    }

    /// Answers a request, and waits for the result.
    package func answer(
        _ request: InboxRequest,
        for user: UserID,
        source: CommitSource? = nil,
        maxBytes: Int = .max
    ) async throws(HermesError) -> InboxAnswer {
        let result = await withCheckedContinuation { continuation in
            answer(request, for: user, source: source, maxBytes: maxBytes) { continuation.resume(returning: $0) }
        }
        return try result.get().answer
    }

    /// Moves the device's cursor. The new position is committed later, together with other positions. If the position
    /// is lost, entries are repeated, but no entry is lost.
    package func acknowledge(_ principal: Principal, upTo seq: UInt64) {
        guard seq > 0 else { return }
        committer.acknowledge(
            principal.user,
            principal.device,
            upTo: Self.storable(seq),
            isProven: principal.isProven
        )
    }

    // MARK: Reading

    /// Reads when the source's turn has come.
    private func read(
        _ source: CommitSource,
        _ completion: @escaping @Sendable (Result<InboxReply, HermesError>) -> Void,
        _ body: @escaping @Sendable () async throws(HermesError) -> InboxReply
    ) {
        let isAccepted = reads.run(for: source) {
            let result: Result<InboxReply, HermesError>
            do throws(HermesError) {
                result = .success(try await body())
            } catch {
                result = .failure(error)
            }
            completion(result)
        }
        guard !isAccepted else { return }
        completion(.failure(ReadGate.tooManyReads))
    }

    private func page(
        of user: UserID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> InboxReply {
        let limit = PageLimit.inbox.applied(to: limit)
        // The time is taken before the page is read: when the clock jumps, the store corrects the expiries first
        // (``ClockJump``). If the time were taken later, entries that were read before the correction could seem to be
        // expired.
        let expiryTime = time.expiryTime()
        let stored = try await store.entries(of: user, after: Self.storable(seq), limit: limit)
        // The cost includes expired entries, because they were also read.
        let cost = ReadCost(entries: stored.entries.count, bytes: stored.bytes)
        let page = stored.withoutExpired(at: expiryTime)
        return InboxReply(answer: .page(page.cut(toBytes: maxBytes)), cost: cost)
    }

    /// A history request that is under way. The request may need several reads.
    private struct HistoryReading: Sendable {
        let conversation: ConversationID
        /// The conversation seq above which messages are read; nil if it is not known yet.
        var after: UInt64?
        /// The conversation seq below which the next read continues; nil if the next read begins with the newest
        /// message.
        var before: UInt64?
        let limit: Int
        let maxBytes: Int
        let reader: UserID
        /// The number of messages that were left out so far.
        var passed = 0
    }

    /// Reads stored messages. In a group, the reader gets only messages that were sent after the reader joined, unless
    /// the group's history is open (``GroupSummary/isHistoryOpen``).
    ///
    /// Messages that have expired stay in the store until the next purge. They are left out, and each read leaves out a
    /// bounded number of them. If a read finds only expired messages, the request waits for another turn and then
    /// continues. So a page without messages is always the last page.
    ///
    /// - Returns: false if too many reads wait already; the completion is then not called.
    private func readHistory(
        _ reading: HistoryReading,
        _ source: CommitSource,
        _ completion: @escaping @Sendable (Result<InboxReply, HermesError>) -> Void
    ) -> Bool {
        reads.run(for: source) { [self] in
            var reading = reading
            do throws(HermesError) {
                while true {
                    if let reply = try await step(&reading) { return completion(.success(reply)) }
                    // If there is no room for another turn, the read continues in this turn, because the work that it
                    // has done must be charged.
                    if readHistory(reading, source, completion) { return }
                }
            } catch {
                completion(.failure(error))
            }
        }
    }

    /// Reads a part of the history.
    ///
    /// - Returns: the reply; nil if the reading must continue.
    private func step(_ reading: inout HistoryReading) async throws(HermesError) -> InboxReply? {
        let start = try await firstSeq(of: reading)
        reading.after = start
        // Read one additional message, which shows whether more messages follow.
        let found = try await store.history(
            HistoryQuery(
                of: reading.conversation,
                after: start,
                before: reading.before,
                limit: reading.limit + 1,
                maxBytes: max(1, reading.maxBytes),
                unexpiredAt: time.expiryTime()
            )
        )
        reading.passed += found.passed
        let messages = found.messages
        if let next = found.next, messages.isEmpty, reading.before.map({ next < $0 }) ?? true {
            reading.before = next
            return nil
        }
        let bytes = messages.reduce(0) { $0 + $1.content.bytes.count }
        // The store itself ends a page at this size, or after it has left out many messages. In both cases, more
        // messages may follow.
        let isCut = bytes >= min(reading.maxBytes, StoreSettings.maxPageBytes) || found.next != nil
        let history = HistoryPage(
            newestOf: messages,
            limit: reading.limit,
            maxBytes: reading.maxBytes,
            isFoundCut: isCut && !messages.isEmpty
        )
        let entries = messages.count + reading.passed / ReadCost.passedPerEntry
        return InboxReply(answer: .history(history), cost: ReadCost(entries: entries, bytes: bytes))
    }

    /// Returns the conversation seq above which the reader may read.
    private func firstSeq(of reading: HistoryReading) async throws(HermesError) -> UInt64 {
        if let known = reading.after { return known }
        guard case .group(let group) = reading.conversation else { return 0 }
        guard let first = try await social.readableAfter(reading.reader, in: group) else { throw Group.notAMember }
        return first
    }

    private func conversations(
        of user: UserID,
        after place: ConversationPlace?,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> InboxReply {
        let limit = PageLimit.conversations.applied(to: limit)
        let found = try await store.conversations(of: user, after: place, limit: limit)
        let page = ConversationPage(firstOf: found, limit: limit, maxBytes: maxBytes)
        return InboxReply(answer: .conversations(page), cost: ReadCost(entries: found.count, bytes: 0))
    }

    // MARK: Changing

    /// Marks messages as read. The peer of a 1:1 conversation and the reader's other devices get the mark. In a group,
    /// the other members do not get it, because the marks would far outnumber the messages. The peer does not get the
    /// mark if one of the two accounts blocks the other account. A mark that is not above the last mark has no effect.
    private func markRead(
        _ conversation: ConversationID,
        upTo seq: UInt64,
        by reader: UserID,
        _ completion: @escaping @Sendable (Result<InboxReply, HermesError>) -> Void
    ) {
        do throws(HermesError) {
            _ = try conversation.recipients(for: reader)
            guard seq > 0 else { throw HermesError(.invalidArgument, "the seq to mark as read must be at least 1") }
            committer.submit(
                .markRead(conversation, by: reader, upTo: Self.storable(seq)) { completion($0.map { .done($0) }) }
            )
        } catch {
            completion(.failure(error))
        }
    }

    private func recall(
        _ id: MessageID,
        in conversation: ConversationID,
        by sender: UserID,
        _ completion: @escaping @Sendable (Result<InboxReply, HermesError>) -> Void
    ) {
        do throws(HermesError) {
            _ = try conversation.recipients(for: sender)
            let notBefore = time.now().advanced(by: .zero - recallWindow)
            committer.submit(
                .recall(id, conversation, by: sender, notBefore: notBefore) { completion($0.map { .done($0) }) }
            )
        } catch {
            completion(.failure(error))
        }
    }

    /// Limits a seq to the signed 64-bit numbers of stores. No real seq comes near this limit.
    static func storable(_ seq: UInt64) -> UInt64 { min(seq, UInt64(Int64.max)) }
}

extension InboxReply {
    /// The reply to a change.
    fileprivate static func done(_ reach: ChangeReach) -> InboxReply {
        InboxReply(answer: .done, cost: nil, reach: reach)
    }
}
