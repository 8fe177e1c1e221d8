// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The relation of one account to another, as the first account sees it.
package enum ContactState: Sendable, Hashable, CaseIterable {
    /// Both accounts agreed to the contact.
    case accepted
    /// This account asked for contact.
    case requested
    /// The other account asked for contact.
    case incoming
    /// This account blocked the other account.
    case blocked
}

/// An entry of a contact list.
package struct Contact: Sendable, Hashable {
    /// The other account.
    package let account: Account
    package let state: ContactState

    package init(account: Account, state: ContactState) {
        self.account = account
        self.state = state
    }
}

/// An action of one account towards another.
package enum ContactCommand: Sendable, Hashable, CaseIterable {
    /// Asks for contact.
    case request
    /// Accepts the other account's request.
    case accept
    /// Declines the other account's request.
    case decline
    /// Ends the contact for both accounts, withdraws this account's request, or declines the other account's request.
    case remove
    /// Blocks the other account: 1:1 messages and requests from that account are refused from now on.
    case block
    /// Ends a block.
    case unblock
}

/// An event about a change of the relation, for the inbox of the other account.
package struct ContactEvent: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable {
        case requested = 1
        case accepted = 2
        case declined = 3
        case removed = 4
    }

    package let kind: Kind
    /// The account that acted.
    package let user: UserID
    /// The name of the acting account at that time.
    package let nickName: String
    /// The text of the request or the answer. It has at most ``maxMessageBytes`` bytes.
    package let message: String

    /// The maximum length of the text of a request or an answer, in bytes.
    package static let maxMessageBytes = 256

    package init(kind: Kind, user: UserID, nickName: String, message: String) {
        self.kind = kind
        self.user = user
        self.nickName = nickName
        self.message = message
    }
}
