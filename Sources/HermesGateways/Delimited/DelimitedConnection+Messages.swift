// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// Messages: sending, acknowledging, reading.
extension DelimitedConnection {
    /// Sends a message. The hot path: no task, and no answer before the commit; the answer arrives as ``sent(_:_:)``.
    func send(_ request: Hermes_V1_Send, id: UInt64, from sender: Sender) {
        guard let conversation = conversation(request.to, id: id, from: sender) else { return }
        let content: MessageContent
        switch CanonicalContent.validated(request.content) {
        case .failure(let error): return fail(id, error)
        case .success(let bytes): content = bytes
        }
        let draft = MessageDraft(
            conversation: conversation,
            clientID: request.clientID.isEmpty ? nil : request.clientID,
            content: content,
            expiresAfter: request.expiresInSeconds == 0 ? nil : .seconds(Int64(request.expiresInSeconds))
        )
        connection.send(draft, from: sender.principal, correlation: id, messages: messenger.messages)
    }

    package func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>) {
        switch result {
        case .failure(let error): fail(correlation, error)
        case .success(let receipt): succeed(correlation, .receipt(DelimitedTranslation.receipt(receipt)))
        }
    }

    func synchronize(_ request: Hermes_V1_Synchronize, id: UInt64, from sender: Sender) {
        let limit = request.limit == 0 ? 200 : Int(min(request.limit, 1_000))
        let messages = messenger.messages
        connection.ask { completion in
            messages.entries(
                of: sender.principal.user,
                after: request.afterSeq,
                limit: limit,
                completion: completion
            )
        } reading: {
            $0.bytes
        } then: { [self] (result: Result<InboxPage, HermesError>) in
            switch result {
            case .failure(let error): fail(id, error)
            case .success(var page):
                connection.charge(.page(entries: page.entries.count))
                page = page.cut(toBytes: environment.settings.limits.outboundQueueBytes / 2)
                succeed(id, .synchronized(DelimitedTranslation.synchronized(page)))
                write(page.entries)
            }
        }
    }

    func markRead(_ request: Hermes_V1_MarkRead, id: UInt64, from sender: Sender) {
        guard let conversation = conversation(request.conversation, id: id, from: sender) else { return }
        let messages = messenger.messages
        connection.ask { completion in
            messages.markRead(conversation, upTo: request.upToSeq, by: sender.principal, completion: completion)
        } then: { [self] (result: Result<Void, HermesError>) in
            answer(id, result)
        }
    }

    func recall(_ request: Hermes_V1_Recall, id: UInt64, from sender: Sender) {
        guard let conversation = conversation(request.conversation, id: id, from: sender) else { return }
        guard let message = MessageID(request.messageID) else {
            return fail(id, HermesError(.invalidArgument, "message_id is 26 characters, as in the message"))
        }
        let messages = messenger.messages
        connection.ask { completion in
            messages.recall(message, in: conversation, by: sender.principal, completion: completion)
        } then: { [self] (result: Result<Void, HermesError>) in
            answer(id, result)
        }
    }

    func history(_ request: Hermes_V1_HistoryRequest, id: UInt64, from sender: Sender) {
        guard let conversation = conversation(request.conversation, id: id, from: sender) else { return }
        let limit = request.limit == 0 ? 50 : Int(min(request.limit, 500))
        let messages = messenger.messages
        let principal = sender.principal
        connection.ask { () async throws(HermesError) in
            // One more than requested, to know whether more follow.
            try await messages.history(
                of: conversation,
                before: request.beforeSeq == 0 ? nil : request.beforeSeq,
                limit: limit + 1,
                reader: principal
            )
        } reading: { found in
            found.reduce(0) { $0 + $1.content.bytes.count }
        } then: { [self] result in
            switch result {
            case .failure(let error): fail(id, error)
            case .success(let found):
                connection.charge(.page(entries: found.count))
                let maxBytes = environment.settings.limits.maxFrameBytes / 2
                let history = DelimitedTranslation.history(
                    found,
                    limit: limit,
                    maxBytes: maxBytes,
                    reader: principal.user
                )
                succeed(id, .history(history))
            }
        }
    }

    /// The conversation in a request; nil after an error was written.
    func conversation(_ conversation: Hermes_V1_Conversation, id: UInt64, from sender: Sender) -> ConversationID? {
        switch conversation.target {
        case .uid(let uid):
            guard let user = UserID(uid) else {
                fail(id, HermesError(.invalidArgument, "a uid is 1 to 2^31-1"))
                return nil
            }
            return .direct(between: sender.principal.user, and: user)
        case .groupID(let groupID):
            guard let group = RequestedIDs.group(groupID) else {
                fail(id, RequestedIDs.badGroup)
                return nil
            }
            return .group(group)
        case nil:
            fail(id, HermesError(.invalidArgument, "the conversation is missing: name a uid or a group"))
            return nil
        }
    }

    // MARK: Deliveries

    func write(_ entries: [InboxEntry]) {
        guard let principal else { return }
        for entry in entries {
            guard carrier == nil else {
                write(DelimitedTranslation.event(entry, reader: principal))
                continue
            }
            connection.write(entry, for: principal.user, form: isJSON ? "delimited/json" : "delimited") { buffer in
                let packet = DelimitedTranslation.event(entry, reader: principal)
                if isJSON {
                    try DelimitedFrame.write(json: packet, into: &buffer)
                } else {
                    try DelimitedFrame.write(packet, into: &buffer)
                }
            }
        }
    }
}
