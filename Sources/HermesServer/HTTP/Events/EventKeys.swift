// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The keys that have streams or have had streams, by their ids. A key's allowance stays after its last stream has
/// closed, so that the key does not get a full allowance by opening another stream.
struct EventKeys {
    private struct Key {
        let allowance: EventAllowance
        var streams: Int
    }

    /// If there are at least this many keys, each key that has no streams and whose allowance is full is forgotten.
    private static let remembered = 4_096

    private var keys: [Int64: Key] = [:]

    /// The number of keys in memory.
    var count: Int { keys.count }

    /// Returns the allowance of a key; nil if the key is unknown. The allowance of an unknown key is full.
    func allowance(of id: Int64) -> EventAllowance? { keys[id]?.allowance }

    /// Returns the number of open streams of a key.
    func streams(of id: Int64) -> Int { keys[id]?.streams ?? 0 }

    mutating func opened(_ id: Int64, _ allowance: EventAllowance) {
        keys[id] = Key(allowance: allowance, streams: streams(of: id) + 1)
    }

    mutating func closed(_ id: Int64) { keys[id]?.streams -= 1 }

    /// Returns the keys without streams if there are very many keys and `id` is a new key; otherwise none. The caller
    /// can then forget the keys whose allowances are full.
    func idle(before id: Int64) -> [Int64: EventAllowance] {
        guard keys.count >= Self.remembered, keys[id] == nil else { return [:] }
        return keys.filter { $0.value.streams == 0 }.mapValues(\.allowance)
    }

    /// Forgets keys that still have no streams.
    mutating func forget(_ ids: some Sequence<Int64>) {
        for id in ids where streams(of: id) == 0 { keys[id] = nil }
    }
}
