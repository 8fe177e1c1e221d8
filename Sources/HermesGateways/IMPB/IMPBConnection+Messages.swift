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
            let receiver: UserID
            do throws(HermesError) { receiver = try RequestedIDs.user(message.to) } catch { return fail(seq, error) }
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

    func write(_ entry: InboxEntry) {
        guard let principal = link?.principal else { return }
        switch IMPBTranslation.delivery(entry, reader: principal) {
        case .message(let message): write(message, seq: takeSeq(), type: .message)
        case .notification(let notification): write(notification, seq: takeSeq(), type: .notification)
        // A client that acknowledges entries itself asks for each missing seq, so it also gets the seqs of entries for
        // other devices.
        case nil where isAcknowledgingItself:
            write(IMPBTranslation.numbered(entry, reader: principal), seq: takeSeq(), type: .notification)
        case nil: break
        }
        connection.reportWritten(entry.lastSeq)
    }

    // MARK: The inbox

    func inbox(_ message: IMPB_Message_msg, seq: UInt32, from sender: Sender) {
        let user = sender.principal.user
        switch message.cmd {
        case .ack:
            guard let request: IMPB_ack_request = parse(message.body, seq) else { return }
            sender.link.acknowledged(upTo: request.upToSeq)
            succeed(seq)
        case .pull:
            guard let request: IMPB_pull_request = parse(message.body, seq) else { return }
            ask(.success(IMPBTranslation.inboxRequest(request)), seq: seq, from: sender)
        case .history:
            guard let request: IMPB_history_request = parse(message.body, seq) else { return }
            ask(IMPBTranslation.inboxRequest(request, by: user), seq: seq, from: sender)
        case .recall:
            guard let request: IMPB_recall_request = parse(message.body, seq) else { return }
            ask(IMPBTranslation.inboxRequest(request, by: user), seq: seq, from: sender)
        case .read:
            guard let request: IMPB_read_request = parse(message.body, seq) else { return }
            ask(IMPBTranslation.inboxRequest(request, by: user), seq: seq, from: sender)
        case .UNRECOGNIZED:
            fail(seq, HermesError(.invalidArgument, "message command \(message.cmd.rawValue) has no meaning"))
        }
    }

    /// Passes a request to the inbox, and writes the answer when it arrives.
    private func ask(_ request: Result<InboxRequest, HermesError>, seq: UInt32, from sender: Sender) {
        let reader = sender.principal
        switch request {
        case .failure(let error): fail(seq, error)
        case .success(let request):
            sender.link.ask(request) { [self] result in
                switch result {
                case .failure(let error): fail(seq, error)
                case .success(.page(let page)): succeed(seq, IMPBTranslation.pulled(page))
                case .success(.history(let page)): succeed(seq, IMPBTranslation.history(page, reader: reader))
                // IMPB has no request for the list of conversations.
                case .success(.conversations), .success(.done): succeed(seq)
                }
            }
        }
    }

    func answer(_ seq: UInt32, _ result: Result<Void, HermesError>) {
        switch result {
        case .failure(let error): fail(seq, error)
        case .success: succeed(seq)
        }
    }
}
