// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The bytes that each account's messages may add to the store in a period. Pure.
///
/// The budgets of inboxes bound the waiting entries. This allowance bounds the records that stay when recipients
/// acknowledge at once: a message's record outlives its delivery (``StoreSettings/recordPeriod``). The allowance can be
/// used at once and returns evenly, so of one account there is at most twice as much in the store. It is not stored: a
/// new process begins with full ones.
struct StoredAllowance {
    /// The approximate size of a message's rows and of their places in the indices, without content.
    static let recordBytes = 256
    /// The approximate size of one recipient's place in a record.
    static let recipientBytes = 16

    private var allowance: AccountAllowance
    /// The number of refused messages.
    private(set) var refused: UInt64 = 0

    init(bytes: Int, each period: Duration) { allowance = AccountAllowance(bytes, each: period) }

    /// Charges the sender of a message.
    ///
    /// - Returns: the charge, for ``settle(_:of:_:now:)``.
    /// - Throws: `.rateLimited`.
    mutating func take(_ append: MessageAppend, now: Duration) throws(HermesError) -> Int {
        let cost = Self.recordBytes + append.draft.content.bytes.count
        guard let wait = allowance.take(cost, of: append.sender.user, now: now) else { return cost }
        refused += 1
        throw HermesError(
            .rateLimited,
            "your messages fill the store too fast (limits.storedPerAccountPerDay); send fewer or smaller ones",
            retryAfter: wait
        )
    }

    /// The message was stored; if it was not, the charge is given back.
    mutating func settle(_ cost: Int, of user: UserID, _ result: Result<SendReceipt, HermesError>, now: Duration) {
        guard case .success(let receipt) = result, !receipt.isDuplicate else {
            return allowance.giveBack(cost, to: user)
        }
        allowance.charge(Self.recipientBytes * receipt.recipientCount, to: user, now: now)
    }
}
