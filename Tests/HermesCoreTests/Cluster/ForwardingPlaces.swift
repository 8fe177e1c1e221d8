// Hermes
// SPDX-License-Identifier: Apache-2.0

@testable import HermesCore

/// A record that forwards everything to a store in memory. Test doubles implement only the functions that they change.
protocol ForwardingPlaces: PlaceStore {
    var base: MemoryStore { get }
}

extension ForwardingPlaces {
    func join(_ node: NodeID) async throws(HermesError) -> NodeIdentity { try await base.join(node) }

    func renew(_ node: NodeIdentity) async throws(HermesError) -> [NodeLease]? { try await base.renew(node) }

    func remove(
        _ node: NodeIdentity,
        _ removal: LeaseRemoval,
        now: Timestamp,
        limit: Int
    ) async throws(HermesError) -> NodeRemoval {
        try await base.remove(node, removal, now: now, limit: limit)
    }

    func change(_ changes: [WillChange], on node: NodeIdentity) async throws(HermesError) -> [Bool]? {
        try await base.change(changes, on: node)
    }

    func inheritWills(
        of node: NodeID,
        by heir: NodeIdentity,
        limit: Int
    ) async throws(HermesError) -> [StoredWill]? {
        try await base.inheritWills(of: node, by: heir, limit: limit)
    }

    func secret(_ name: String, proposal: [UInt8]) async throws(HermesError) -> [UInt8] {
        try await base.secret(name, proposal: proposal)
    }

    func sessions(of ids: [DurableSessionID]) async throws(HermesError) -> [StoredSession] {
        try await base.sessions(of: ids)
    }

    func sessions(after id: DurableSessionID?, limit: Int) async throws(HermesError) -> [StoredSession] {
        try await base.sessions(after: id, limit: limit)
    }

    func change(_ changes: [PlaceChange], on node: NodeIdentity) async throws(HermesError) -> [PlaceOutcome]? {
        try await base.change(changes, on: node)
    }

    func claim(
        _ keys: [HandOffKey],
        number: UInt64,
        on node: NodeIdentity
    ) async throws(HermesError) -> Set<HandOffKey>? {
        try await base.claim(keys, number: number, on: node)
    }

    func release(_ claims: [HandOffKey: UInt64], on node: NodeIdentity) async throws(HermesError) {
        try await base.release(claims, on: node)
    }

    func standing(of users: [UserID], on node: NodeIdentity) async throws(HermesError) -> [PlaceStanding]? {
        try await base.standing(of: users, on: node)
    }

    func online(after user: UserID?, limit: Int) async throws(HermesError) -> [PresenceChange] {
        try await base.online(after: user, limit: limit)
    }
}
