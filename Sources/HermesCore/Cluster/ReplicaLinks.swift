// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A part of the record of which each node has a copy. The record is the content of the stores that all nodes share.
/// One task at a time reads the record.
protocol Replica: Sendable {
    associatedtype Name: ReplicaName

    /// The names of everything in this node's copy.
    var names: Set<Name> { get }

    /// Begins a reading of the record. One task at a time reads it, and calls ``endReading()`` afterwards.
    func beginReading()

    func endReading()

    /// Reads the items with these names from the record, and updates the copy.
    ///
    /// - Returns: the names of items that cannot be put into the copy now. A later call reads them again.
    func read(_ names: [Name]) async throws(HermesError) -> [Name]

    /// Reads a page of all items in the record, and updates the copy.
    ///
    /// - Parameter name: the end of the previous page; nil for the first page.
    func readPage(after name: Name?) async throws(HermesError) -> ReplicaPage<Name>

    /// Returns the message that tells other nodes of changes.
    func message(_ changes: ChangedNames<Name>) -> ClusterMessage
}

/// The result of reading a page.
struct ReplicaPage<Name: ReplicaName>: Sendable {
    let names: [Name]
    /// The names of items that cannot be put into the copy now.
    let later: [Name]
    /// The end of the page; nil if it is the last page.
    let next: Name?
}

/// Keeps this node's copy of a part of the record up to date. A node tells the other nodes which items it has changed
/// in the record, and the other nodes read these items from the record. If messages are lost, they read everything. A
/// process that is alone has no such links.
///
/// State: a `Mutex` around a struct. No other code is called while it is locked. One task at a time calls ``tell()``
/// and ``read()``.
final class ReplicaLinks<Copy: Replica>: Sendable {
    typealias Name = Copy.Name

    private struct State: Sendable {
        /// Changes of this node that have not been reported to the other nodes yet.
        var changed = PendingChanges<Name>()
        /// The names that must be read from the record.
        var due = PendingChanges<Name>()
        /// The names that the next call to ``read()`` must read.
        var later: Set<Name> = []
        /// The names that callers of ``readNow(_:)`` wait for.
        var urgent: Set<Name> = []
        /// The present reading of everything; nil if none is under way.
        var scan: Scan?

        /// - Returns: this name and some other urgent names; no names if another reading has taken this name meanwhile.
        mutating func takeUrgent(_ name: Name) -> [Name] {
            guard urgent.remove(name) != nil else { return [] }
            var part = [name]
            while part.count < PendingChanges<Name>.partLimit, let next = urgent.popFirst() { part.append(next) }
            return part
        }
    }

    /// A reading of everything. It reads all pages of the record. After that, it reads the names that are in this
    /// node's copy but were not on any page.
    private struct Scan: Sendable {
        /// The last name that was read; nil if no name was read yet.
        var place: Name?
        var isAtEnd = false
        var missing: Set<Name>
        /// Whether messages were lost since the scan began, so that the scan must be repeated. The scan still continues
        /// to its end: while a link is bad, a scan that began anew each time would never end.
        var mustRepeat = false
    }

    /// The largest number of parts that one call reads. After them, the caller does its other work.
    private static var partsPerCall: Int { 16 }
    /// The largest number of names that are read at once.
    private static var slice: Int { 500 }

    private let roster: ClusterRoster
    let copy: Copy
    private let state = Mutex(State())
    /// Allows one reading at a time, so that the results of an earlier reading do not overwrite the results of a later
    /// reading.
    private let turns = ReadGate(maxRunning: 1, maxWaiting: .max)

    init(_ roster: ClusterRoster, _ copy: Copy) {
        self.roster = roster
        self.copy = copy
    }

    /// Records that this node has changed an item in the record.
    func changed(_ name: Name) {
        state.withLock { $0.changed.add([name]) }
        roster.wakeUp.signal()
    }

    /// Records that another node has changed these items, or that this node's copy of them may be out of date.
    func told(_ names: ChangedNames<Name>) {
        due(names)
        roster.wakeUp.signal()
    }

    /// Records that messages of other nodes may be lost, so that everything must be read.
    func missed() { due(.all) }

    private func due(_ names: ChangedNames<Name>) {
        state.withLock { state in
            switch names {
            case .some(let names): state.due.add(names)
            case .all: state.due.addAll()
            }
        }
    }

    /// Tells the other nodes which items this node has changed.
    func tell() {
        while let names = state.withLock({ $0.changed.take() }) {
            roster.bus.publish(copy.message(names), to: roster.peers)
        }
    }

    /// Reads a part of the items that must be read. If more items remain, wakes up the ``ClusterMember``, which calls
    /// this function again.
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
            // The scan is taken out of the state, so that it is changed in place and not copied.
            if var scan = state.withLock({ $0.scan.take() }) {
                defer { putBack(scan) }
                try await readOn(&scan)
            } else if names == nil {
                return
            }
        }
        roster.wakeUp.signal()
    }

    /// Reads an item and waits for the result. If the item cannot be read now, the next ``read()`` reads it.
    ///
    /// - Returns: false if this call has tried to read the item and failed. If another call has taken the name
    ///   meanwhile, the result is true, whatever that call has found.
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

    /// Reads until this node's copy has everything that was in the record when the reading of everything began.
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

    /// Runs a reading while no other reading runs.
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

    /// Records that this node's copy of these items may be out of date, so that the next ``read()`` reads them.
    func later(_ names: [Name]) {
        if !names.isEmpty { state.withLock { $0.later.formUnion(names) } }
    }

    /// Reads the next part of a scan.
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
