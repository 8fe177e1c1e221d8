// Hermes
// SPDX-License-Identifier: Apache-2.0

extension MemoryState {
    /// A will, and the process that publishes it.
    struct HeldWill: Sendable {
        var stored: StoredWill
        var holder: NodeIdentity
    }

    mutating func change(_ changes: [WillChange], on node: NodeIdentity) -> [Bool]? {
        guard places.isIn(node) else { return nil }
        return changes.map { change in
            switch change {
            case .give(let new):
                let known = wills[new.id]
                guard known?.holder ?? node == node else { return false }
                var stored = known?.stored ?? new
                (stored.will, stored.delay) = (new.will, new.delay)
                wills[new.id] = HeldWill(stored: stored, holder: node)
                return false
            case .wait(let id, let delay):
                guard wills[id]?.holder == node else { return false }
                wills[id]?.stored.state = .gone
                wills[id]?.stored.delay = delay
                return false
            case .take(let id):
                guard let held = wills[id], held.holder == node else { return false }
                let isToBePublished = held.stored.state == .due || held.stored.isToBePublished
                if isToBePublished { wills[id]?.stored.state = .due } else { wills[id] = nil }
                return isToBePublished
            case .remove(let id):
                if wills[id]?.holder == node { wills[id] = nil }
                return false
            }
        }
    }

    mutating func inheritWills(of node: NodeID, by heir: NodeIdentity, limit: Int) -> [StoredWill]? {
        guard places.isIn(heir) else { return nil }
        let left = wills.filter { isLeft($0.value, by: node) }.keys.prefix(max(1, limit))
        for id in left {
            guard var held = wills[id] else { continue }
            held.holder = heir
            if held.stored.state == .connected { held.stored.state = .gone }
            wills[id] = held
        }
        return left.compactMap { wills[$0]?.stored }
    }

    /// Whether there are wills of a node's former processes.
    func hasLeftWills(_ node: NodeID) -> Bool { wills.values.contains { isLeft($0, by: node) } }

    private func isLeft(_ will: HeldWill, by node: NodeID) -> Bool {
        will.holder.id == node && !places.isIn(will.holder)
    }

    /// Records in the wills of a client that the client has opened its session again.
    mutating func replaceWills(of key: SessionKey, isClean: Bool) {
        for (id, held) in wills where held.stored.key == key && held.stored.isReplacedByClean == nil {
            wills[id]?.stored.isReplacedByClean = isClean
        }
    }
}

extension MemoryStore: WillStore {
    package func change(_ changes: [WillChange], on node: NodeIdentity) async throws(HermesError) -> [Bool]? {
        try run { (state) throws(HermesError) in state.change(changes, on: node) }
    }

    package func inheritWills(
        of node: NodeID,
        by heir: NodeIdentity,
        limit: Int
    ) async throws(HermesError) -> [StoredWill]? {
        try run { (state) throws(HermesError) in state.inheritWills(of: node, by: heir, limit: limit) }
    }
}
