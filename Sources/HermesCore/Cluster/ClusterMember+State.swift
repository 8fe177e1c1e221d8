// Hermes
// SPDX-License-Identifier: Apache-2.0

extension ClusterMember {
    struct Peer: Sendable {
        let node: NodeIdentity
        /// The number of the node's last ``AccountEnd`` that was carried out here; nil if it is unknown.
        var ends: UInt64?
        /// The number of the node's last push token that is known here; nil if it is unknown.
        var tokens: UInt64?
        var mustAsk = true
        /// The uptime until which the node is not asked again, because it did not answer.
        var silentUntil = Duration.zero
    }

    struct SeenLease: Sendable {
        let renewals: UInt64
        let at: Duration
    }

    struct State: Sendable {
        var peers: [NodeID: Peer] = [:]
        /// For each node, the epoch of the last of its processes that has gone.
        var gone: [NodeID: UInt64] = [:]
        var isStarting = true
        /// Whether this process was removed from the record, or has left.
        var isOut = false
        /// Whether the record must be read.
        var mustReload = true
        /// Whether all devices with push tokens must be read.
        var mustLoadTokens = false
        /// Whether the accounts must be read, because a node has gone and its last ``AccountEnd``s may be lost.
        var mustCheckAccounts = false
        /// The last number of renewals of each node, and the uptime at which this process first saw that number.
        var leases: [NodeID: SeenLease] = [:]
        var renewedAt = Duration.zero
        var nextRenewal = Duration.zero
        /// For each user, the seq of the last inbox entry of which this process has learned from other nodes or from
        /// the record.
        var heads: [UserID: UInt64] = [:]
        /// The number of heads at which the heads of users without a connection are forgotten.
        var maxHeads = 1_024

        var nodes: NodeSet { peers.keys.reduce(into: NodeSet()) { $0.formUnion(NodeSet($1)) } }

        /// - Parameters:
        ///   - asked: the uptime at which the reading of the lease from the record began.
        ///   - answered: the uptime at which that reading ended.
        /// - Returns: the time for which the node has not renewed its lease, as far as this process has seen.
        mutating func silence(of lease: NodeLease, from asked: Duration, to answered: Duration) -> Duration {
            let id = lease.node.id
            if let seen = leases[id], seen.renewals == lease.renewals { return asked - seen.at }
            leases[id] = SeenLease(renewals: lease.renewals, at: answered)
            return .zero
        }

        /// Records that a process has gone. The process can no longer be asked for its last messages, so the record
        /// must be read.
        mutating func lost(_ node: NodeIdentity) {
            gone[node.id] = max(gone[node.id] ?? 0, node.epoch)
            mustCheckAccounts = true
            mustReload = true
            mustLoadTokens = true
        }
    }

    /// The functions for the clients that have no inbox: the MQTT clients.
    struct TopicClients: Sendable {
        let end: AccountService.EndOfTopicClients
        /// Ends all connections, because this process has left the cluster.
        let endAll: @Sendable () -> Void
        /// Ends the connections of an account for which the client showed one of the given proofs.
        let endHaving: @Sendable (UserID, Set<ShownProof>) -> Void
        /// The accounts with connections.
        let logins: @Sendable () -> [UserID: DurableSessions.Logins]
    }

    /// The stores that all nodes share.
    struct Stores: Sendable {
        let places: any PlaceStore
        let messages: any MessageStore
        let accounts: any AccountStore
    }
}
