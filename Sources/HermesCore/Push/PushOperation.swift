// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What ``MessageStore/commit(_:now:)`` does about pushes.
package enum PushOperation: Sendable {
    /// Appends a push to the inboxes of a few, each named once; accounts that do not exist are left out.
    case append(Push, recipients: [UserID], claim: PushClaim?)
    /// Keeps a push for many, to be appended with ``fanOut(_:limit:)``.
    case accept(PushJob, claim: PushClaim?)
    /// Appends a kept push to the inboxes of the next `limit` recipients and moves the job's cursor behind them; the job
    /// goes with the last of them. Does nothing if there is no such job, and ends it if its push has expired.
    case fanOut(MessageID, limit: Int)
    /// Only takes the claim, for what is not stored, and leaves it open: until it is settled, whoever takes it again finds
    /// ``PushOutcome/openAnswer``.
    case claim(PushClaim)
    /// What an open claim was taken for is done.
    case settle(PushClaim)

    /// What the operation holds in memory, in bytes, about.
    package var weight: Int {
        switch self {
        case .append(let push, let recipients, _): push.weight &+ 8 &* recipients.count
        case .accept(let job, _): job.push.weight &+ job.target.weight
        case .fanOut: 4_096
        case .claim(let claim), .settle(let claim): claim.answer.count
        }
    }
}

/// A push for many that is accepted and not with all of them yet.
package struct PushJob: Sendable, Hashable {
    /// Who gets it.
    package enum Target: Sendable, Hashable {
        /// These, each named once; those that do not exist are left out.
        case users([UserID])
        /// Every account there is at the commit, but for those that are disabled.
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

/// Makes posting again safe: who posts the same under the same key gets the first answer, and nothing is sent again.
package struct PushClaim: Sendable, Hashable {
    /// How long a key is remembered.
    package static let period = Duration.seconds(24 * 3600)

    /// Whose key it is; keys of different owners have nothing to do with each other.
    package let owner: String
    package let key: String
    /// Of what was posted, to tell a repetition from a mistake.
    package let contentHash: [UInt8]
    /// What was answered; opaque to the core.
    package let answer: [UInt8]

    package init(owner: String, key: String, contentHash: [UInt8], answer: [UInt8]) {
        self.owner = owner
        self.key = key
        self.contentHash = contentHash
        self.answer = answer
    }

    package static let conflict = HermesError(
        .clientIDConflict,
        "This idempotency key was used for another push. Give each push a key of its own."
    )
}

/// What became of a ``PushOperation``.
package struct PushOutcome: Sendable {
    /// The entry as it stands in each recipient's inbox.
    package var deliveries: [InboxDelivery]
    /// The answer to the first push with this key; nil if this was the first. Then nothing was changed.
    package var firstAnswer: [UInt8]?
    /// The answer to the first push with this key, of which nobody knows whether it was done.
    package var openAnswer: [UInt8]?
    /// Whether nothing is left to do of a fan-out.
    package var isDone: Bool

    package init(deliveries: [InboxDelivery] = [], firstAnswer: [UInt8]? = nil, isDone: Bool = true) {
        self.deliveries = deliveries
        self.firstAnswer = firstAnswer
        self.isDone = isDone
    }
}
