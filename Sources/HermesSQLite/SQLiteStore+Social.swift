// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore

extension SQLiteStore: SocialStore {
    package func contacts(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact] {
        try await read { [damage] db in
            try SocialReader(db: db).contacts(of: user, after: after, limit: limit, skipping: damage)
        }
    }

    package func blockers(of user: UserID, among users: [UserID]) async throws(HermesError) -> Set<UserID> {
        try await read { db in try SocialReader(db: db).blockers(of: user, among: users) }
    }

    package func group(_ id: GroupID) async throws(HermesError) -> Group? {
        try await read { db in try SocialReader(db: db).group(id) }
    }

    package func groups(of user: UserID, after: GroupID?, limit: Int) async throws(HermesError) -> [GroupSummary] {
        try await read { [damage] db in
            try SocialReader(db: db).groups(of: user, after: after, limit: limit, skipping: damage)
        }
    }

    package func groups(
        after: GroupID?,
        named key: String,
        limit: Int
    ) async throws(HermesError) -> (found: [GroupSummary], next: GroupID?) {
        try await read { [damage] db in
            try SocialReader(db: db).groups(after: after, named: key, limit: limit, skipping: damage)
        }
    }

    package func readableAfter(_ user: UserID, in group: GroupID) async throws(HermesError) -> UInt64? {
        try await read { db in try SocialReader(db: db).readableAfter(user, in: group) }
    }

    package func names(of users: [UserID]) async throws(HermesError) -> [UserID: String] {
        try await read { db in try SocialReader(db: db).names(of: users) }
    }
}
