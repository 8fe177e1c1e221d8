// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The nodes, and the node to which each device is connected.
struct MemoryPlaces: Sendable {
    struct Node: Sendable {
        var epoch: UInt64 = 0
        var renewals: UInt64 = 0
        var isIn = false
        var mustClear = false
    }

    struct User: Sendable {
        var devices: [DeviceID: DevicePlace] = [:]
        var nodes = NodeSet()
        /// The number of times that the user came online or went offline. A user is online if at least one device of
        /// the user is connected to a node.
        var version: UInt64 = 0
    }

    var nodes: [NodeID: Node] = [:]
    var users: [UserID: User] = [:]
    /// The keys whose notifications are being sent, and the processes that send them.
    private var claims: [HandOffKey: (node: NodeIdentity, number: UInt64)] = [:]
    private var secrets: [String: [UInt8]] = [:]

    mutating func secret(_ name: String, _ proposal: [UInt8]) -> [UInt8] {
        let secret = secrets[name] ?? proposal
        secrets[name] = secret
        return secret
    }

    func isIn(_ node: NodeIdentity) -> Bool { nodes[node.id].map { $0.isIn && $0.epoch == node.epoch } ?? false }

    mutating func claim(_ keys: [HandOffKey], number: UInt64, on node: NodeIdentity) -> Set<HandOffKey>? {
        guard isIn(node) else { return nil }
        let free = keys.filter { key in claims[key].map { $0.node == node || !isIn($0.node) } ?? true }
        for key in free { claims[key] = (node, number) }
        return Set(free)
    }

    mutating func release(_ released: [HandOffKey: UInt64], on node: NodeIdentity) {
        for (key, number) in released {
            if let claim = claims[key], claim.node == node, claim.number == number { claims[key] = nil }
        }
    }

    /// Forgets the claims of processes that have been removed or replaced.
    mutating func dropStaleClaims() { claims = claims.filter { isIn($0.value.node) } }

    func nodes(of user: UserID) -> NodeSet { users[user]?.nodes ?? NodeSet() }

    /// - Returns: the user's transition between online and offline; nil if there is no transition.
    mutating func change(_ user: UserID, _ body: (inout [DeviceID: DevicePlace]) -> Void) -> PresenceChange? {
        var row = users[user] ?? User()
        body(&row.devices)
        let nodes = row.devices.values.reduce(into: NodeSet()) { $0.formUnion(NodeSet($1.node.id)) }
        let isTransition = row.nodes.isEmpty != nodes.isEmpty
        row.nodes = nodes
        if isTransition { row.version += 1 }
        users[user] = row
        return isTransition ? PresenceChange(user: user, version: row.version) : nil
    }
}

extension MemoryState {
    mutating func join(_ id: NodeID) -> NodeIdentity {
        var node = places.nodes[id] ?? MemoryPlaces.Node()
        node.mustClear = node.epoch > 0
        node.epoch += 1
        node.renewals += 1
        node.isIn = true
        places.nodes[id] = node
        return NodeIdentity(id: id, epoch: node.epoch)
    }

    mutating func renew(_ node: NodeIdentity) -> [NodeLease]? {
        guard places.isIn(node) else { return nil }
        places.nodes[node.id]?.renewals += 1
        return places.nodes.sorted { $0.key < $1.key }.map { id, row in
            NodeLease(
                node: NodeIdentity(id: id, epoch: row.epoch),
                renewals: row.renewals,
                isIn: row.isIn,
                mustClear: row.mustClear
            )
        }
    }

    mutating func remove(_ node: NodeIdentity, _ kind: LeaseRemoval, now: Timestamp, limit: Int) -> NodeRemoval {
        var removal = NodeRemoval()
        guard var row = places.nodes[node.id], row.epoch >= node.epoch else {
            removal.isDone = true
            return removal
        }
        let isRemoved =
            switch kind {
            case .no: false
            case .ifNotRenewed(let renewals): row.renewals <= renewals
            case .yes: true
            }
        if isRemoved, places.isIn(node) {
            row.isIn = false
            row.mustClear = true
        }
        places.nodes[node.id] = row
        places.dropStaleClaims()
        let limit = max(1, limit)
        func isStale(_ process: NodeIdentity) -> Bool { process.id == node.id && !places.isIn(process) }
        let users = places.users.filter { $0.value.devices.values.contains { isStale($0.node) } }.keys.sorted()
        for user in users.prefix(limit) {
            let left = places.users[user]?.devices.filter { !isStale($0.value.node) } ?? [:]
            if let change = places.change(user, { $0 = left }) { removal.presence.append(change) }
        }
        let sessions = durable.values.filter { $0.stored.place?.node.map(isStale) ?? false }.map(\.stored.id)
        removal.sessions = Array(sessions.prefix(limit))
        for id in removal.sessions { close(id, now: now) }
        removal.isDone = users.count <= limit && sessions.count <= limit
        let hasLeftWills = hasLeftWills(node.id)
        if removal.isDone { places.nodes[node.id]?.mustClear = hasLeftWills }
        return removal
    }

