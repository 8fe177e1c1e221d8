// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Records the nodes, and the place of each connected device: its node and its connection. All nodes share this record.
/// If two nodes have the same device, the place that was claimed last is valid. The set of a user's nodes is read in
/// the transaction that commits an entry to the user's inbox (``InboxDelivery/nodes``).
///
/// A process that was removed can change only the list of nodes. Each transaction of the process's other stores is
/// refused with ``StoreRefusals/removedNode``. The reason is that a process that was frozen may not know that it was
/// removed. Other processes have taken over its work, and they would not notice its commits.
///
/// Implementation: `Memory/MemoryStore`, which several nodes of one program can share. The SQLite store does not
/// implement this protocol, because only one process uses it.
package protocol PlaceStore: WillStore {
    /// Adds a process of a node. The process gets a higher epoch than the node's earlier processes.
    func join(_ node: NodeID) async throws(HermesError) -> NodeIdentity

    /// Renews a node's lease.
    ///
    /// - Returns: all nodes of the record, this node included; nil if this process has been removed and must end its
    ///   connections.
    func renew(_ node: NodeIdentity) async throws(HermesError) -> [NodeLease]?

    /// Removes a process of a node if `removal` says so. Also clears places of the node's processes that were removed
    /// or replaced. One call clears a bounded number of places. Repeat the call until ``NodeRemoval/isDone`` is true.
    ///
    /// If such a process had a kept session open, the session loses its connection. Everything that waits for the
    /// session counts as possibly sent, and the session's expiry interval begins.
    ///
    /// - Parameters:
    ///   - node: the process; a later process of its node is not removed.
    ///   - removal: whether the process is to be removed.
    ///   - now: the time of the wall clock, for the expiry of sessions.
    func remove(
        _ node: NodeIdentity,
        _ removal: LeaseRemoval,
        now: Timestamp,
        limit: Int
    ) async throws(HermesError) -> NodeRemoval

    /// Claims and releases places in order, in one transaction. If the call throws an error, it has changed nothing.
    ///
    /// - Returns: an outcome for each change; nil if this process has been removed.
    func change(_ changes: [PlaceChange], on node: NodeIdentity) async throws(HermesError) -> [PlaceOutcome]?

    /// Reads the state of users that have devices on a node. Users without an inbox are left out.
    ///
    /// - Returns: nil if this process has been removed.
    func standing(of users: [UserID], on node: NodeIdentity) async throws(HermesError) -> [PlaceStanding]?

    /// Claims keys for a process before the process sends their notifications, so that no other process sends the same
    /// notifications. A claim lasts until it is released, or until its process has been removed or replaced. If a
    /// process claims a key again, the new claim replaces the earlier claim.
    ///
    /// - Parameter number: the number of the claim. Each further claim of the process has a higher number.
    /// - Returns: the claimed keys, without the keys that another process has claimed; nil if the process has been
    ///   removed.
    func claim(
        _ keys: [HandOffKey],
        number: UInt64,
        on node: NodeIdentity
    ) async throws(HermesError) -> Set<HandOffKey>?

    /// Releases those claims of a process that still have the given numbers. If a claim has another number by now, this
    /// claim has replaced the given claim, so it stays.
    func release(_ claims: [HandOffKey: UInt64], on node: NodeIdentity) async throws(HermesError)

    /// Returns the accounts that are online, in ascending order of their ids, with the versions of their presence.
    func online(after user: UserID?, limit: Int) async throws(HermesError) -> [PresenceChange]

    /// Returns the secret that all nodes share under a name. The first proposal becomes the secret; later proposals
    /// have no effect.
    func secret(_ name: String, proposal: [UInt8]) async throws(HermesError) -> [UInt8]

    /// Returns the kept sessions with these ids, in any order and with the same content as ``SessionStore/sessions()``.
    /// Sessions that do not exist are left out.
    func sessions(of ids: [DurableSessionID]) async throws(HermesError) -> [StoredSession]

    /// Returns kept sessions with an id above `id`, or with any id if `id` is nil, in ascending order of their ids.
    /// Their content is the same as in ``SessionStore/sessions()``.
    func sessions(after id: DurableSessionID?, limit: Int) async throws(HermesError) -> [StoredSession]
}

