// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import Synchronization

/// The data that this node keeps about its connections and the other nodes: the places of its devices, the accounts
/// that are online on any node, and the ``AccountEnd``s that it has published. The ``DeviceRegistry`` and the
/// ``InboxCommitter`` call the roster; the ``ClusterMember`` does the work that takes time. A process that is alone has
/// no roster.
///
/// "The record" is the content of the stores that all nodes share.
///
/// State: a `Mutex` around each struct, and an atomic for the set of the other nodes. No mutex is locked while another
/// mutex is locked.
package final class ClusterRoster: Sendable {
    /// A connection of this node.
    struct Held: Sendable {
        let key: DeviceKey
        let attachment: any Attachment
        let connection: UInt64
        /// Whether the connection's place was claimed in the record.
        var isClaimed = false
    }

    private struct Places: Sendable {
        var held: [DeviceKey: Held] = [:]
        /// The changes that the record does not have yet. For each device, only the last change counts.
        var changes: [DeviceKey: PlaceChange] = [:]
    }

    let node: NodeIdentity
    let bus: any ClusterBus
    /// Wakes up the ``ClusterMember`` when there is something for it to do.
    let wakeUp = WakeUp()
    private let time: any TimeSource
    private let others = Atomic<UInt64>(0)
    private let places = Mutex(Places())
    private let directory = Mutex(PresenceDirectory())
    private let ends = Mutex(ChangeLog<AccountEnd>())
    private let tokens = Mutex(ChangeLog<DeviceKey>())

    init(_ node: NodeIdentity, bus: any ClusterBus, time: any TimeSource) {
        self.node = node
        self.bus = bus
        self.time = time
    }

    /// The other nodes.
    var peers: NodeSet { NodeSet(rawValue: others.load(ordering: .acquiring)) }

    func setPeers(_ nodes: NodeSet) { others.store(nodes.rawValue, ordering: .releasing) }

    // MARK: Places

    /// Returns the key of an attachment's place in the record. An attachment that takes no events is not a device of
    /// the account, whatever device id it has, so it has a separate place. The key of this place also has a valid
    /// device id, but no device has this id by chance.
    private static func placeKey(of attachment: any Attachment) -> DeviceKey {
        let (user, device) = (attachment.principal.user, attachment.principal.device)
        guard !attachment.takesEvents else { return DeviceKey(user, device) }
        let hash = SHA256.hash(data: Data(device.rawValue.utf8)).prefix(28).hexDigits
        return DeviceKey(user, DeviceID("viewer:\(hash)") ?? device)
    }

    /// Records that a device is connected.
    ///
    /// - Parameter connection: the number of the connection. It is higher than the numbers of the device's earlier
    ///   connections. A call with a lower number is too late, because its connection has been replaced.
    func attached(_ attachment: any Attachment, connection: UInt64) {
        let key = Self.placeKey(of: attachment)
        places.withLock { places in
            if let known = places.held[key], known.connection > connection { return }
            places.held[key] = Held(key: key, attachment: attachment, connection: connection)
            places.changes[key] = .claim(key, connection: connection)
        }
        wakeUp.signal()
    }

    /// Records that a device is no longer connected. Has no effect if another connection has the device's place.
    func detached(_ attachment: any Attachment) {
        let key = Self.placeKey(of: attachment)
        let isHeld = places.withLock { places in
            guard let held = places.held[key], held.attachment === attachment else { return false }
            places.held[key] = nil
            places.changes[key] = .release(key, connection: held.connection)
            return true
        }
        if isHeld { wakeUp.signal() }
    }

    func takeChanges(_ limit: Int) -> [PlaceChange] {
        places.withLock { places in
            let taken = Array(places.changes.values.prefix(limit))
            for change in taken { places.changes[change.key] = nil }
            return taken
        }
    }

    /// Puts back changes that could not be recorded.
    func putBack(_ changes: [PlaceChange]) {
        places.withLock { places in
            for change in changes where places.changes[change.key] == nil { places.changes[change.key] = change }
        }
    }

    /// Records that the place of a connection is now in the record.
    ///
    /// - Returns: the connection, if it still exists.
    func claimed(_ key: DeviceKey, connection: UInt64) -> (any Attachment)? {
        places.withLock { places in
            guard places.held[key]?.connection == connection else { return nil }
            places.held[key]?.isClaimed = true
            return places.held[key]?.attachment
        }
    }

    /// Returns the connection at a place; nil if the device has another connection by now.
    func attachment(at place: DevicePlace) -> (any Attachment)? {
        guard place.node == node else { return nil }
        return places.withLock { places in
            places.held[place.key].flatMap { $0.connection == place.connection ? $0.attachment : nil }
        }
    }

    /// All connections, by user.
    var held: [UserID: [Held]] { Dictionary(grouping: places.withLock { Array($0.held.values) }) { $0.key.user } }

    // MARK: Presence

    func isOnline(_ user: UserID) -> Bool { directory.withLock { $0.isOnline(user) } }

    /// Returns the version of a user's presence, which is odd while the user is online.
    func presenceVersion(of user: UserID) -> UInt64 { directory.withLock { $0.version(of: user) } }

    /// - Returns: the accounts that these changes bring online or take offline, each once. An account that goes offline
    ///   and comes back is not among them.
    func note(_ changes: [PresenceChange]) -> Set<UserID> {
        let now = time.uptime()
        return directory.withLock { directory in
            var turned: Set<UserID> = []
            for change in changes where directory.note(change, now: now) {
                turned.formSymmetricDifference([change.user])
            }
            return turned
        }
    }

    /// The number of changes of the directory.
    var presenceChanges: UInt64 { directory.withLock { $0.changes } }

    func reload(_ online: [PresenceChange], changesBefore: UInt64) -> [UserID] {
        let now = time.uptime()
        return directory.withLock { $0.reload(online, changesBefore: changesBefore, now: now) }
    }

    func forget() {
        let now = time.uptime()
        directory.withLock { $0.forget(now: now) }
    }

    // MARK: Telling

    /// Sends committed entries to the nodes of their users, one message for each node.
    ///
    /// - Parameter nodes: the nodes of all these entries.
    func deliver(_ outcomes: [WriteOutcome], to nodes: NodeSet) {
        for target in nodes.subtracting(NodeSet(node.id)).nodes {
            var entries: [UserID: [InboxEntry]] = [:]
            for delivery in outcomes.lazy.flatMap(\.deliveries) where delivery.nodes.contains(target) {
                var entry = delivery.entry
                // This time is an uptime of this process. Other nodes cannot use it.
                entry.acceptedAt = nil
                entries[delivery.user, default: []].append(entry)
            }
            bus.publish(.entries(entries), to: NodeSet(target))
        }
    }

    /// Tells the other nodes of a change of an account. The change affects the connections of every node.
    func tell(_ end: AccountEnd) {
        let end = end.elsewhere
        let number = ends.withLock { $0.append(end) }
        bus.publish(.ended(end, number: number), to: peers)
    }

    /// Tells the other nodes that a device has a new push token.
    func tellToken(of key: DeviceKey) {
        let number = tokens.withLock { $0.append(key) }
        bus.publish(.token(key, number: number), to: peers)
    }

    /// - Returns: false if nothing is sent, because there are no other nodes or the user is not online.
    func hint(_ user: UserID, _ event: EphemeralEvent) -> Bool {
        let peers = peers
        guard !peers.isEmpty, isOnline(user) else { return false }
        bus.hint(.ephemeral(user, event), to: peers)
        return true
    }

    // MARK: Asking

    /// Asks all other nodes.
    ///
    /// - Returns: the answers, in any order; nil for each node that does not answer in time.
    func askAll(_ question: ClusterQuestion) async -> [ClusterAnswer?] {
        await withTaskGroup(of: ClusterAnswer?.self) { group in
            for node in peers.nodes { group.addTask { [bus] in await bus.ask(question, of: node) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    func tokens(after number: UInt64?) -> ClusterAnswer {
        tokens.withLock { log in .tokens(number.flatMap { log.after($0) }, upTo: log.last) }
    }

    func ends(after number: UInt64?) -> ClusterAnswer {
        ends.withLock { log in .ends(number.flatMap { log.after($0) }, upTo: log.last) }
    }
}
