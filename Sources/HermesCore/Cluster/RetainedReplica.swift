// Hermes
// SPDX-License-Identifier: Apache-2.0

/// This node's copy of the retained publications.
struct RetainedReplica: Replica {
    let retained: RetainedMessages
    let store: any SessionStore

    var names: Set<TopicName> { retained.topics }

    func beginReading() { retained.beginReading() }

    func endReading() { retained.endReading() }

    func read(_ names: [TopicName]) async throws(HermesError) -> [TopicName] {
        retained.learn(try await store.retained(of: names), of: names)
        return []
    }

    func readPage(after name: TopicName?) async throws(HermesError) -> ReplicaPage<TopicName> {
        let page = try await store.retained(after: name, limit: RetainedMessages.slice)
        let topics = page.publications.map(\.topic)
        retained.learn(page.publications, of: topics)
        return ReplicaPage(names: topics, later: [], next: page.next)
    }

    func message(_ changes: ChangedNames<TopicName>) -> ClusterMessage { .retained(changes) }
}

extension ReplicaLinks<RetainedReplica> {
    convenience init(_ roster: ClusterRoster, _ retained: RetainedMessages, store: any SessionStore) {
        self.init(roster, RetainedReplica(retained: retained, store: store))
        retained.stored.observe { [weak self] in self?.changed($0) }
        retained.outdated.observe { [weak self] in self?.told(.some([$0])) }
    }
}
