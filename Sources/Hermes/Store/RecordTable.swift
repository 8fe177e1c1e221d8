// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// A table of records by key, in the order in which the keys were first written.
struct RecordTable: Sendable {
    private var values: [ExactText: (ordinal: UInt64, value: [UInt8])] = [:]
    private var lastOrdinal: UInt64 = 0
    /// The size of the records in a log, in bytes.
    private(set) var bytes = 0

    var records: [LocalRecord] {
        values.sorted { $0.value.ordinal < $1.value.ordinal }
            .map { LocalRecord(key: $0.key.text, value: $0.value.value) }
    }

    /// Returns the size after the changes. No two changes may have the same key.
    func bytes(after changes: [LocalChange]) -> Int {
        changes.reduce(bytes) { sum, change in
            let old = values[ExactText(change.key)].map { RecordLog.bytes(key: change.key, value: $0.value) } ?? 0
            return sum - old + (change.value.map { RecordLog.bytes(key: change.key, value: $0) } ?? 0)
        }
    }

    mutating func apply(_ changes: [LocalChange]) {
        for change in changes {
            let key = ExactText(change.key)
            let old = values.removeValue(forKey: key)
            if let old { bytes -= RecordLog.bytes(key: change.key, value: old.value) }
            guard let value = change.value else { continue }
            bytes += RecordLog.bytes(key: change.key, value: value)
            if old == nil { lastOrdinal &+= 1 }
            values[key] = (old?.ordinal ?? lastOrdinal, value)
        }
    }
}
