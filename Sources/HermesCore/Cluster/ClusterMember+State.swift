// Hermes
// SPDX-License-Identifier: Apache-2.0

extension ClusterMember {
    struct Peer: Sendable {
        let node: NodeIdentity
        /// The last of its ends that was carried out; nil: unknown.
        var ends: UInt64?
        /// The last of its new push tokens that is known; nil: unknown.
        var tokens: UInt64?
        var mustAsk = true
        /// Until then it is not asked again, because it did not answer.
        var silentUntil = Duration.zero
    }

    struct SeenLease: Sendable {
        let renewals: UInt64
        let at: Duration
    }

    struct State: Sendable {
        var peers: [NodeID: Peer] = [:]
        /// The last process of each node that has gone.
        var gone: [NodeID: UInt64] = [:]
        var isStarting = true
        /// Whether this process was removed from the record, or has left.
        var isOut = false
        /// Whether the record must be read.
        var mustReload = true
        /// Whether all devices with push tokens must be read.
        var mustLoadTokens = false
        /// Whether a node has gone whose last ends may be lost.
        var mustCheckAccounts = false
        /// The last renewals of the nodes, and when this process saw the first of each.
        var leases: [NodeID: SeenLease] = [:]
        var renewedAt = Duration.zero
        var nextRenewal = Duration.zero
        /// The last entry of each user that came from elsewhere.
        var heads: [UserID: UInt64] = [:]
        /// With so many, those of users without a connection are forgotten.
        var maxHeads = 1_024

        var nodes: NodeSet { peers.keys.reduce(into: NodeSet()) { $0.formUnion(NodeSet($1)) } }

        /// - Parameters:
        ///   - asked: the uptime at which the record was asked for the lease.
        ///   - answered: the uptime at which it has answered.
        /// - Returns: the time for which the node has not renewed its lease, as far as this process has seen.
        mutating func silence(of lease: NodeLease, from asked: Duration, to answered: Duration) -> Duration {
            let id = lease.node.id
            if let seen = leases[id], seen.renewals == lease.renewals { return asked - seen.at }
            leases[id] = SeenLease(renewals: lease.renewals, at: answered)
            return .zero
        }

        /// A process has gone: nobody can be asked what it published last, so the record is read.
        mutating func lost(_ node: NodeIdentity) {
            gone[node.id] = max(gone[node.id] ?? 0, node.epoch)
            mustCheckAccounts = true
            mustReload = true
            mustLoadTokens = true
        }
    }

    /// Of the clients that have no inbox: those of MQTT.
    struct TopicClients: Sendable {
        let end: AccountService.EndOfTopicClients
        /// Ends all connections, because this process has left the cluster.
        let endAll: @Sendable () -> Void
        /// The accounts with connections, each with the names under which these logged in.
        let names: @Sendable () -> [UserID: Set<String>]
    }

    /// The stores behind the seams.
    struct Stores: Sendable {
        let places: any PlaceStore
        let messages: any MessageStore
        let accounts: any AccountStore
    }
}
