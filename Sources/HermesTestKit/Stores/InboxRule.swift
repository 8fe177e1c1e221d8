// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// Everything that writes into another account's inbox, or shows on its connections: one row each of the table in
/// `docs/access.md`. A new kind in the core without a row does not compile; a row without a line in the document, or
/// without a scenario in ``InboxRuleConformance``, fails a test.
package enum InboxRule: String, Sendable, CaseIterable {
    case message = "message"
    case groupMessage = "message to a group"
    case readMark = "read mark"
    case recalled = "recalled message"
    case contactRequested = "contact request"
    case contactAccepted = "contact accepted"
    case contactDeclined = "contact declined"
    case contactRemoved = "contact removed"
    case groupCreated = "group created"
    case groupChanged = "group changed"
    case groupMembersAdded = "members added"
    case groupMembersRemoved = "members removed"
    case groupDissolved = "group dissolved"
    case push = "push"
    case expired = "hole"
    case typing = "typing"
    case presence = "presence"
    case signal = "signal"
    case command = "command"

    /// The row of an entry.
    package static func row(of event: InboxEvent) -> InboxRule {
        switch event {
        case .message(let message):
            switch message.conversation {
            case .direct: .message
            case .group: .groupMessage
            }
        case .readMark: .readMark
        case .recalled: .recalled
        case .contact(let contact):
            switch contact.kind {
            case .requested: .contactRequested
            case .accepted: .contactAccepted
            case .declined: .contactDeclined
            case .removed: .contactRemoved
            }
        case .group(let group):
            switch group.kind {
            case .created: .groupCreated
            case .changed: .groupChanged
            case .membersAdded: .groupMembersAdded
            case .membersRemoved: .groupMembersRemoved
            case .dissolved: .groupDissolved
            }
        case .push: .push
        case .expired: .expired
        }
    }

    /// The row of an ephemeral event.
    package static func row(of event: EphemeralEvent) -> InboxRule {
        switch event {
        case .typing: .typing
        case .presence: .presence
        case .signal: .signal
        case .command: .command
        }
    }

    /// The rows that an operation may write into the inboxes of others.
    package static func rows(of operation: WriteOperation) -> Set<InboxRule> {
        switch operation {
        case .append: [.message, .groupMessage, .expired]
        case .markRead: [.readMark]
        case .recall: [.recalled]
        case .contact(let command, _, _, _):
            switch command {
            case .request: [.contactRequested, .contactAccepted]
            case .accept: [.contactAccepted]
            case .decline: [.contactDeclined]
            case .remove: [.contactRemoved, .contactDeclined]
            case .block: [.contactRemoved, .contactDeclined]
            case .unblock: []
            }
        case .group(let command, _, _):
            switch command {
            case .create: [.groupCreated]
            case .change: [.groupChanged]
            case .changeMembers: [.groupMembersAdded, .groupMembersRemoved, .groupChanged]
            case .leave: [.groupMembersRemoved, .groupChanged, .groupDissolved]
            case .dissolve: [.groupDissolved]
            }
        case .push: [.push]
        case .acknowledge, .openDevice: []
        case .deleteAccount: [.contactRemoved, .contactDeclined, .groupMembersRemoved, .groupChanged, .groupDissolved]
        }
    }
}
