// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The bytes that each account's messages may add to the store in a period. Does no I/O.
///
/// The budgets of inboxes limit the waiting entries. This allowance limits the records of messages. A record outlives
/// the delivery of its message (``StoreSettings/recordPeriod``), even if recipients acknowledge at once. An account can
/// use its whole allowance at once, and regains it evenly over the period. So the store holds at most twice the
/// allowance for one account. Allowances are not stored: a new process begins with full allowances.
struct StoredAllowance {
    /// The approximate size of a message's rows and their index entries in the store, in bytes. The content is not
    /// included.
    static let recordBytes = 256
    /// The approximate size of the data of one recipient in a record, in bytes.
    static let recipientBytes = 16

    private var allowance: AccountAllowance
    /// The number of refused messages.
    private(set) var refused: UInt64 = 0

    init(bytes: Int, each period: Duration) { allowance = AccountAllowance(bytes, each: period) }

    /// Charges the sender of a message.
    ///
    /// - Returns: the charge, for ``settle(_:of:_:now:)``.
    /// - Throws: `.rateLimited`. If the message is not a repetition, ``countRefused()`` must follow.
    mutating func take(_ append: MessageAppend, now: Duration) throws(HermesError) -> Int {
        let cost = Self.recordBytes + append.draft.content.bytes.count
        guard let wait = allowance.take(cost, of: append.sender.user, now: now) else { return cost }
        throw HermesError(
            .rateLimited,
            "your messages fill the store too fast (limits.storedPerAccountPerDay); send fewer or smaller ones",
            retryAfter: wait
        )
    }

    mutating func countRefused() { refused += 1 }

    /// Settles the charge for a message. If the message was stored, this also charges the sender for the recipients.
    /// Otherwise the sender gets the charge back.
    mutating func settle(_ cost: Int, of user: UserID, _ result: Result<SendReceipt, HermesError>, now: Duration) {
        guard case .success(let receipt) = result, !receipt.isDuplicate else {
            return allowance.giveBack(cost, to: user)
        }
        allowance.charge(Self.recipientBytes * receipt.recipientCount, to: user, now: now)
    }
}
