// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A part of the record of which each node has a copy. Read by one task at a time.
protocol Replica: Sendable {
    associatedtype Name: ReplicaName

    /// The names of everything in this node's copy.
    var names: Set<Name> { get }

    /// The record is going to be read, by one task at a time. ``endReading()`` follows.
    func beginReading()

    func endReading()

    /// Reads these from the record, and takes over what it finds.
    ///
    /// - Returns: what cannot be taken over now; it is read again by a later call.
    func read(_ names: [Name]) async throws(HermesError) -> [Name]

    /// Reads a page of everything in the record in the same way.
    ///
    /// - Parameter name: the end of the page before; nil: from the first.
    func readPage(after name: Name?) async throws(HermesError) -> ReplicaPage<Name>

    /// The message that tells other nodes of changes.
    func message(_ changes: ChangedNames<Name>) -> ClusterMessage
}

/// What a reading of a page has found.
struct ReplicaPage<Name: ReplicaName>: Sendable {
    let names: [Name]
    /// What cannot be taken over now.
    let later: [Name]
    /// The end of the page; nil if it is the last one.
    let next: Name?
}

/// Keeps this node's copy of a part of the record like the record. A node tells the others what it has changed there;
/// they read this from the record. After a gap they read everything. A process that is alone has none.
///
/// State: a `Mutex` around a struct; nothing is called under it. One task at a time calls ``tell()`` and ``read()``.
final class ReplicaLinks<Copy: Replica>: Sendable {
    typealias Name = Copy.Name

    private struct State: Sendable {
        /// What the others have not been told yet.
        var changed = PendingChanges<Name>()
        /// What must be read from the record.
        var due = PendingChanges<Name>()
        /// What must be read by the next call.
        var later: Set<Name> = []
        /// What somebody waits for.
        var urgent: Set<Name> = []
        /// Everything is being read.
        var scan: Scan?

        /// - Returns: this name and some others; none if another reading has had it since somebody waits for it.
        mutating func takeUrgent(_ name: Name) -> [Name] {
            guard urgent.remove(name) != nil else { return [] }
            var part = [name]
            while part.count < PendingChanges<Name>.partLimit, let next = urgent.popFirst() { part.append(next) }
            return part
        }
    }

    /// First come all pages of the record, then the names that this node has and none of the pages had.
    private struct Scan: Sendable {
        /// The last name that was read; nil: none yet.
        var place: Name?
        var isAtEnd = false
        var missing: Set<Name>
        /// Whether messages were lost since it began. It goes on all the same: while a link is bad, a scan that began
        /// anew each time would never end.
        var mustRepeat = false
    }

    /// The parts that one call reads. Then the caller does its other work.
    private static var partsPerCall: Int { 16 }
    /// The names that are read at once.
    private static var slice: Int { 500 }

    private let roster: ClusterRoster
    let copy: Copy
    private let state = Mutex(State())
    /// One reading at a time: what an earlier one finds must not be taken over after what a later one finds.
    private let turns = ReadGate(maxRunning: 1, maxWaiting: .max)

    init(_ roster: ClusterRoster, _ copy: Copy) {
        self.roster = roster
        self.copy = copy
    }

    /// This node has changed something in the record.
    func changed(_ name: Name) {
        state.withLock { $0.changed.add([name]) }
        roster.wakeUp.signal()
    }

    /// Another node has changed these, or this node's copy of them may be old.
    func told(_ names: ChangedNames<Name>) {
        due(names)
        roster.wakeUp.signal()
    }

    /// Messages of other nodes may be lost.
    func missed() { due(.all) }

    private func due(_ names: ChangedNames<Name>) {
        state.withLock { state in
            switch names {
            case .some(let names): state.due.add(names)
            case .all: state.due.addAll()
            }
        }
    }

    /// Tells the others what this node has changed.
    func tell() {
        while let names = state.withLock({ $0.changed.take() }) {
            roster.bus.publish(copy.message(names), to: roster.peers)
        }
    }

    /// Reads a part of what has changed. If more is left, the ``ClusterMember`` is woken up for it.
    ///
    /// - Throws: `.storageUnavailable`; the next call continues.
    func read() async throws(HermesError) {
        state.withLock { state in
            state.due.add(state.later)
            state.later = []
        }
        for _ in 0..<Self.partsPerCall {
            let names = state.withLock { $0.due.take() }
            if let names {
                do throws(HermesError) {
                    try await read(names)
                } catch {
                    due(names)
                    throw error
                }
            }
            // Taken out, so that it is changed in its place.
            if var scan = state.withLock({ $0.scan.take() }) {
                defer { putBack(scan) }
                try await readOn(&scan)
            } else if names == nil {
                return
            }
        }
        roster.wakeUp.signal()
    }

    /// Reads this before it returns. What cannot be read now is read by the next ``read()``.
    ///
    /// - Returns: false if this call could not read it. If another call has read it since, true, whatever that found.
    func readNow(_ name: Name) async -> Bool {
        state.withLock { _ = $0.urgent.insert(name) }
        do throws(HermesError) {
            try await reading { () async throws(HermesError) in
                let part = state.withLock { $0.takeUrgent(name) }
                guard !part.isEmpty else { return }
                do throws(HermesError) {
                    later(try await copy.read(part))
                } catch {
                    later(part)
                    throw error
                }
            }
            return true
        } catch {
            return false
        }
    }

    /// Reads until this node's copy has everything that the record had when the reading of all began.
    func finishReadingAll() async throws(HermesError) {
        repeat { try await read() } while state.withLock { $0.scan != nil }
    }

    private func read(_ names: ChangedNames<Name>) async throws(HermesError) {
        switch names {
        case .some(let names): try await read(names)
        case .all:
            let isUnderWay = state.withLock { state in
                state.scan?.mustRepeat = true
                return state.scan != nil
            }
            if !isUnderWay { putBack(Scan(missing: copy.names)) }
        }
    }

    private func putBack(_ scan: Scan) {
        state.withLock { state in
            let isDone = scan.isAtEnd && scan.missing.isEmpty
            state.scan = isDone ? nil : scan
            if isDone, scan.mustRepeat { state.due.addAll() }
        }
    }

    /// Reads in a turn of its own.
    private func reading<Value: Sendable>(
        _ body: () async throws(HermesError) -> Value
    ) async throws(HermesError) -> Value {
        try await turns.turn(of: .server) { () async throws(HermesError) in
            copy.beginReading()
            defer { copy.endReading() }
            return try await body()
        }
    }

    private func read(_ names: [Name]) async throws(HermesError) {
        later(try await reading { () async throws(HermesError) in try await copy.read(names) })
    }

    /// The record may have another state of these: they are read by the next call.
    func later(_ names: [Name]) {
        if !names.isEmpty { state.withLock { $0.later.formUnion(names) } }
    }

    /// Reads the next part of everything.
    private func readOn(_ scan: inout Scan) async throws(HermesError) {
        guard !scan.isAtEnd else {
            let part = Array(scan.missing.prefix(Self.slice))
            try await read(part)
            return scan.missing.subtract(part)
        }
        let place = scan.place
        let page = try await reading { () async throws(HermesError) in try await copy.readPage(after: place) }
        later(page.later)
        scan.missing.subtract(page.names)
        (scan.place, scan.isAtEnd) = (page.next, page.next == nil)
    }
}
