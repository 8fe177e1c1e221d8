// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Records that are found by the hash of a secret and that have unique names. The keys of the HTTP API and the
/// invitations are such records. This type is a part of ``MemoryState``.
struct NamedSecrets<Record: Sendable>: Sendable {
    private var entries: [(hash: TokenHash, name: String, record: Record)] = []
    private var lastID: Int64 = 0

    /// All records, with the oldest record first.
    var all: [Record] { entries.map(\.record) }

    /// - Parameter make: makes the record for a new id.
    /// - Returns: the record; nil if the name is taken.
    mutating func insert(_ hash: TokenHash, named name: String, _ make: (Int64) -> Record) -> Record? {
        guard !entries.contains(where: { $0.name == name }) else { return nil }
        lastID += 1
        let record = make(lastID)
        entries.append((hash, name, record))
        return record
    }

    subscript(_ hash: TokenHash) -> Record? { entries.first { $0.hash == hash }?.record }

    /// Changes the record of a hash, if there is one.
    mutating func change(_ hash: TokenHash, _ body: (Record) -> Record) {
        guard let index = entries.firstIndex(where: { $0.hash == hash }) else { return }
        entries[index].record = body(entries[index].record)
    }

    /// Returns the hash of the first record for which `isWanted` returns true.
    func hash(where isWanted: (Record) -> Bool) -> TokenHash? { entries.first { isWanted($0.record) }?.hash }

    /// - Returns: whether there was a record with this name.
    mutating func remove(named name: String) -> Bool {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return false }
        entries.remove(at: index)
        return true
    }
}
