// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Repairs the effects of lost messages: asks the other nodes, and reads the record.
extension ClusterMember {
    func repair() async {
        let now = time.uptime()
        let (peers, mustReload, mustCheckAccounts, isOut) = state.withLock { state in
            let peers = state.peers.values.filter { $0.mustAsk && $0.silentUntil <= now }
            defer {
                // If another gap is noticed from now on, the node is asked again.
                for peer in peers { state.peers[peer.node.id]?.mustAsk = false }
                state.mustReload = false
                state.mustCheckAccounts = false
            }
            return (peers, state.mustReload || !peers.isEmpty, state.mustCheckAccounts, state.isOut)
        }
        guard !isOut else { return }
        for peer in peers {
            await askForEnds(peer)
            await askForTokens(peer)
            await askForTopics(peer)
        }
        do throws(HermesError) {
            if state.withLock({ $0.mustLoadTokens }) { try await loadTokens() }
            if mustReload {
                retained.missed()
                sessions.missed()
                try await reloadPresence()
                try await look()
                repaired()
            }
            if mustCheckAccounts { try await checkAccounts() }
        } catch {
            state.withLock { state in
                state.mustReload = state.mustReload || mustReload
                state.mustCheckAccounts = state.mustCheckAccounts || mustCheckAccounts
            }
        }
    }

    /// Asks a node for the ``AccountEnd``s that did not arrive here. A node that does not answer is asked again later.
    /// Each time, the record is also read.
    private func askForEnds(_ peer: Peer) async {
        guard case .ends(let ends, let last)? = await bus.ask(.ends(after: peer.ends), of: peer.node.id) else {
            return mustAskAgain(peer)
        }
        guard answered(peer, \.ends, upTo: last) else { return }
        if let ends { for end in ends { carryOut(end) } } else { endAll() }
    }

    private func askForTokens(_ peer: Peer) async {
        guard case .tokens(let keys, let last)? = await bus.ask(.tokens(after: peer.tokens), of: peer.node.id) else {
            return mustAskAgain(peer)
        }
        guard answered(peer, \.tokens, upTo: last) else { return }
        if let keys { heardLate(keys.filter(tokens.heard)) } else { state.withLock { $0.mustLoadTokens = true } }
    }

    private func loadTokens() async throws(HermesError) {
        state.withLock { $0.mustLoadTokens = false }
        do throws(HermesError) {
            heardLate(try await tokens.load())
        } catch {
            state.withLock { $0.mustLoadTokens = true }
            throw error
        }
    }

    /// Handles devices if this node has learned of their push tokens too late: until now, this node has committed
    /// entries without regard to these devices. If the node is starting, it has committed no entries, so there is
    /// nothing to do.
    private func heardLate(_ devices: [DeviceKey]) {
        if !devices.isEmpty, !state.withLock({ $0.isStarting }) { tokens.overlooked(devices) }
    }

    /// Sets a node's count of ``AccountEnd``s or of push tokens to the number up to which the node has answered.
    ///
    /// - Returns: false if the next numbered message arrived meanwhile, so that it is not known whether the answer
    ///   contains that message.
    private func answered(
        _ peer: Peer,
        _ count: WritableKeyPath<Peer, UInt64?>,
        upTo last: UInt64
    ) -> Bool {
        state.withLock { state in
            guard let known = state.peers[peer.node.id], known.node == peer.node,
                known[keyPath: count] == peer[keyPath: count]
            else {
                state.peers[peer.node.id]?.mustAsk = true
                return false
            }
            state.peers[peer.node.id]?[keyPath: count] = last
            return true
        }
    }

    private func askForTopics(_ peer: Peer) async {
        guard case .topics(let all, let number)? = await bus.ask(.topics, of: peer.node.id),
            topics.answered(all, upTo: number, by: peer.node)
        else { return mustAskAgain(peer) }
    }

