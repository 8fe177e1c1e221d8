// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The retained publications of this node and the others. A node tells the others for which topics it has stored a
/// publication, or removed one; they read these topics from the record. After a gap they read all topics. A process
/// that is alone has none.
///
/// State: a `Mutex` around a struct; nothing is called under it. One task at a time calls ``tell()`` and ``read()``.
final class RetainedLinks: Sendable {
    private struct State: Sendable {
        /// What the others have not been told yet.
        var changed = PendingTopics()
        /// What must be read from the record.
        var due = PendingTopics()
        /// All topics are being read.
        var scan: Scan?
    }

    /// First come all pages of the record, then the topics that this node has and none of the pages had.
    private struct Scan: Sendable {
        /// The last topic that was read; nil: none yet.
        var place: TopicName?
        var isAtEnd = false
        var missing: Set<TopicName>
        /// Whether messages were lost since it began. It goes on all the same: while a link is bad, a scan that began
        /// anew each time would never end.
        var mustRepeat = false
    }

    /// The parts that one call reads. Then the caller does its other work.
    private static let partsPerCall = 16

    private let roster: ClusterRoster
    private let retained: RetainedMessages
    private let store: any SessionStore
    private let state = Mutex(State())

    init(_ roster: ClusterRoster, retained: RetainedMessages, store: any SessionStore) {
        self.roster = roster
        self.retained = retained
        self.store = store
        retained.stored.observe { [weak self] in self?.changed($0) }
        retained.outdated.observe { [weak self] in self?.told(.some([$0])) }
    }

    private func changed(_ topic: TopicName) {
        state.withLock { $0.changed.add([topic]) }
        roster.wakeUp.signal()
    }

    /// Another node has changed these topics.
    func told(_ topics: ChangedTopics) {
        due(topics)
        roster.wakeUp.signal()
    }

    /// Messages of other nodes may be lost.
    func missed() { due(.all) }

    private func due(_ topics: ChangedTopics) {
        state.withLock { state in
            switch topics {
            case .some(let topics): state.due.add(topics)
            case .all: state.due.addAll()
            }
        }
    }

    /// Tells the others what this node has changed.
    func tell() {
        while let topics = state.withLock({ $0.changed.take() }) {
            roster.bus.publish(.retained(topics), to: roster.peers)
        }
    }

    /// Reads a part of what the others have changed. If more is left, the ``ClusterMember`` is woken up for it.
    ///
    /// - Throws: `.storageUnavailable`; the next call continues.
    func read() async throws(HermesError) {
        for _ in 0..<Self.partsPerCall {
            let topics = state.withLock { $0.due.take() }
            if let topics {
                do throws(HermesError) {
                    try await read(topics)
                } catch {
                    due(topics)
                    throw error
                }
            }
            // Taken out, so that it is changed in its place.
            if var scan = state.withLock({ $0.scan.take() }) {
                defer { putBack(scan) }
                try await readOn(&scan)
            } else if topics == nil {
                return
            }
        }
        roster.wakeUp.signal()
    }

    private func read(_ topics: ChangedTopics) async throws(HermesError) {
        switch topics {
        case .some(let topics): try await read(topics)
        case .all:
            let isUnderWay = state.withLock { state in
                state.scan?.mustRepeat = true
                return state.scan != nil
            }
            if !isUnderWay { putBack(Scan(missing: retained.topics)) }
        }
    }

    private func putBack(_ scan: Scan) {
        state.withLock { state in
            let isDone = scan.isAtEnd && scan.missing.isEmpty
            state.scan = isDone ? nil : scan
            if isDone, scan.mustRepeat { state.due.addAll() }
        }
    }

    private func read(_ topics: [TopicName]) async throws(HermesError) {
        retained.beginReading()
        defer { retained.endReading() }
        retained.learn(try await store.retained(of: topics), of: topics)
    }

    /// Reads the next part of all topics.
    private func readOn(_ scan: inout Scan) async throws(HermesError) {
        guard !scan.isAtEnd else {
            let part = Array(scan.missing.prefix(RetainedMessages.slice))
            try await read(part)
            return scan.missing.subtract(part)
        }
        retained.beginReading()
        defer { retained.endReading() }
        let page = try await store.retained(after: scan.place, limit: RetainedMessages.slice)
        let topics = page.publications.map(\.topic)
        retained.learn(page.publications, of: topics)
        scan.missing.subtract(topics)
        (scan.place, scan.isAtEnd) = (page.next, page.next == nil)
    }
}

/// Topics whose retained publications a node has changed.
package enum ChangedTopics: Sendable, Hashable {
    case some([TopicName])
    /// There are too many to name them.
    case all
}

/// Topics that wait to be told or read. Beyond its limits it stands for all topics. Pure.
struct PendingTopics: Sendable {
    static let limit = 65_536
    static let maxBytes = 4 << 20
    /// The bounds of what is taken at once.
    static let partLimit = 256
    static let maxPartBytes = 256 << 10

    private var topics: Set<TopicName> = []
    private var bytes = 0
    private var isAll = false

    mutating func add(_ new: some Sequence<TopicName>) {
        guard !isAll else { return }
        for topic in new where topics.insert(topic).inserted { bytes += topic.rawValue.utf8.count }
        if topics.count > Self.limit || bytes > Self.maxBytes { addAll() }
    }

    mutating func addAll() {
        self = Self()
        isAll = true
    }

    /// - Returns: nil if there are none.
    mutating func take() -> ChangedTopics? {
        if isAll {
            isAll = false
            return .all
        }
        var part: [TopicName] = []
        var size = 0
        while part.count < Self.partLimit, size < Self.maxPartBytes, let topic = topics.popFirst() {
            size += topic.rawValue.utf8.count
            part.append(topic)
        }
        bytes -= size
        return part.isEmpty ? nil : .some(part)
    }
}
