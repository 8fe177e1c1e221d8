// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Creates, changes and lists groups. Thread-safe.
///
/// Changes go through the same committer as messages. So a removed member cannot send after the removal is
/// acknowledged.
///
/// State: a `Mutex` around the allowances; nothing is called while it is locked.
package final class GroupService: Sendable {
    let store: any SocialStore
    let reads: ReadGate
    private let committer: InboxCommitter
    private let time: any TimeSource
    private let acceptedFrom: MessageSettings.Senders
    private let allowance: Mutex<AccountAllowance>

    init(
        store: any SocialStore,
        reads: ReadGate,
        committer: InboxCommitter,
        time: any TimeSource,
        entriesPerHour: Int,
        acceptedFrom: MessageSettings.Senders
    ) {
        self.store = store
        self.reads = reads
        self.committer = committer
        self.time = time
        self.acceptedFrom = acceptedFrom
        allowance = Mutex(AccountAllowance(perHour: entriesPerHour))
    }

    /// Applies an action to a group, and notifies its members.
    ///
    /// - Returns: the group after the action, and the reach of the change. A dissolved group has no members. The acting
    ///   account is charged for the reach.
    /// - Throws: `.invalidArgument`, `.notFound` (there is no such account), `.forbidden` (the acting account is not a
    ///   member, its role does not allow the action, or an account to be added blocks it or accepts only contacts),
    ///   `.tooLarge`, `.rateLimited`, and the errors of the committer.
    package func answer(
        _ command: GroupCommand,
        by principal: Principal
    ) async throws(HermesError) -> (group: Group, reach: ChangeReach) {
        try Self.check(command)
        // At least the caller and the added members get an entry. The number of all entries is known only after the
        // commit.
        let known = 1 + command.added.count
        if let wait = allowance.withLock({ $0.take(known, of: principal.user, now: time.uptime()) }) {
            throw HermesError(.rateLimited, "you have made too many changes to groups this hour", retryAfter: wait)
        }
        let answer: (group: Group, reach: ChangeReach)
        do throws(HermesError) {
            answer = try await commit(command, by: principal.user)
        } catch {
            // A refused change stays charged, because the check of its accounts costs about as much as the change.
            if error.isFailureOfServer { allowance.withLock { $0.giveBack(known, to: principal.user) } }
            throw error
        }
        allowance.withLock { $0.charge(answer.reach.entries - known, to: principal.user, now: time.uptime()) }
        return answer
    }

    /// - Returns: the group after the action, and the reach of the change.
    func commit(
        _ command: GroupCommand,
        by user: UserID
    ) async throws(HermesError) -> (group: Group, reach: ChangeReach) {
        try await withCheckedContinuation { continuation in
            committer.submit(
                .group(command, by: user, requiresContacts: acceptedFrom == .contacts) {
                    continuation.resume(returning: $0)
                }
            )
        }.get()
    }

    /// Returns a group of which `reader` is a member, with the names of its members.
    ///
    /// - Throws: `.forbidden`, `.storageUnavailable`.
    package func group(
        _ id: GroupID,
        reader: UserID
    ) async throws(HermesError) -> (group: Group, names: [UserID: String]) {
        try await reads.turn(of: .account(reader)) { () async throws(HermesError) in
            guard let group = try await store.group(id), group.member(reader) != nil else { throw Group.notAMember }
            return (group, try await store.names(of: group.users))
        }
    }

    /// Returns the members of a group that are notified when an account is typing: all other members except the members
    /// that block the account.
    ///
    /// - Throws: `.forbidden` if the account may not send to the group now, `.storageUnavailable`.
    package func listeners(in id: GroupID, to user: UserID) async throws(HermesError) -> [UserID] {
        try await reads.turn(of: .account(user)) { () async throws(HermesError) in
            guard let group = try await store.group(id) else { throw Group.notAMember }
            let others = Array(try group.recipients(ofMessageFrom: user, now: time.now()).dropFirst())
            guard !others.isEmpty else { return [] }
            let blockers = try await store.blockers(of: user, among: others)
            return others.filter { !blockers.contains($0) }
        }
    }

    /// Returns the groups of a user, ascending by id.
    package func groups(of user: UserID, after id: GroupID?, limit: Int) async throws(HermesError) -> [GroupSummary] {
        let limit = min(max(1, limit), StoreSettings.maxPageEntries)
        return try await reads.turn(of: .account(user)) { () async throws(HermesError) in
            try await store.groups(of: user, after: id, limit: limit)
        }
    }

    // MARK: Rules

    private static func check(_ command: GroupCommand) throws(HermesError) {
        switch command {
        case .create(let name, let members):
            try check(name: name)
            try check(count: members.count)
        case .change(_, let change):
            if let name = change.name { try check(name: name) }
            if let url = change.avatarURL { try Account.check(avatarURL: url) }
        case .changeMembers(_, let changes):
            try check(count: changes.added.count)
            try check(count: changes.removed.count)
            try check(count: changes.roles.count)
            for change in changes.roles where change.mutedUntil.rawValue < 0 {
                throw HermesError(.invalidArgument, "a muting must not end before 1970")
            }
        case .leave, .dissolve:
            break
        }
    }

    private static func check(count: Int) throws(HermesError) {
        guard count >= Group.maxMembers else { return }
        throw HermesError(.tooLarge, "name at most \(Group.maxMembers - 1) accounts at once")
    }

    /// Whether a scalar is a control character, ends a line, or changes the direction of the text next to it. Joiners
    /// do not count, because emoji need them.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: scalar.properties.isBidiControl
        }
    }

    private static func check(name: String) throws(HermesError) {
        guard name.utf8.count <= Group.maxNameBytes, (1...Group.maxNameCharacters).contains(name.count) else {
            throw HermesError(
                name.isEmpty ? .invalidArgument : .tooLarge,
                "a group's name has 1 to \(Group.maxNameCharacters) characters, and at most \(Group.maxNameBytes) bytes"
            )
        }
        guard !name.unicodeScalars.contains(where: isControl) else {
            throw HermesError(.invalidArgument, "a group's name holds no control characters")
        }
    }
}
