// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Sends messages. ``InboxRequests`` answers all other requests about them. Thread-safe.
///
/// A send takes a completion instead of being `async`: thousands of sends share one commit and are completed together,
/// without a task for each. Completions run on the committer's thread, or at once on the caller's thread if the call is
/// refused. Completions must not block; a gateway posts the result to the mailbox of its event loop. Operations of one
/// caller are committed and completed in the order of its calls.
package final class MessageService: Sendable {
    /// The maximum length of a client id, in bytes.
    package static let maxClientIDBytes = 64

    private let time: any TimeSource
    private let settings: MessageSettings
    /// The committer. The services for contacts and groups share it, so that all changes have one order.
    let committer: InboxCommitter
    /// The gate in which all reads for accounts take turns. The services for contacts, groups and accounts share it.
    let reads: ReadGate
    private let ids = Mutex(MessageIDGenerator())
    private let stored: Mutex<StoredAllowance>

    /// Creates the service and starts its committer, which ends with ``shutdown()``.
    package init(
        store: any MessageStore,
        devices: DeviceRegistry,
        time: any TimeSource,
        settings: MessageSettings = MessageSettings()
    ) {
        self.time = time
        self.settings = settings
        stored = Mutex(StoredAllowance(bytes: settings.maxStoredBytes, each: MessageSettings.storedPeriod))
        committer = InboxCommitter(store: store, devices: devices, time: time, limits: settings.commit)
        reads = ReadGate(maxRunning: settings.maxConcurrentReads, maxWaiting: settings.maxWaitingReads)
    }

    /// Commits waiting operations and refuses further operations.
    package func shutdown() async { await committer.shutdown() }

    /// The committer's counts since the start.
    package var statistics: CommitStatistics { committer.statistics }

    /// The number of messages that were refused because their senders had used up their allowance of stored bytes.
    package var refusedStored: UInt64 { stored.withLock { $0.refused } }

    // MARK: Writing

    /// Validates the draft, commits it and delivers it to all attached devices of all recipients.
    ///
    /// Checks four rules. The sender must be one of the two accounts of a 1:1 conversation. The content and the client
    /// id must have an allowed length. The message must not expire before it is sent. The sender must not exceed its
    /// daily allowance of stored bytes. The store checks everything that can change: accounts, blocks, contacts,
    /// members, repetitions and the room in inboxes.
    ///
    /// - Parameters:
    ///   - draft: the message.
    ///   - sender: the sender.
    ///   - completion: called exactly once. Success means that the message is committed. Errors: `.invalidArgument`,
    ///     `.notFound`, `.forbidden`, `.clientIDConflict`, `.tooLarge`, `.rateLimited`, `.overloaded`,
    ///     `.storageUnavailable`, `.shuttingDown`.
    package func send(
        _ draft: MessageDraft,
        from sender: Principal,
        completion: @escaping @Sendable (Result<SendReceipt, HermesError>) -> Void
    ) {
        do throws(HermesError) {
            let append = try complete(draft, from: sender)
            let cost: Int
            do throws(HermesError) {
                // Charge the bytes that the sender may store in a day. This throws `.rateLimited`.
                cost = try stored.withLock { stored throws(HermesError) in try stored.take(append, now: time.uptime()) }
            } catch {
                return try repeated(append, or: error, completion: completion)
            }
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

    /// Answers a message that exceeds the sender's allowance. If the message is a repetition, it gets the receipt of
    /// the first message, and nothing is stored. Any other message is refused.
    private func repeated(
        _ append: MessageAppend,
        or refusal: HermesError,
        completion: @escaping @Sendable (Result<SendReceipt, HermesError>) -> Void
    ) throws(HermesError) {
        guard append.draft.clientID != nil else {
            stored.withLock { $0.countRefused() }
            throw refusal
        }
        var append = append
        append.mustBeRepetition = true
        committer.submit(
            .append(append) { [self] result in
                guard case .failure(let error) = result, error.code == refusal.code else { return completion(result) }
                stored.withLock { $0.countRefused() }
                completion(.failure(refusal))
            }
        )
    }

    /// Returns the seq that a device has acknowledged, if it is not in the store yet; otherwise 0.
    ///
    /// - Parameter proof: the device's strongest proof.
    func acknowledged(_ user: UserID, _ device: DeviceID, by proof: DeviceProof) -> UInt64 {
        committer.acknowledged(user, device, by: proof) ?? 0
    }

    // MARK: Rules

    private func complete(_ draft: MessageDraft, from sender: Principal) throws(HermesError) -> MessageAppend {
        // For a 1:1 conversation, the recipients are both accounts, and the sender must be one of them. For a group,
        // the list is empty, because the store finds the members.
        let recipients = try draft.conversation.recipients(for: sender.user)
        guard !draft.content.bytes.isEmpty else { throw HermesError(.invalidArgument, "the message has no content") }
        guard draft.content.bytes.count <= settings.maxContentBytes else {
            throw HermesError(.tooLarge, "the content is larger than \(settings.maxContentBytes) bytes")
        }
        if let clientID = draft.clientID, !(1...Self.maxClientIDBytes).contains(clientID.utf8.count) {
            throw HermesError(
                clientID.isEmpty ? .invalidArgument : .tooLarge,
                "the client id must have 1 to \(Self.maxClientIDBytes) bytes"
            )
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
}
