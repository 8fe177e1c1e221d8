// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The kinds of entries and events that can reach another account's inbox or connections. Each case is a row of the
/// table in `docs/access.md`. If the core gets a new kind without a case here, this file does not compile. A test fails
/// if a case has no row in the document, or unexpectedly has no scenario in ``InboxRuleConformance``.
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

    /// Returns the row of an inbox entry.
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

    /// Returns the row of an ephemeral event.
    package static func row(of event: EphemeralEvent) -> InboxRule {
        switch event {
        case .typing: .typing
        case .presence: .presence
        case .signal: .signal
        case .command: .command
        }
    }

    /// Returns the rows of the entries that an operation can write into other accounts' inboxes. An entry that has no
    /// room in an inbox leaves a hole.
    package static func rows(of operation: WriteOperation) -> Set<InboxRule> {
        let rows = entries(of: operation)
        return rows.isEmpty ? [] : rows.union([.expired])
    }

    private static func entries(of operation: WriteOperation) -> Set<InboxRule> {
        switch operation {
        case .append: [.message, .groupMessage]
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

/// The cases for the effects of one account (person 0) on another account's inbox (person 1). For each ``InboxRule``
/// with a scenario there are two cases, in which person 0 repeats an action five times. Person 1 blocks person 0 only
/// in the second case.
package enum InboxRuleConformance {
    /// The scenario of a row. Person 0 acts, person 1 owns the inbox, and person 2 is needed for some actions.
    private struct Scenario {
        /// The number of new entries in person 1's inbox after five actions.
        let allowed: Int
        /// The number of new entries if person 1 blocks person 0 after the preparation.
        let blocked: Int
        /// Prepares the action, and returns it.
        let prepare: @Sendable (StoreWorld) throws -> (@Sendable () -> WriteOperation)
    }

    package static let cases = InboxRule.allCases.flatMap { rule in
        guard let scenario = scenario(of: rule) else { return [ConformanceCase]() }
        return [false, true].map { isBlocked in
            ConformanceCase("\(rule.rawValue), five times, \(isBlocked ? "blocked" : "not blocked")") { makeStore in
                let world = try await StoreWorld(makeStore, people: 3)
                let operation = try scenario.prepare(world)
                if isBlocked { try world.contact(.block, 1, 0) }
                let before = try await world.store.position(of: world[1].user).head
                for _ in 1...5 {
                    let next = operation()
                    try expect(InboxRule.rows(of: next).contains(rule), "another operation than the row's")
                    _ = try world.commit(next)
                }
                let entries = try await world.store.entries(of: world[1].user, after: before, limit: 100).entries
                try expectEqual(entries.count, isBlocked ? scenario.blocked : scenario.allowed)
                try expect(entries.allSatisfy { InboxRule.row(of: $0.event) == rule }, "\(entries)")
            }
        }
    }

    /// The rows without a scenario: pushes, which come from a back end; holes, which the server makes; and events that
    /// are not inbox entries.
    package static let rowsWithoutScenario = Set(InboxRule.allCases.filter { scenario(of: $0) == nil })

    /// Returns the scenario of a row; nil for ``rowsWithoutScenario``.
    private static func scenario(of rule: InboxRule) -> Scenario? {
        switch rule {
        case .message:
            Scenario(allowed: 5, blocked: 0) { world in { .append(world.message("a", from: 0, to: 1)) } }
        case .groupMessage:
            // A member who does not want these messages can leave the group.
            Scenario(allowed: 5, blocked: 5) { world in
                let group = try world.create([1])
                return { world.talk("a", 0, group) }
            }
        case .readMark:
            Scenario(allowed: 1, blocked: 0) { world in
                try world.send("a", from: 1, to: 0)
                return { .markRead(world.conversation(0, 1), by: world[0].user, upTo: .max / 2) }
            }
        case .recalled:
            // A block does not prevent a recall, because a recall takes something away.
            Scenario(allowed: 1, blocked: 1) { world in
                let id = try world.send("a", from: 0, to: 1).messageID
                return { .recall(id, world.conversation(0, 1), by: world[0].user, notBefore: StoreWorld.now) }
            }
        case .contactRequested:
            Scenario(allowed: 1, blocked: 0) { world in { world.contactOperation(.request, 0, 1) } }
        case .contactAccepted:
            Scenario(allowed: 1, blocked: 0) { world in
                try world.contact(.request, 1, 0)
                return { world.contactOperation(.accept, 0, 1) }
            }
        case .contactDeclined:
            Scenario(allowed: 1, blocked: 0) { world in
                try world.contact(.request, 1, 0)
                return { world.contactOperation(.decline, 0, 1) }
            }
        case .contactRemoved:
            Scenario(allowed: 1, blocked: 0) { world in
                try world.contact(.request, 1, 0)
                try world.contact(.accept, 0, 1)
                return { world.contactOperation(.remove, 0, 1) }
            }
        case .groupCreated:
            Scenario(allowed: 5, blocked: 0) { world in
                { .group(.create(name: "g", members: [world[1].user]), by: world[0].user) }
            }
        case .groupChanged:
            Scenario(allowed: 1, blocked: 1) { world in
                let group = try world.create([1])
                return { .group(.change(group, GroupChange(name: "another")), by: world[0].user) }
            }
        case .groupMembersAdded:
            Scenario(allowed: 1, blocked: 0) { world in
                let group = try world.create([2])
                return { .group(.changeMembers(group, MemberChanges(added: [world[1].user])), by: world[0].user) }
            }
        case .groupMembersRemoved:
            Scenario(allowed: 1, blocked: 1) { world in
                let group = try world.create([1, 2])
                return { .group(.changeMembers(group, MemberChanges(removed: [world[1].user])), by: world[0].user) }
            }
        case .groupDissolved:
            Scenario(allowed: 1, blocked: 1) { world in
                let group = try world.create([1])
                return { .group(.dissolve(group), by: world[0].user) }
            }
        case .push, .expired, .typing, .presence, .signal, .command: nil
        }
    }
}

extension StoreWorld {
    /// Returns a short text for an inbox entry.
    package static func summary(_ entry: InboxEntry) -> String {
        switch entry.event {
        case .message(let message):
            "\(entry.seq):" + (message.isRecalled ? "-" : String(decoding: message.content.bytes, as: UTF8.self))
        case .readMark(let mark): "\(entry.seq):read \(mark.upTo)"
        case .recalled(let recalled): "\(entry.seq):recalled \(recalled.conversationSeq)"
        case .contact(let event): "\(entry.seq):\(event.kind) by \(event.user)"
        case .group(let event):
            "\(entry.seq):\(event.kind) by \(event.by)" + event.users.map { " \($0)" }.joined()
        case .push(let push): "\(entry.seq):push \(push.content.title)"
        case .expired(let through): "\(entry.seq)-\(through):hole"
        }
    }
}