    mutating func change(_ changes: [PlaceChange], on node: NodeIdentity) -> [PlaceOutcome]? {
        guard places.isIn(node) else { return nil }
        return changes.map { change in
            switch change {
            case .claim(let key, let connection):
                let before = places.users[key.user]?.devices[key.device]
                let place = DevicePlace(key: key, node: node, connection: connection)
                let presence = places.change(key.user) { $0[key.device] = place }
                let taken = before.flatMap { $0.node.id == node.id ? nil : $0 }
                return PlaceOutcome(taken: taken, presence: presence, head: records[key.user]?.inbox.head ?? 0)
            case .release(let key, let connection):
                let place = places.users[key.user]?.devices[key.device]
                let isOwn = place.map { $0.node == node && $0.connection <= connection } ?? false
                let presence = isOwn ? places.change(key.user) { $0[key.device] = nil } : nil
                return PlaceOutcome(taken: nil, presence: presence, head: records[key.user]?.inbox.head ?? 0)
            }
        }
    }

    func standing(of users: [UserID], on node: NodeIdentity) -> [PlaceStanding]? {
        guard places.isIn(node) else { return nil }
        return users.compactMap { user in
            guard let record = records[user] else { return nil }
            let own = places.users[user]?.devices.values.filter { $0.node == node } ?? []
            return PlaceStanding(user: user, head: record.inbox.head, connections: Set(own.map(\.connection)))
        }
    }

    func online(after user: UserID?, limit: Int) -> [PresenceChange] {
        let first = user.map { $0.rawValue } ?? 0
        let online = places.users.filter { !$0.value.nodes.isEmpty && $0.key.rawValue > first }
        return online.sorted { $0.key < $1.key }.prefix(max(0, limit)).map {
            PresenceChange(user: $0.key, version: $0.value.version)
        }
    }
}

extension MemoryStore: PlaceStore {
    package func join(_ node: NodeID) async throws(HermesError) -> NodeIdentity {
        try run { (state) throws(HermesError) in state.join(node) }
    }

    package func renew(_ node: NodeIdentity) async throws(HermesError) -> [NodeLease]? {
        try run { (state) throws(HermesError) in state.renew(node) }
    }

    package func remove(
        _ node: NodeIdentity,
        _ removal: LeaseRemoval,
        now: Timestamp,
        limit: Int
    ) async throws(HermesError) -> NodeRemoval {
        try run { (state) throws(HermesError) in state.remove(node, removal, now: now, limit: limit) }
    }

    package func secret(_ name: String, proposal: [UInt8]) async throws(HermesError) -> [UInt8] {
        try write { (state) throws(HermesError) in state.places.secret(name, proposal) }
    }

    package func sessions(of ids: [DurableSessionID]) async throws(HermesError) -> [StoredSession] {
        try read { (state) throws(HermesError) in state.storedSessions(of: ids) }
    }

    package func sessions(after id: DurableSessionID?, limit: Int) async throws(HermesError) -> [StoredSession] {
        try read { (state) throws(HermesError) in state.storedSessions(after: id, limit: limit) }
    }

    package func change(
        _ changes: [PlaceChange],
        on node: NodeIdentity
    ) async throws(HermesError) -> [PlaceOutcome]? {
        try run { (state) throws(HermesError) in state.change(changes, on: node) }
    }

    package func claim(
        _ keys: [HandOffKey],
        number: UInt64,
        on node: NodeIdentity
    ) async throws(HermesError) -> Set<HandOffKey>? {
        try run { (state) throws(HermesError) in state.places.claim(keys, number: number, on: node) }
    }

    package func release(_ claims: [HandOffKey: UInt64], on node: NodeIdentity) async throws(HermesError) {
        try run { (state) throws(HermesError) in state.places.release(claims, on: node) }
    }

    package func standing(of users: [UserID], on node: NodeIdentity) async throws(HermesError) -> [PlaceStanding]? {
        try read { (state) throws(HermesError) in state.standing(of: users, on: node) }
    }

    package func online(after user: UserID?, limit: Int) async throws(HermesError) -> [PresenceChange] {
        try read { (state) throws(HermesError) in state.online(after: user, limit: limit) }
    }
}
