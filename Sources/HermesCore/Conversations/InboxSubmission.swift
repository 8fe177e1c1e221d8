// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A write operation, and the function that gets its outcome. The function is called on the committer's thread, or on
/// the caller's thread if the operation is refused at once.
struct InboxSubmission: Sendable {
    typealias Completion<Value> = @Sendable (Result<Value, HermesError>) -> Void

    let operation: WriteOperation
    /// The function that gets the outcome. Its second argument is the number of connected devices that get the entries.
    let complete: @Sendable (Result<WriteOutcome, HermesError>, Int) -> Void

    /// - Parameter value: converts an outcome and the number of devices to the caller's value; returns nil if the
    ///   outcome does not belong to this kind of operation.
    private init<Value>(
        _ operation: WriteOperation,
        _ completion: @escaping Completion<Value>,
        _ value: @escaping @Sendable (WriteOutcome, Int) -> Value?
    ) {
        self.operation = operation
        complete = { result, devices in
            switch result {
            case .failure(let error), .success(.refused(let error)):
                completion(.failure(error))
            case .success(let outcome):
                completion(value(outcome, devices).map { .success($0) } ?? .failure(Self.isOfAnother))
            }
        }
    }

    private static let isOfAnother = HermesError(.internalError, "the store answered another operation")

    static func append(_ message: MessageAppend, _ completion: @escaping Completion<SendReceipt>) -> Self {
        Self(.append(message), completion) { outcome, devices in
            switch outcome {
            case .appended(var receipt, let deliveries):
                receipt.recipientCount = deliveries.count
                receipt.deviceCount = devices
                return receipt
            case .duplicate(let receipt): return receipt
            default: return nil
            }
        }
    }

    static func markRead(
        _ conversation: ConversationID,
        by user: UserID,
        upTo seq: UInt64,
        _ completion: @escaping Completion<ChangeReach>
    ) -> Self {
        Self(.markRead(conversation, by: user, upTo: seq), completion, reach)
    }

    static func recall(
        _ id: MessageID,
        _ conversation: ConversationID,
        by user: UserID,
        notBefore: Timestamp,
        _ completion: @escaping Completion<ChangeReach>
    ) -> Self {
        Self(.recall(id, conversation, by: user, notBefore: notBefore), completion, reach)
    }

    static func contact(
        _ command: ContactCommand,
        by principal: Principal,
        peer: UserID,
        message: String,
        _ completion: @escaping Completion<Void>
    ) -> Self {
        Self(.contact(command, by: principal, peer: peer, message: message), completion) { outcome, _ in
            if case .eventAppended = outcome { () } else { nil }
        }
    }

    private static func reach(_ outcome: WriteOutcome, _ devices: Int) -> ChangeReach? {
        guard case .eventAppended(let deliveries) = outcome else { return nil }
        return ChangeReach(entries: deliveries.count, devices: devices)
    }

    static func group(
        _ command: GroupCommand,
        by user: UserID,
        requiresContacts: Bool,
        _ completion: @escaping Completion<(group: Group, reach: ChangeReach)>
    ) -> Self {
        Self(.group(command, by: user, requiresContacts: requiresContacts), completion) { outcome, devices in
            guard case .groupChanged(let group, let deliveries) = outcome else { return nil }
            return (group, ChangeReach(entries: deliveries.count, devices: devices))
        }
    }

    static func push(_ operation: PushOperation, _ completion: @escaping Completion<PushOutcome>) -> Self {
        Self(.push(operation), completion) { outcome, _ in
            if case .pushed(let outcome) = outcome { outcome } else { nil }
        }
    }

    static func openDevice(_ opening: DeviceOpening, _ completion: @escaping Completion<Device>) -> Self {
        Self(.openDevice(opening), completion) { outcome, _ in
            if case .deviceOpened(let device) = outcome { device } else { nil }
        }
    }

    /// - Parameter completion: gets true if the deletion is complete.
    static func deleteAccount(_ user: UserID, _ completion: @escaping Completion<Bool>) -> Self {
        Self(.deleteAccount(user), completion) { outcome, _ in
            if case .deleted(_, let isDone) = outcome { isDone } else { nil }
        }
    }

    /// The source of the operation. Sources take turns in the commits.
    var source: CommitSource {
        switch operation {
        case .append(let message): .account(message.sender.user)
        case .acknowledge(let user, _, _, _), .markRead(_, let user, _), .recall(_, _, let user, _): .account(user)
        case .contact(_, let principal, _, _): .account(principal.user)
        case .group(_, let user, _): .account(user)
        // Anybody may claim to be a device. So all claims are one source: they wait for one another, and do not delay
        // the account.
        case .openDevice(let opening): opening.proof > .claim ? .account(opening.user) : CommitSource(host: nil)
        case .push, .deleteAccount: .server
        }
    }

    /// The approximate memory of the operation, in bytes.
    var bytes: Int {
        switch operation {
        case .append(let message): 512 + message.draft.content.bytes.count + 8 * message.recipients.count
        case .push(let push): 512 + push.weight
        case .markRead, .acknowledge, .recall, .contact, .group, .deleteAccount, .openDevice: 512
        }
    }
}
