// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Records which nodes there are, and where each device is connected. The record decides: where two nodes have the same
/// device, the place that was claimed last is right. The bitmap of a user's nodes is read in the same transaction that
/// commits to the inbox (``InboxDelivery/nodes``).
///
/// A process that was removed changes nothing more but the record of the nodes: each transaction of its other stores is
/// refused with ``StoreRefusals/removedNode``. So a process that was frozen commits nothing that the others do not see:
/// they do its work by then.
///
/// Implementation: `Memory/MemoryStore`. A store of a single process has none.
package protocol PlaceStore: WillStore {
    /// Enters a node, with a higher epoch than its earlier processes had.
    func join(_ node: NodeID) async throws(HermesError) -> NodeIdentity

    /// Renews a node's lease.
    ///
    /// - Returns: all nodes of the record, this one included; nil: this process has been removed, and must end its
    ///   connections.
    func renew(_ node: NodeIdentity) async throws(HermesError) -> [NodeLease]?

    /// Removes a node's present process, if it is to be removed, and clears the places of those that were removed, a
    /// bounded number per call; repeat until done.
    ///
    /// The kept sessions that it had open have no connection any more. All that waits for one of them may have been
    /// sent, and its expiry begins.
    ///
    /// - Parameters:
    ///   - node: the process; no effect on a later one of its node.
    ///   - removal: whether it is to be removed.
    ///   - now: the wall clock, for the expiry of sessions.
    func remove(
        _ node: NodeIdentity,
        _ removal: LeaseRemoval,
        now: Timestamp,
        limit: Int
    ) async throws(HermesError) -> NodeRemoval

    /// Claims and releases places in order, in one transaction. If it throws, nothing was changed.
    ///
    /// - Returns: an outcome for each; nil: this process has been removed.
    func change(_ changes: [PlaceChange], on node: NodeIdentity) async throws(HermesError) -> [PlaceOutcome]?

    /// The record's state of users that have devices on a node; users without an inbox are left out.
    ///
    /// - Returns: nil: this process has been removed.
    func standing(of users: [UserID], on node: NodeIdentity) async throws(HermesError) -> [PlaceStanding]?

    /// The accounts that are online, ascending by id, with their versions.
    func online(after user: UserID?, limit: Int) async throws(HermesError) -> [PresenceChange]

    /// The secret that all nodes share under a name. The first proposal stays.
    func secret(_ name: String, proposal: [UInt8]) async throws(HermesError) -> [UInt8]

    /// Those of these kept sessions that there are, in any order, as from ``SessionStore/sessions()``.
    func sessions(of ids: [DurableSessionID]) async throws(HermesError) -> [StoredSession]

    /// The kept sessions with an id above `id` (nil: from the first), ascending, as from ``SessionStore/sessions()``.
    func sessions(after id: DurableSessionID?, limit: Int) async throws(HermesError) -> [StoredSession]
}

/// Whether a process is removed from the record.
package enum LeaseRemoval: Sendable, Hashable {
    /// It stays; only what was left by earlier processes is cleared.
    case no
    /// It is removed if it has not renewed its lease more often (``NodeLease/renewals``).
    case ifNotRenewed(since: UInt64)
    case yes
}

/// The effect of one call of ``PlaceStore/remove(_:_:now:limit:)``.
package struct NodeRemoval: Sendable {
    /// The accounts that went offline. Each transition is returned to one caller, which tells the others.
    package var presence: [PresenceChange] = []
    /// The kept sessions that have no connection any more.
    package var sessions: [DurableSessionID] = []
    /// Whether nothing is left of the node.
    package var isDone = false

    package init() {}
}

/// A node in the record.
package struct NodeLease: Sendable, Hashable {
    package let node: NodeIdentity
    /// Grows with each renewal. If it does not grow for a while, the node is silent. Clocks are not compared.
    package let renewals: UInt64
    /// Whether the node is a member; false: it has been removed.
    package let isIn: Bool
    /// Whether places or wills of removed or earlier processes of the node are left
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
    /// Has no effect if the place is another node's, or a later connection's.
    case release(DeviceKey, connection: UInt64)

    package var key: DeviceKey {
        switch self {
        case .claim(let key, _), .release(let key, _): key
        }
    }
}

package struct PlaceOutcome: Sendable, Hashable {
    /// The place on another node that a claim took.
    package let taken: DevicePlace?
    /// The transition of the user that the change made.
    package let presence: PresenceChange?
    /// The head of the user's inbox after the change: what is committed later knows the place.
    package let head: UInt64

    package init(taken: DevicePlace?, presence: PresenceChange?, head: UInt64) {
        self.taken = taken
        self.presence = presence
        self.head = head
    }
}

/// An account's presence over all nodes, as a count of its transitions.
package struct PresenceChange: Sendable, Hashable {
    package let user: UserID
    /// Odd: online.
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
    /// The connections of the node that hold their places.
    package let connections: Set<UInt64>

    package init(user: UserID, head: UInt64, connections: Set<UInt64>) {
        self.user = user
        self.head = head
        self.connections = connections
    }
}
