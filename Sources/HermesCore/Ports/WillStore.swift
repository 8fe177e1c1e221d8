// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Records the wills of the clients of several nodes. All nodes share the content of this store ("the record"). Each
/// will is held by one process, which publishes the will when the will's delay has ended. If that process ends, another
/// process gets its wills.
///
/// Implementation: `Memory/MemoryStore`, which several nodes of one program can share. The SQLite store does not
/// implement this protocol, because only one process uses it.
package protocol WillStore: Sendable {
    /// Changes wills in order, in one transaction. If the call throws an error, it has changed nothing.
    ///
    /// - Parameter node: the process that holds the wills. A change of a will that another process holds has no effect.
    /// - Returns: for each change, true if the change is ``WillChange/take(_:)`` and the will is to be published,
    ///   otherwise false; nil if the process has been removed.
    func change(_ changes: [WillChange], on node: NodeIdentity) async throws(HermesError) -> [Bool]?

    /// Hands the wills of ended processes over to another process. From now on, a client that was connected to such a
    /// process counts as disconnected without DISCONNECT. If the call throws an error, it has changed nothing.
    ///
    /// - Parameters:
    ///   - node: the node whose earlier processes have ended. A running process of the node keeps its own wills.
    ///   - heir: the process that gets the wills.
    ///   - limit: the largest number of wills to hand over; at least 1.
    /// - Returns: the wills that the heir got (an empty list if no wills are left); nil if the heir has been removed.
    func inheritWills(
        of node: NodeID,
        by heir: NodeIdentity,
        limit: Int
    ) async throws(HermesError) -> [StoredWill]?
}

/// The id of a will in the record. It consists of the process that first recorded the will, and of a number.
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
        /// The client's connection has ended without DISCONNECT, and the will waits for the end of its delay. The
        /// clocks of two nodes cannot be compared. So the delay begins anew if another node takes over the will.
        case gone
        /// The will is being published.
        case due
    }

    package let id: WillID
    /// The session of the client that gave the will.
    package let key: SessionKey
    package var will: PendingWill
    /// The time for which the will waits after the end of the connection. It is the will's own delay or the session's
    /// expiry, whichever is shorter.
    package var delay: Duration
    package var state: State
    /// Whether the client began a clean session when it opened its session again; nil if it has not opened the session
    /// again.
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

    /// Whether the will is published at the end of its delay. If the client opens its session again during the delay,
    /// the will is published only if the client begins a clean session (MQTT 5, 3.1.3.2.2).
    package var isToBePublished: Bool { isReplacedByClean ?? true || delay <= .zero }
}

/// A change of a will in the record.
package enum WillChange: Sendable {
    /// A connected client has given the will, or its will has changed.
    case give(StoredWill)
    /// The client's connection has ended without DISCONNECT, so the will waits for the end of its delay.
    case wait(WillID, delay: Duration)
    /// The delay of the will has ended, and the process takes the will in order to publish it. A repetition of this
    /// change has the same outcome.
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