/// Whether a process is removed from the record.
package enum LeaseRemoval: Sendable, Hashable {
    /// The process stays. Only the places that remain from earlier processes are cleared.
    case no
    /// The process is removed if its number of renewals (``NodeLease/renewals``) is not above this number.
    case ifNotRenewed(since: UInt64)
    case yes
}

/// The effect of one call to ``PlaceStore/remove(_:_:now:limit:)``.
package struct NodeRemoval: Sendable {
    /// The accounts that went offline. Each transition is returned to only one caller. This caller informs the other
    /// nodes.
    package var presence: [PresenceChange] = []
    /// The kept sessions that have no connection any more.
    package var sessions: [DurableSessionID] = []
    /// Whether all places and open sessions of removed or replaced processes are cleared. The wills of these processes
    /// may remain.
    package var isDone = false

    package init() {}
}

/// A node in the record.
package struct NodeLease: Sendable, Hashable {
    package let node: NodeIdentity
    /// The number of renewals. If this number does not grow for a while, the node is silent. The clocks of nodes are
    /// not compared.
    package let renewals: UInt64
    /// Whether the node is a member; false if it has been removed.
    package let isIn: Bool
    /// Whether places or wills of removed or earlier processes of the node remain
    /// (``PlaceStore/remove(_:_:now:limit:)``, ``WillStore/inheritWills(of:by:limit:)``).
    package let mustClear: Bool

    package init(node: NodeIdentity, renewals: UInt64, isIn: Bool, mustClear: Bool) {
        self.node = node
        self.renewals = renewals
        self.isIn = isIn
        self.mustClear = mustClear
    }
}

/// A device of a user.
package struct DeviceKey: Sendable, Hashable {
    package let user: UserID
    package let device: DeviceID

    package init(_ user: UserID, _ device: DeviceID) {
        self.user = user
        self.device = device
    }
}

/// The place of a connected device.
package struct DevicePlace: Sendable, Hashable {
    package let key: DeviceKey
    package let node: NodeIdentity
    /// The number of the connection on its node. A later connection of the device has a higher number.
    package let connection: UInt64

    package init(key: DeviceKey, node: NodeIdentity, connection: UInt64) {
        self.key = key
        self.node = node
        self.connection = connection
    }
}

/// A change of a device's place.
package enum PlaceChange: Sendable, Hashable {
    case claim(DeviceKey, connection: UInt64)
    /// Has no effect if the place belongs to another node or to a later connection.
    case release(DeviceKey, connection: UInt64)

    package var key: DeviceKey {
        switch self {
        case .claim(let key, _), .release(let key, _): key
        }
    }
}

package struct PlaceOutcome: Sendable, Hashable {
    /// The device's former place on another node, which the claim has replaced; nil if there was none.
    package let taken: DevicePlace?
    /// The user's transition between online and offline; nil if the change caused no transition.
    package let presence: PresenceChange?
    /// The head of the user's inbox after the change. Commits of later entries take the change into account.
    package let head: UInt64

    package init(taken: DevicePlace?, presence: PresenceChange?, head: UInt64) {
        self.taken = taken
        self.presence = presence
        self.head = head
    }
}

/// An account's presence on all nodes together, given by the number of its transitions.
package struct PresenceChange: Sendable, Hashable {
    package let user: UserID
    /// The number of transitions. It is odd while the account is online.
    package let version: UInt64

    package init(user: UserID, version: UInt64) {
        self.user = user
        self.version = version
    }

    package var isOnline: Bool { version & 1 == 1 }
}

package struct PlaceStanding: Sendable, Hashable {
    package let user: UserID
    package let head: UInt64
    /// The numbers of the node's connections that hold the places of the user's devices.
    package let connections: Set<UInt64>

    package init(user: UserID, head: UInt64, connections: Set<UInt64>) {
        self.user = user
        self.head = head
        self.connections = connections
    }
}