    private func mustAskAgain(_ peer: Peer) {
        let silentUntil = time.uptime() + Self.renewal
        state.withLock { state in
            guard state.peers[peer.node.id]?.node == peer.node else { return }
            state.peers[peer.node.id]?.mustAsk = true
            state.peers[peer.node.id]?.silentUntil = silentUntil
        }
    }

    private func reloadPresence() async throws(HermesError) {
        let changes = roster.presenceChanges
        var online: [PresenceChange] = []
        var last: UserID?
        repeat {
            let page = try await stores.places.online(after: last, limit: Self.batch)
            online += page
            last = page.count < Self.batch ? nil : page.last?.user
        } while last != nil
        for user in roster.reload(online, changesBefore: changes) { devices.presenceTurned(of: user) }
    }

    /// Compares this node's connections with the record.
    private func look() async throws(HermesError) {
        let held = roster.held
        forgetHeads(but: held)
        let users = held.keys.sorted()
        for some in users.slices(of: Self.batch) {
            guard let standings = try await stores.places.standing(of: Array(some), on: roster.node) else {
                return expelled()
            }
            for standing in standings {
                let own = held[standing.user] ?? []
                for held in own where held.isClaimed && !standing.connections.contains(held.connection) {
                    devices.end(held.attachment, .replaced)
                }
                guard state.withLock({ $0.heads[standing.user] ?? 0 < standing.head }) else { continue }
                try await show(upTo: standing.head, of: standing.user, to: own.map(\.attachment))
                state.withLock { $0.heads[standing.user] = max($0.heads[standing.user] ?? 0, standing.head) }
            }
        }
    }

    /// Ends the connections of accounts that are disabled or deleted, and the connections whose password or token is no
    /// longer valid. Gives connections the present names of their accounts. This is needed because a node that has gone
    /// cannot be asked for its last ``AccountEnd``s.
    private func checkAccounts() async throws(HermesError) {
        for (user, held) in roster.held {
            // The proofs are read before the record, so that no proof that is newer than the record is compared with
            // the record.
            let shown = Set(devices.attachments(of: user).map(\.principal.shown))
            guard let stored = try await present(user, { devices.endHere(user, $0, .all) }) else { continue }
            let name = stored.account.nickName
            if held.contains(where: { $0.attachment.principal.nickName.rawValue != name.rawValue }) {
                devices.renameHere(user, to: name)
            }
            let invalid = try await invalid(shown, of: stored)
            if !invalid.isEmpty { devices.end(user, .revoked) { invalid.contains($0.shown) } }
        }
        for (user, logins) in topicClients.logins() {
            let stored = try await present(user) { reason in
                for name in logins.names { topicClients.end(user, name, reason, .all) }
            }
            guard let stored else { continue }
            for name in logins.names where name != stored.account.nickName.key {
                topicClients.end(user, name, .accountRenamed, .all)
            }
            let invalid = try await invalid(logins.shown, of: stored)
            if !invalid.isEmpty { topicClients.endHaving(user, invalid) }
        }
    }

    /// Returns the proofs in `shown` that are no longer valid, because the password was changed or the token was
    /// revoked.
    private func invalid(
        _ shown: Set<ShownProof>,
        of stored: StoredAccount
    ) async throws(HermesError) -> Set<ShownProof> {
        var invalid: Set<ShownProof> = []
        for proof in shown {
            var isTokenKnown = true
            if let token = proof.token {
                isTokenKnown = try await stores.accounts.owner(of: token)?.user == stored.account.id
            }
            if proof.refusal(password: stored.password, isTokenKnown: isTokenKnown) != nil { invalid.insert(proof) }
        }
        return invalid
    }

    /// - Parameter end: called if the account is disabled or deleted.
    /// - Returns: the account; nil if it is deleted.
    private func present(_ user: UserID, _ end: (AttachmentEnd) -> Void) async throws(HermesError) -> StoredAccount? {
        guard let stored = try await stores.accounts.find(.id(user)) else {
            end(.accountDeleted)
            return nil
        }
        if stored.account.isDisabled { end(.accountDisabled) }
        return stored
    }
}
