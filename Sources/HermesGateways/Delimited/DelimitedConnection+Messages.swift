// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// Sends messages, and passes requests to the inbox.
extension DelimitedConnection {
    /// Sends a message. This is the hot path: it starts no task, and does not wait for the commit. The result arrives
    /// in ``sent(_:_:)``.
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

    /// Returns the conversation that a request names. If it is not valid, this writes an error and returns nil.
    func conversation(_ conversation: Hermes_V1_Conversation, id: UInt64, from sender: Sender) -> ConversationID? {
        do throws(HermesError) {
            return try DelimitedTranslation.conversation(conversation, of: sender.principal.user)
        } catch {
            fail(id, error)
            return nil
        }
    }

    // MARK: The inbox

    /// Passes a packet's request to the inbox, and writes the answer when it arrives.
    func askInbox(_ packet: Hermes_V1_Packet, from sender: Sender) {
        let id = packet.id
        let user = sender.principal.user
        do throws(HermesError) {
            guard let request = try DelimitedTranslation.inboxRequest(packet, by: user) else {
                return fail(id, HermesError(.unsupported, "this is not a request to the inbox"))
            }
            sender.link.ask(request) { [self] result in
                switch result {
                case .failure(let error): fail(id, error)
                case .success(let answer): succeed(id, DelimitedTranslation.value(of: answer, reader: user))
                }
            }
        } catch {
            fail(id, error)
        }
    }

    // MARK: Deliveries

    func write(_ entry: InboxEntry) {
        guard let principal else { return }
        guard carrier == nil else { return write(DelimitedTranslation.event(entry, reader: principal)) }
        connection.write(entry, for: principal.user, form: isJSON ? "delimited/json" : "delimited") { buffer in
            try encode(DelimitedTranslation.event(entry, reader: principal), into: &buffer)
        }
    }
}
