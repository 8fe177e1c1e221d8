// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Reads contacts and groups. They change only through ``MessageStore/commit(_:now:)``, so that these changes and the
/// messages that depend on them have one order. The operations are ``WriteOperation/contact(_:by:peer:message:)`` and
/// ``WriteOperation/group(_:by:requiresContacts:)``.
///
/// Implementations: `Memory/MemoryStore` and HermesSQLite. Both pass `SocialStoreConformance` of HermesTestKit.
package protocol SocialStore: Sendable {
    /// Returns the accounts that have a ``ContactState`` for `user`, in ascending order of their ids. If `after` is not
    /// nil, only accounts with a higher id are returned.
    func contacts(of user: UserID, after: UserID?, limit: Int) async throws(HermesError) -> [Contact]

    /// Returns the accounts among `users` that block `user`.
    func blockers(of user: UserID, among users: [UserID]) async throws(HermesError) -> Set<UserID>

    /// Returns a group with its members; nil if there is no such group.
    func group(_ id: GroupID) async throws(HermesError) -> Group?

    /// Returns the groups that `user` is a member of, in ascending order of their ids. If `after` is not nil, only
    /// groups with a higher id are returned.
    func groups(of user: UserID, after: GroupID?, limit: Int) async throws(HermesError) -> [GroupSummary]

    /// Returns groups whose names contain a given text, in ascending order of their ids. If `after` is not nil, only
    /// groups with a higher id are returned. Looks at no more than ``StoreSettings/maxSearched`` groups.
    ///
    /// - Parameter key: the text in the form of ``Group/searchKey(_:)``. An empty text matches all groups.
    /// - Returns: the groups that were found, and the last group that was looked at. The second value is nil if no
    ///   groups follow.
    func groups(
        after: GroupID?,
        named key: String,
        limit: Int
    ) async throws(HermesError) -> (found: [GroupSummary], next: GroupID?)

    /// Returns ``Group/readableAfter(_:)`` of a user in a group. Also returns nil if there is no such group.
    func readableAfter(_ user: UserID, in group: GroupID) async throws(HermesError) -> UInt64?

    /// Returns the present names of accounts; accounts that do not exist are left out.
    func names(of users: [UserID]) async throws(HermesError) -> [UserID: String]
}
