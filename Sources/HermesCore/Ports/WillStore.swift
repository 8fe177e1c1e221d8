// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Records the wills of the clients of several nodes. "The record" is the content of this store, which all nodes share.
/// Each will is held by one process, which publishes it when it is due. The wills of a process that has gone are given
/// to another process.
///
/// Implementation: `Memory/MemoryStore`. A store of a single process does not implement it.
package protocol WillStore: Sendable {
    /// Changes wills in order, in one transaction. If it throws, nothing was changed.
    ///
    /// - Parameter node: the process that holds the wills. A change of another process's will has no effect.
    /// - Returns: for each change, whether it is ``WillChange/take(_:)`` and the will is to be published; nil if this
    ///   process has been removed.
    func change(_ changes: [WillChange], on node: NodeIdentity) async throws(HermesError) -> [Bool]?

    /// Hands the wills of ended processes over to another process. A client that was connected to such a process counts
    /// as disconnected from now on, without DISCONNECT. If it throws, nothing was changed.
    ///
    /// - Parameters:
    ///   - node: the node whose earlier processes have ended. If the node has a running process, that process keeps its
    ///     own wills.
    ///   - heir: the process that gets the wills.
    ///   - limit: the largest number of wills, at least 1.
    /// - Returns: the wills that the heir got, empty if none are left; nil if the heir has been removed.
    func inheritWills(
        of node: NodeID,
        by heir: NodeIdentity,
        limit: Int
    ) async throws(HermesError) -> [StoredWill]?
}

/// The id of a will in the record: the process that recorded it first, and a number.
package struct WillID: Sendable, Hashable {
    package let node: NodeIdentity
    package let number: UInt64

    package init(node: NodeIdentity, number: UInt64) {
        self.node = node
        self.number = number
    }
}

/// A will in the record.
package struct StoredWill: Sendable {
    /// The state of a will, or of the client that gave it.
    package enum State: Sendable, Hashable {
        case connected
        /// The client has gone without DISCONNECT, and the will waits for its delay. The clocks of two nodes cannot be
        /// compared: on a node that takes over the will, the delay begins anew.
        case gone
        /// The will is being published.
        case due
    }

    package let id: WillID
    /// The session of its client.
    package let key: SessionKey
    package var will: PendingWill
    /// How long the will waits after the end of the connection: its own delay or the session's expiry, whichever is
    /// shorter.
    package var delay: Duration
    package var state: State
    /// If the client has opened its session again: whether it began a clean session. Otherwise nil.
    package var isReplacedByClean: Bool?

    package init(
        id: WillID,
        key: SessionKey,
        will: PendingWill,
        delay: Duration,
        state: State = .connected
    ) {
        self.id = id
        self.key = key
        self.will = will
        self.delay = delay
        self.state = state
    }

    /// Whether the will is published when it is due: a client that comes back during the delay takes the will back,
    /// unless it begins a clean session (MQTT 5, 3.1.3.2.2).
    package var isToBePublished: Bool { isReplacedByClean ?? true || delay <= .zero }
}

/// A change of a will in the record.
package enum WillChange: Sendable {
    /// A connected client has given the will, or has given it anew.
    case give(StoredWill)
    /// The client has gone without DISCONNECT, so the will waits.
    case wait(WillID, delay: Duration)
    /// The will is due and is taken. If the change is repeated, it has the same outcome.
    case take(WillID)
    /// The will was published, or is not to be published.
    case remove(WillID)

    package var id: WillID {
        switch self {
        case .give(let will): will.id
        case .wait(let id, _), .take(let id), .remove(let id): id
        }
    }
}
