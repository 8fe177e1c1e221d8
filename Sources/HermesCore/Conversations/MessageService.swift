// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Sends, acknowledges and reads messages. Thread-safe.
///
/// The hot calls take a completion instead of being `async`: thousands of them share one commit and are completed
/// together, without a task each. Completions run on the committer's thread, or at once on the caller's if the call is
/// refused. They must not block; a gateway posts the result to its loop's mailbox. Operations of one caller are
/// committed and completed in the order of its calls.
package final class MessageService: Sendable {
    /// The longest client id, in bytes.
    package static let maxClientIDBytes = 64
    /// The most entries or messages that one read returns.
    package static let maxPageSize = 1000

    private let store: any MessageStore
    private let social: any SocialStore
    private let time: any TimeSource
    private let settings: MessageSettings
    /// The committer, which contacts and groups share, so that all changes have one order.
    let committer: InboxCommitter
    /// The turns of all reads for accounts; contacts, groups and accounts share it.
    let reads: ReadGate
    private let ids = Mutex(MessageIDGenerator())
    private let stored: Mutex<StoredAllowance>

    /// Creates the service and starts its committer, which ends with ``shutdown()``.
    package init(
        store: any MessageStore,
        social: any SocialStore,
        devices: DeviceRegistry,
        time: any TimeSource,
        settings: MessageSettings = MessageSettings()
    ) {
        self.store = store
        self.social = social
        self.time = time
        self.settings = settings
        stored = Mutex(StoredAllowance(bytes: settings.maxStoredBytes, each: MessageSettings.storedPeriod))
        committer = InboxCommitter(store: store, devices: devices, time: time, limits: settings.commit)
        reads = ReadGate(maxRunning: settings.maxConcurrentReads, maxWaiting: settings.maxWaitingReads)
    }

    /// Commits waiting operations and refuses further ones.
    package func shutdown() async { await committer.shutdown() }

    /// The committer's counts since the start.
    package var statistics: CommitStatistics { committer.statistics }

    /// The number of messages that were refused because their senders had stored as much as they may.
    package var refusedStored: UInt64 { stored.withLock { $0.refused } }

    // MARK: Writing

    /// Validates the draft, commits it and delivers it to all attached devices of all recipients.
    ///
    /// - Parameters:
    ///   - draft: the message.
    ///   - sender: the sender.
    ///   - completion: called exactly once. Success means committed. Errors: `.invalidArgument`, `.notFound`,
    ///     `.forbidden`, `.clientIDConflict`, `.tooLarge`, `.rateLimited`, `.overloaded`, `.storageUnavailable`,
    ///     `.shuttingDown`.
    package func send(
        _ draft: MessageDraft,
        from sender: Principal,
        completion: @escaping @Sendable (Result<SendReceipt, HermesError>) -> Void
    ) {
        do throws(HermesError) {
            let append = try complete(draft, from: sender)
            let cost = try stored.withLock { stored throws(HermesError) in try stored.take(append, now: time.uptime()) }
            let user = sender.user
            committer.submit(
                .append(append) { [self] result in
                    stored.withLock { $0.settle(cost, of: user, result, now: time.uptime()) }
                    completion(result)
                }
            )
        } catch {
            completion(.failure(error))
        }
    }

    /// Moves the device's cursor. Lazy and coalesced: a lost one causes a repetition, never a loss.
    package func acknowledge(_ principal: Principal, upTo seq: UInt64) {
        guard seq > 0 else { return }
        committer.acknowledge(
            principal.user,
            principal.device,
            upTo: Self.storable(seq),
            isProven: principal.isProven
        )
    }

    /// Marks messages as read, for the peer of a 1:1 conversation and for the reader's own other devices. In a group
    /// the other members are not told, because the marks would far outnumber the messages. A peer that blocks the
    /// reader, or is blocked, is not told. A mark that is not ahead of the last one has no effect.
    package func markRead(
        _ conversation: ConversationID,
        upTo seq: UInt64,
        by reader: Principal,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        do throws(HermesError) {
            _ = try recipients(of: conversation, for: reader.user)
            guard seq > 0 else { throw HermesError(.invalidArgument, "the seq to mark as read must be at least 1") }
            committer.submit(.markRead(conversation, by: reader.user, upTo: Self.storable(seq), completion))
        } catch {
            completion(.failure(error))
        }
    }

    /// Recalls one of the sender's own messages.
    package func recall(
        _ id: MessageID,
        in conversation: ConversationID,
        by sender: Principal,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        do throws(HermesError) {
            _ = try recipients(of: conversation, for: sender.user)
            let notBefore = time.now().advanced(by: .zero - settings.recallWindow)
            committer.submit(.recall(id, conversation, by: sender.user, notBefore: notBefore, completion))
        } catch {
            completion(.failure(error))
        }
    }

    /// A device's acknowledgement that is not in the store yet; 0 if there is none.
    func acknowledged(_ user: UserID, _ device: DeviceID) -> UInt64 { committer.acknowledged(user, device) ?? 0 }

    // MARK: Reading

    /// Reads a page of the inbox. `completion` runs off the event loops.
    ///
    /// - Parameter source: whose turn it takes; nil: the user's.
    package func entries(
        of user: UserID,
        after seq: UInt64,
        limit: Int,
        source: CommitSource? = nil,
        completion: @escaping @Sendable (Result<InboxPage, HermesError>) -> Void
    ) {
        let store = store
        let time = time
        let seq = Self.storable(seq)
        let limit = min(max(1, limit), Self.maxPageSize)
        let isAccepted = reads.run(for: source ?? .account(user)) {
            do throws(HermesError) {
                let page = try await store.entries(of: user, after: seq, limit: limit)
                completion(.success(page.withoutExpired(at: time.now())))
            } catch {
                completion(.failure(error))
            }
        }
        if !isAccepted { completion(.failure(ReadGate.tooManyReads)) }
    }

    /// The position of a user's inbox.
    package func position(of user: UserID) async throws(HermesError) -> InboxPosition {
        try await reads.turn(of: .account(user)) { () async throws(HermesError) in try await store.position(of: user) }
    }

    /// Reads stored messages of a conversation that `reader` takes part in; of a group those since it joined, unless the group
    /// says otherwise (``GroupSummary/isHistoryOpen``).
    ///
    /// - Parameter source: whose turn it takes; nil: the reader's.
    package func history(
        of conversation: ConversationID,
        before seq: UInt64?,
        limit: Int,
        reader: Principal,
        source: CommitSource? = nil
    ) async throws(HermesError) -> [Message] {
        _ = try recipients(of: conversation, for: reader.user)
        let limit = min(max(1, limit), Self.maxPageSize)
        return try await reads.turn(of: source ?? .account(reader.user)) { () async throws(HermesError) in
            var start: UInt64 = 0
            if case .group(let group) = conversation {
                guard let first = try await social.readableAfter(reader.user, in: group) else {
                    throw Group.notAMember
                }
                start = first
            }
            let messages = try await store.history(of: conversation, before: seq.map(Self.storable), limit: limit)
            return start == 0 ? messages : messages.filter { $0.conversationSeq > start }
        }
    }

    /// Reads a page of an account's conversations. The pages of all callers wait for one another like reads of inboxes.
    ///
    /// - Throws: `.overloaded`, `.storageUnavailable`.
    package func conversations(
        of user: UserID,
        after place: ConversationPlace?,
        limit: Int
    ) async throws(HermesError) -> ConversationPage {
        let limit = min(max(1, limit), Self.maxPageSize)
        // Back ends and operators ask, so the reads are not those of the account.
        let found = try await reads.turn(of: .server) { () async throws(HermesError) in
            try await store.conversations(of: user, after: place, limit: limit)
        }
        return ConversationPage(conversations: found, next: found.count < limit ? nil : found.last?.place)
    }

    // MARK: Rules

    private func complete(_ draft: MessageDraft, from sender: Principal) throws(HermesError) -> MessageAppend {
        let recipients = try recipients(of: draft.conversation, for: sender.user)
        guard !draft.content.bytes.isEmpty else { throw HermesError(.invalidArgument, "the message has no content") }
        guard draft.content.bytes.count <= settings.maxContentBytes else {
            throw HermesError(.tooLarge, "the content is larger than \(settings.maxContentBytes) bytes")
        }
        if let clientID = draft.clientID, !(1...Self.maxClientIDBytes).contains(clientID.utf8.count) {
            throw HermesError(.invalidArgument, "the client id must have 1 to \(Self.maxClientIDBytes) bytes")
        }
        if let expiry = draft.expiresAfter, expiry <= .zero {
            throw HermesError(.invalidArgument, "the message expires before it is sent")
        }
        let now = time.now()
        return MessageAppend(
            id: ids.withLock { $0.next(now: now) },
            draft: draft,
            sender: sender,
            sentAt: now,
            expiresAt: now.advanced(by: min(draft.expiresAfter ?? settings.retention, settings.retention)),
            recipients: recipients,
            requiresContact: settings.acceptedFrom == .contacts
        )
    }

    /// The accounts that get an entry, the sender first; also checks that the sender takes part. Empty for a group: the
    /// commit decides, in one order with the changes of members.
    private func recipients(of conversation: ConversationID, for user: UserID) throws(HermesError) -> [UserID] {
        switch conversation {
        case .group:
            return []
        case .direct(let one, let other):
            guard one <= other, let peer = conversation.peer(of: user) else {
                throw HermesError(.forbidden, "you do not take part in this conversation")
            }
            return peer == user ? [user] : [user, peer]
        }
    }

    /// Limits a seq to the signed 64 bits of stores; no real seq comes near.
    private static func storable(_ seq: UInt64) -> UInt64 { min(seq, UInt64(Int64.max)) }
}
