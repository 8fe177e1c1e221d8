// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A push operation for ``MessageStore/commit(_:now:)``.
package enum PushOperation: Sendable {
    /// Appends a push to the inboxes of a few distinct recipients. Accounts that do not exist are left out.
    case append(Push, recipients: [UserID], claim: PushClaim?)
    /// Stores a push to many recipients as a job. ``fanOut(_:limit:)`` then appends it to their inboxes.
    case accept(PushJob, claim: PushClaim?)
    /// Appends a stored push to the inboxes of the next recipients, and moves the job's cursor past them. The last step
    /// removes the job. Does nothing if there is no such job. Ends the job if its push has expired. If the clock cannot
    /// be trusted for the job (``FanOutLimit/storedSince``), an expired push is held back instead
    /// (``PushOutcome/isHeldBack``).
    case fanOut(MessageID, limit: FanOutLimit)
    /// Takes the claim and leaves it open. No push is stored. Until the claim is settled, taking it again yields
    /// ``PushOutcome/openAnswer``.
    case claim(PushClaim)
    /// Settles an open claim, because its push is done.
    case settle(PushClaim)
    /// Looks for the answer to the first push with this claim. Does not take the claim.
    case find(PushClaim)

    /// The operation's approximate memory, in bytes.
    package var weight: Int {
        switch self {
        case .append(let push, let recipients, _): push.weight &+ 8 &* recipients.count
        case .accept(let job, _): job.push.weight &+ job.target.weight
        case .fanOut: 4_096
        case .claim(let claim), .settle(let claim), .find(let claim): claim.answer.count
        }
    }
}

/// The limits of one step of a fan-out.
package struct FanOutLimit: Sendable, Hashable, ExpressibleByIntegerLiteral {
    /// The largest number of recipients.
    package let recipients: Int
    /// Only jobs that were accepted at this time or later can expire; nil if all jobs can (``ExpiryTime``).
    package let storedSince: Timestamp?

    package init(_ recipients: Int, storedSince: Timestamp? = nil) {
        self.recipients = recipients
        self.storedSince = storedSince
    }

    package init(integerLiteral recipients: Int) { self.init(recipients) }

    /// Whether the job of an expired push ends. If this is false, the push is held back.
    package func ends(_ push: Push, now: Timestamp) -> Bool {
        ExpiryTime(now: now, storedSince: storedSince).isOver(push.expiresAt, storedAt: push.id.timestamp)
    }
}

/// An accepted push to many recipients. It is not complete yet.
package struct PushJob: Sendable, Hashable {
    /// The recipients.
    package enum Target: Sendable, Hashable {
        /// These distinct users; users that do not exist are left out.
        case users([UserID])
        /// Every account that exists when the push is accepted, except accounts that are disabled or deleted when their
        /// turn comes.
        case everyone

        var weight: Int {
            switch self {
            case .users(let users): 8 &* users.count
            case .everyone: 0
            }
        }
    }

    package let push: Push
    package let target: Target

    package init(push: Push, target: Target) {
        self.push = push
        self.target = target
    }
}

/// Makes repeated posts safe: a second post under the same key gets the first answer and sends nothing.
package struct PushClaim: Sendable, Hashable {
    /// The time for which a key is remembered.
    package static let period = Duration.seconds(24 * 3600)

    /// The key's owner. Keys of different owners are unrelated.
    package let owner: String
    package let key: String
    /// A hash of the post, to distinguish a repetition from a mistake.
    package let contentHash: [UInt8]
    /// The answer; opaque to the core.
    package let answer: [UInt8]
    /// Only claims that were stored at this time or later can count as expired when this claim is compared with them;
    /// nil if all claims can (``ExpiryTime``).
    package var storedSince: Timestamp?

    package init(owner: String, key: String, contentHash: [UInt8], answer: [UInt8]) {
        self.owner = owner
        self.key = key
        self.contentHash = contentHash
        self.answer = answer
    }

    /// Whether an earlier claim of this key has expired. The expiry of the earlier claim is `expiry`.
    package func comesAfter(_ expiry: Timestamp, now: Timestamp) -> Bool {
        let storedAt = expiry.advanced(by: .zero - Self.period)
        return ExpiryTime(now: now, storedSince: storedSince).isOver(expiry, storedAt: storedAt)
    }

    package static let conflict = HermesError(
        .clientIDConflict,
        "This idempotency key was used for another push. Give each push a key of its own."
    )
}

/// The outcome of a ``PushOperation``.
package struct PushOutcome: Sendable {
    /// The new entry in each recipient's inbox.
    package var deliveries: [InboxDelivery]
    /// The answer to the first push with this key; nil if there was no such push. If there is an answer, nothing was
    /// changed.
    package var firstAnswer: [UInt8]?
    /// The answer to the first push with this key if it is unknown whether that push was completed; otherwise nil.
    package var openAnswer: [UInt8]?
    /// Whether the fan-out is complete.
    package var isDone: Bool
    /// Whether the fan-out must be tried again later, because its push seems to have expired but the clock may be
    /// wrong.
    package var isHeldBack = false

    package init(deliveries: [InboxDelivery] = [], firstAnswer: [UInt8]? = nil, isDone: Bool = true) {
        self.deliveries = deliveries
        self.firstAnswer = firstAnswer
        self.isDone = isDone
    }

    /// The outcome of a fan-out that must be tried again later.
    package static var heldBack: PushOutcome {
        var outcome = PushOutcome(isDone: false)
        outcome.isHeldBack = true
        return outcome
    }
}
