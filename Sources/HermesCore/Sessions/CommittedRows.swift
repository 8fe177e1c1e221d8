// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A part of a committed operation: some of the queues that the operation wrote to, or tried to write to.
struct CommittedRows: Hashable, Sendable {
    /// The index of the operation in its commit.
    let operation: Int
    /// The indices of some targets of a publication, or of some items of a move; empty for an operation that writes to
    /// no queue.
    let range: Range<Int>

    /// The largest number of rows that are applied at once. Applying them takes a few hundredths of a millisecond.
    static let most = 256

    /// Cuts a commit's operations into slices of at most ``most`` rows. An operation that writes to no queue counts as
    /// one row.
    static func slices(of operations: [SessionOperation]) -> [[CommittedRows]] {
        var slices: [[CommittedRows]] = [[]]
        var room = most
        for (number, operation) in operations.enumerated() {
            let count = rows(of: operation)
            var start = 0
            repeat {
                if room == 0 {
                    slices.append([])
                    room = most
                }
                let end = min(count, start + room)
                slices[slices.count - 1].append(CommittedRows(operation: number, range: start..<end))
                room -= max(1, end - start)
                start = end
            } while start < count
        }
        return slices
    }

    private static func rows(of operation: SessionOperation) -> Int {
        switch operation {
        case .publish(_, let targets, _, _): targets.count
        case .move(let move): move.items.count
        case .open, .close, .remove, .subscribe, .unsubscribe, .retain, .completed, .released, .receivedReleased: 0
        }
    }
}

/// The publications that a commit has queued for sessions with a connection.
struct DurableDeliveries {
    private(set) var all: [(attachment: any DurableAttachment, publications: [QueuedPublication])] = []
    /// For each other node, the newest seqs in the queues of the sessions that are open there.
    private(set) var elsewhere: [NodeID: [DurableSessionID: UInt64]] = [:]
    private var places: [DurableSessionID: Int] = [:]

    mutating func add(_ seq: UInt64, to id: DurableSessionID, on node: NodeID) {
        elsewhere[node, default: [:]][id] = max(seq, elsewhere[node]?[id] ?? 0)
    }

    mutating func add(_ queued: QueuedPublication, for id: DurableSessionID, to attachment: any DurableAttachment) {
        if let place = places[id], all[place].attachment === attachment {
            all[place].publications.append(queued)
        } else {
            places[id] = all.count
            all.append((attachment, [queued]))
        }
    }
}
