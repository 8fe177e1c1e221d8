// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// Frames of type 3 and method 1: messages and the inbox.
extension IMPBConnection {
    // MARK: Sending

    func message(_ frame: IMPBFrame, from sender: Sender) {
        let seq = frame.seq
        guard let base: IMPB_base_msg = parse(frame.body, seq) else { return }
        switch base.type {
        case .c2C:
            guard let message: IMPB_C2C_msg = parse(base.body, seq) else { return }
            guard let receiver = UserID(message.to) else {
                return fail(seq, HermesError(.invalidArgument, "to is the receiver's uid, 1 to 2^31-1"))
            }
            let conversation = ConversationID.direct(between: sender.principal.user, and: receiver)
            send(message, to: conversation, seq: seq, from: sender)
        case .group:
            guard let message: IMPB_Group_msg = parse(base.body, seq) else { return }
            guard let group = GroupID(rawValue: message.groupID) else {
                return fail(seq, RequestedIDs.badGroup)
            }
            send(message, to: .group(group), seq: seq, from: sender)
        case .broadcast:
            broadcast(base, seq: seq, from: sender)
        case .custom:
            custom(base, seq: seq, from: sender)
        case .unused, .UNRECOGNIZED:
            fail(seq, HermesError(.unsupported, "messages of type \(base.type.rawValue) are not forwarded"))
        }
    }

    private func send(
        _ message: some IMPBChatMessage,
        to conversation: ConversationID,
        seq: UInt32,
        from sender: Sender
    ) {
        let content: MessageContent
        switch IMPBContent.canonical(message, counted: { connection.charge(.parts($0)) }) {
        case .failure(let error): return fail(seq, error)
        case .success(let canonical): content = canonical
        }
        let draft = MessageDraft(
            conversation: conversation,
            clientID: message.clientID.isEmpty ? nil : message.clientID,
            content: content
        )
        connection.send(draft, from: sender.principal, correlation: UInt64(seq), messages: messenger.messages)
    }

    package func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>) {
        let seq = UInt32(truncatingIfNeeded: correlation)
        switch result {
        case .failure(let error): fail(seq, error)
        case .success(let receipt): succeed(seq, IMPBTranslation.receipt(receipt))
        }
    }

    // MARK: Delivering

    func write(_ entries: [InboxEntry]) {
        guard let principal = link?.principal else { return }
        for entry in entries { write(entry, reader: principal) }
        if let last = entries.last { connection.reportWritten(last.lastSeq) }
    }

    private func write(_ entry: InboxEntry, reader: Principal) {
        switch IMPBTranslation.delivery(entry, reader: reader) {
        case .message(let message): write(message, seq: takeSeq(), type: .message)
        case .notification(let notification): write(notification, seq: takeSeq(), type: .notification)
        case nil: break
        }
    }

    // MARK: The inbox

    func inbox(_ message: IMPB_Message_msg, seq: UInt32, from sender: Sender) {
        switch message.cmd {
        case .pull:
            guard let request: IMPB_pull_request = parse(message.body, seq) else { return }
            pull(request, seq: seq, from: sender)
        case .ack:
            guard let request: IMPB_ack_request = parse(message.body, seq) else { return }
            sender.link.acknowledged(upTo: request.upToSeq)
            succeed(seq)
        case .history:
            guard let request: IMPB_history_request = parse(message.body, seq) else { return }
            history(request, seq: seq, from: sender)
        case .recall:
            guard let request: IMPB_recall_request = parse(message.body, seq) else { return }
            recall(request, seq: seq, from: sender)
        case .read:
            guard let request: IMPB_read_request = parse(message.body, seq) else { return }
            markRead(request, seq: seq, from: sender)
        case .UNRECOGNIZED:
            fail(seq, HermesError(.invalidArgument, "message command \(message.cmd.rawValue) has no meaning"))
        }
    }

    private func pull(_ request: IMPB_pull_request, seq: UInt32, from sender: Sender) {
        let limit = request.limit == 0 ? 200 : Int(min(request.limit, 1_000))
        let messages = messenger.messages
        connection.ask { completion in
            messages.entries(of: sender.principal.user, after: request.afterSeq, limit: limit, completion: completion)
        } reading: {
            $0.bytes
        } then: { [self] (result: Result<InboxPage, HermesError>) in
            switch result {
            case .failure(let error): fail(seq, error)
            case .success(var page):
                connection.charge(.page(entries: page.entries.count))
                // A page that does not fit into the queue would end the connection; the client continues behind this
                // one.
                page = page.cut(toBytes: environment.settings.limits.outboundQueueBytes / 2)
                var answer = IMPB_pull_response()
                answer.epoch = page.position.epoch
                answer.headSeq = page.position.head
                answer.oldestSeq = page.position.oldest
                answer.count = UInt32(clamping: page.entries.count)
                succeed(seq, answer)
                for entry in page.entries { write(entry, reader: sender.principal) }
            }
        }
    }

    private func history(_ request: IMPB_history_request, seq: UInt32, from sender: Sender) {
        guard let conversation = conversation(request.conversation, seq: seq, from: sender) else { return }
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
            case .failure(let error): fail(seq, error)
            case .success(let found):
                connection.charge(.page(entries: found.count))
                succeed(seq, IMPBTranslation.history(found, limit: limit, reader: principal))
            }
        }
    }

    private func recall(_ request: IMPB_recall_request, seq: UInt32, from sender: Sender) {
        guard let conversation = conversation(request.conversation, seq: seq, from: sender) else { return }
        guard let message = MessageID(request.messageID) else {
            return fail(seq, HermesError(.invalidArgument, "message_id is 26 characters, as in the message"))
        }
        let messages = messenger.messages
        connection.ask { completion in
            messages.recall(message, in: conversation, by: sender.principal, completion: completion)
        } then: { [self] (result: Result<Void, HermesError>) in
            answer(seq, result)
        }
    }

    private func markRead(_ request: IMPB_read_request, seq: UInt32, from sender: Sender) {
        guard let conversation = conversation(request.conversation, seq: seq, from: sender) else { return }
        let messages = messenger.messages
        connection.ask { completion in
            messages.markRead(conversation, upTo: request.upToSeq, by: sender.principal, completion: completion)
        } then: { [self] (result: Result<Void, HermesError>) in
            answer(seq, result)
        }
    }

    func answer(_ seq: UInt32, _ result: Result<Void, HermesError>) {
        switch result {
        case .failure(let error): fail(seq, error)
        case .success: succeed(seq)
        }
    }

    private func conversation(_ id: IMPB_Conversation_id, seq: UInt32, from sender: Sender) -> ConversationID? {
        if id.groupID != 0 {
            guard id.uid == 0, let group = RequestedIDs.group(id.groupID) else {
                fail(seq, HermesError(.invalidArgument, "name a uid or a group, 1 to 2^31-1"))
                return nil
            }
            return .group(group)
        }
        guard let peer = UserID(id.uid) else {
            fail(seq, HermesError(.invalidArgument, "conversation.uid is 1 to 2^31-1"))
            return nil
        }
        return .direct(between: sender.principal.user, and: peer)
    }
}
