// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How one account stands to another, as the first one sees it.
package enum ContactState: Sendable, Hashable, CaseIterable {
    /// Both agreed.
    case accepted
    /// This side asked.
    case requested
    /// The other side asked.
    case incoming
    /// This side blocked the other.
    case blocked
}

/// An entry of somebody's list of contacts.
package struct Contact: Sendable, Hashable {
    /// The other.
    package let account: Account
    package let state: ContactState

    package init(account: Account, state: ContactState) {
        self.account = account
        self.state = state
    }
}

/// What one account does about another.
package enum ContactCommand: Sendable, Hashable, CaseIterable {
    /// Asks to be contacts.
    case request
    /// Says yes to the other's request.
    case accept
    /// Says no to the other's request.
    case decline
    /// Ends it for both, or takes back the own request.
    case remove
    /// Lets neither 1:1 messages nor requests of the other in any more.
    case block
    /// The reverse of ``block``.
    case unblock
}

/// What the other is told, as an entry of its inbox.
package struct ContactEvent: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable {
        case requested = 1
        case accepted = 2
        case declined = 3
        case removed = 4
    }

    package let kind: Kind
    /// Who did it.
    package let user: UserID
    /// Its name then.
    package let nickName: String
    /// What it told, at most ``maxMessageBytes``.
    package let message: String

    /// The longest text that goes with a request or an answer, in bytes.
    package static let maxMessageBytes = 256

    package init(kind: Kind, user: UserID, nickName: String, message: String) {
        self.kind = kind
        self.user = user
        self.nickName = nickName
        self.message = message
    }
}
