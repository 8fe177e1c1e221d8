// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOConcurrencyHelpers

/// Keeps what a client must not forget between two runs of the app: what waits to be sent, up to where the app has taken
/// its inbox, and its last entries.
///
/// A store is for one client at a time. It holds message contents: keep it where only the app can read.
public protocol LocalStore: Sendable {
    /// All records, in the order in which their keys were first written. Called once, when a client is created.
    ///
    /// - Throws: if they cannot be read.
    func records() throws -> [LocalRecord]

    /// Carries out changes, all or none, after those of the calls before. Called on the loops of connections: it must not
    /// wait for anything.
    ///
    /// - Parameters:
    ///   - changes: what to write and to remove.
    ///   - durably: whether not even a power cut may undo them once `completion` was called.
    ///   - completion: called once, on any thread.
    func write(
        _ changes: [LocalChange],
        durably: Bool,
        completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    )
}

extension LocalStore {
    /// The same, for callers that may wait.
    func write(_ changes: [LocalChange], durably: Bool) async throws {
        try await withCheckedThrowingContinuation { continuation in
            write(changes, durably: durably) { continuation.resume(with: $0) }
        }
    }
}

/// What a store keeps under a key.
public struct LocalRecord: Hashable, Sendable {
    /// 1 to 255 bytes.
    public var key: String
    /// The client's own bytes.
    public var value: [UInt8]

    /// Creates a record.
    public init(key: String, value: [UInt8]) {
        self.key = key
        self.value = value
    }
}

/// Writes or removes one record.
public struct LocalChange: Hashable, Sendable {
    /// Which record: 1 to 255 bytes.
    public var key: String
    /// What is kept under the key from now on; nil: nothing.
    public var value: [UInt8]?

    /// Creates a change.
    public init(key: String, value: [UInt8]?) {
        self.key = key
        self.value = value
    }
}

/// Keeps records for as long as the process lives.
public final class MemoryLocalStore: LocalStore {
    private let table = NIOLockedValueBox(RecordTable())

    /// Creates an empty store.
    public init() {}

    /// All records.
    public func records() -> [LocalRecord] { table.withLockedValue { $0.records } }

    /// Carries out changes.
    public func write(
        _ changes: [LocalChange],
        durably: Bool,
        completion: @escaping @Sendable (Result<Void, any Error>) -> Void
    ) {
        table.withLockedValue { $0.apply(changes) }
        completion(.success(()))
    }
}

/// Records by key, in the order in which the keys were first written. A value.
struct RecordTable: Sendable {
    private var values: [String: (ordinal: UInt64, value: [UInt8])] = [:]
    private var lastOrdinal: UInt64 = 0
    /// How many bytes the records have in a log.
    private(set) var bytes = 0

    var records: [LocalRecord] {
        values.sorted { $0.value.ordinal < $1.value.ordinal }
            .map { LocalRecord(key: $0.key, value: $0.value.value) }
    }

    /// How many there would be after the changes, of which each has a key of its own.
    func bytes(after changes: [LocalChange]) -> Int {
        changes.reduce(bytes) { sum, change in
            let old = values[change.key].map { RecordLog.bytes(key: change.key, value: $0.value) } ?? 0
            return sum - old + (change.value.map { RecordLog.bytes(key: change.key, value: $0) } ?? 0)
        }
    }

    mutating func apply(_ changes: [LocalChange]) {
        for change in changes {
            let old = values.removeValue(forKey: change.key)
            if let old { bytes -= RecordLog.bytes(key: change.key, value: old.value) }
            guard let value = change.value else { continue }
            bytes += RecordLog.bytes(key: change.key, value: value)
            if old == nil { lastOrdinal &+= 1 }
            values[change.key] = (old?.ordinal ?? lastOrdinal, value)
        }
    }
}
