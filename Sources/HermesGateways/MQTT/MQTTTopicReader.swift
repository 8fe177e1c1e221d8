// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// The permissions of one client, readable on any thread. Shared subscriptions need them to choose the member that gets
/// a publication.
///
/// State: a `Mutex`. No other code is called while it is held.
final class MQTTTopicReader: TopicReader {
    private struct State: Sendable {
        var identity: ClientIdentity
        /// The number of earlier identities.
        var renewals = 0
        var rules: BoundTopicRules?
        var generation: UInt64 = 0
        /// Rooms from which an operator removed the client.
        var closed: Set<TopicName>
    }

    let maxMessageBytes: Int
    private let access: TopicAccess
    private let state: Mutex<State>

    init(_ identity: ClientIdentity, _ access: TopicAccess, closed: Set<TopicName>, maxMessageBytes: Int = .max) {
        self.access = access
        self.maxMessageBytes = maxMessageBytes
        state = Mutex(State(identity: identity, closed: closed))
    }

    /// Gives the client other permissions. The object itself is changed, because groups keep their references to it.
    func renew(_ identity: ClientIdentity) {
        state.withLock { state in
            state.identity = identity
            state.renewals += 1
            state.rules = nil
        }
    }

    func close(_ rooms: Set<TopicName>) { state.withLock { $0.closed = rooms } }

    func mayRead(_ topic: TopicName) -> Bool {
        let generation = access.generation
        let known: BoundTopicRules?? = state.withLock { state in
            if !state.closed.isEmpty, state.closed.contains(topic) { return .none }
            return .some(state.generation == generation ? state.rules : nil)
        }
        guard let known else { return false }
        return (known ?? bind(generation)).allows(.subscribe, topic)
    }

    func without(_ name: String) -> any TopicReader {
        let (identity, closed) = state.withLock { ($0.identity, $0.closed) }
        guard identity.userName == name else { return self }
        return MQTTTopicReader(identity.underNoName, access, closed: closed, maxMessageBytes: maxMessageBytes)
    }

    private func bind(_ generation: UInt64) -> BoundTopicRules {
        let (identity, renewals) = state.withLock { ($0.identity, $0.renewals) }
        let rules = access.current.bound(to: identity)
        state.withLock { state in
            guard state.renewals == renewals else { return }
            state.rules = rules
            state.generation = generation
        }
        return rules
    }
}
