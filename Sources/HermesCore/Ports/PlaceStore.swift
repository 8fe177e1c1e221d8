// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Records which nodes there are, and the place of each connected device: its node and its connection. All nodes share
/// this record, and it decides: if two nodes have the same device, the place that was claimed last is valid. The bitmap
/// of a user's nodes is read in the same transaction that commits to the inbox (``InboxDelivery/nodes``).
///
/// A process that was removed can change nothing more, except the list of nodes: each transaction of its other stores
/// is refused with ``StoreRefusals/removedNode``. A process that was frozen may not know that it was removed. Other
/// processes do its work by now, and because of this rule the frozen process can commit nothing that they would not
/// see.
///
/// Implementation: `Memory/MemoryStore`. A store of a single process does not implement it.
package protocol PlaceStore: WillStore {
    /// Adds a process of a node, with a higher epoch than the earlier processes of the node had.
    func join(_ node: NodeID) async throws(HermesError) -> NodeIdentity

    /// Renews a node's lease.
    ///
    /// - Returns: all nodes of the record, this one included; nil if this process has been removed and must end its
    ///   connections.
    func renew(_ node: NodeIdentity) async throws(HermesError) -> [NodeLease]?

    /// Removes a process of a node if `removal` says so. Also clears a bounded number of places of those processes of
    /// the node that were removed or replaced. Repeat the call until ``NodeRemoval/isDone`` is true.
    ///
    /// The kept sessions that such a process had open lose their connections. Everything that waits for such a session
    /// counts as possibly sent, and the session's expiry begins.
    ///
    /// - Parameters:
    ///   - node: the process; a later process of its node is not removed.
    ///   - removal: whether the process is to be removed.
    ///   - now: the wall clock, for the expiry of sessions.
    func remove(
        _ node: NodeIdentity,
        _ removal: LeaseRemoval,
        now: Timestamp,
        limit: Int
    ) async throws(HermesError) -> NodeRemoval

    /// Claims and releases places in order, in one transaction. If it throws, nothing was changed.
    ///
    /// - Returns: an outcome for each change; nil if this process has been removed.
    func change(_ changes: [PlaceChange], on node: NodeIdentity) async throws(HermesError) -> [PlaceOutcome]?

    /// Reads the state of users that have devices on a node; users without an inbox are left out.
    ///
    /// - Returns: nil if this process has been removed.
    func standing(of users: [UserID], on node: NodeIdentity) async throws(HermesError) -> [PlaceStanding]?

    /// Claims keys for a process before it sends their notifications, so that no other process sends the same ones. A
    /// claim lasts until it is released, or until its process has been removed or replaced. A further claim of the same
    /// process replaces its earlier one.
    ///
    /// - Parameter number: the number of the claim; each further claim of the process has a higher one.
    /// - Returns: the claimed keys: all but those that another process has claimed. Nil if this process has been
    ///   removed.
    func claim(
        _ keys: [HandOffKey],
        number: UInt64,
        on node: NodeIdentity
    ) async throws(HermesError) -> Set<HandOffKey>?

    /// Releases those claims of a process that still have the given numbers. A claim that has another number now has
    /// replaced the given one, and stays.
    func release(_ claims: [HandOffKey: UInt64], on node: NodeIdentity) async throws(HermesError)

    /// Returns the accounts that are online, ascending by id, with the versions of their presence.
    func online(after user: UserID?, limit: Int) async throws(HermesError) -> [PresenceChange]

    /// Returns the secret that all nodes share under a name. The first proposal becomes the secret; later proposals
    /// have no effect.
    func secret(_ name: String, proposal: [UInt8]) async throws(HermesError) -> [UInt8]

    /// Returns the kept sessions with these ids, as far as they exist, in any order and with the same content as
    /// ``SessionStore/sessions()``.
    func sessions(of ids: [DurableSessionID]) async throws(HermesError) -> [StoredSession]

    /// Returns kept sessions with an id above `id` (nil: from the first), ascending and with the same content as
    /// ``SessionStore/sessions()``.
    func sessions(after id: DurableSessionID?, limit: Int) async throws(HermesError) -> [StoredSession]
}

/// Whether a process is removed from the record.
package enum LeaseRemoval: Sendable, Hashable {
    /// The process stays; only the places that earlier processes left are cleared.
    case no
    /// The process is removed if its number of renewals (``NodeLease/renewals``) has not grown beyond this one.
    case ifNotRenewed(since: UInt64)
    case yes
}

/// The effect of one call of ``PlaceStore/remove(_:_:now:limit:)``.
package struct NodeRemoval: Sendable {
    /// The accounts that went offline. Each transition is returned to only one caller, which tells the other nodes.
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
    /// The number of renewals. If it does not grow for a while, the node is silent. The clocks of nodes are not
    /// compared.
    package let renewals: UInt64
    /// Whether the node is a member; false: it has been removed.
    package let isIn: Bool
    /// Whether places or wills of removed or earlier processes of the node remain
    /// (``PlaceStore/remove(_:_:now:limit:)``, ``WillStore/inheritWills(of:by:now:limit:)``).
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
    /// The number of the connection on its node; a later connection of a device has a higher one.
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
    /// The device's former place on another node, which the claim has taken over; nil: there was none.
    package let taken: DevicePlace?
    /// The user's transition between online and offline, if the change made one.
    package let presence: PresenceChange?
    /// The head of the user's inbox after the change: entries that are committed later take the place into account.
    package let head: UInt64

    package init(taken: DevicePlace?, presence: PresenceChange?, head: UInt64) {
        self.taken = taken
        self.presence = presence
        self.head = head
    }
}

/// An account's presence over all nodes, given by the number of its transitions.
package struct PresenceChange: Sendable, Hashable {
    package let user: UserID
    /// The number of transitions; odd while the account is online.
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
