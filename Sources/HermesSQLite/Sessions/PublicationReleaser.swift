// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Removes references to shared publications, and deletes publications that have no references left.
///
/// The subscribers of a topic acknowledge its publications in the order of the publications' keys. So the keys of a
/// commit form long runs, and a run costs little more than a single key.
struct PublicationReleaser {
    private let update: PreparedStatement
    private let select: PreparedStatement
    private let delete: [PreparedStatement]

    init(_ db: Database) throws {
        // A publication with a damaged number of references stays: nobody knows whether it is still needed.
        let sound = "key BETWEEN ? AND ? AND refs BETWEEN -\(PreparedStatement.maxAmount)"
        update = try PreparedStatement(
            db,
            "UPDATE publication_refs SET refs = refs - ? WHERE \(sound) AND \(PreparedStatement.maxAmount)"
        )
        select = try PreparedStatement(db, "SELECT key FROM publication_refs WHERE \(sound) AND 0")
        delete = try ["publication", "publication_refs"].map {
            try PreparedStatement(db, "DELETE FROM \($0) WHERE key BETWEEN ? AND ?")
        }
    }

    /// - Parameter counts: the removed references of each publication.
    func release(_ counts: [Int64: Int64]) throws {
        var run: (keys: ClosedRange<Int64>, count: Int64)?
        for (key, count) in counts.sorted(by: { $0.key < $1.key }) {
            if let last = run, last.count == count, key == last.keys.upperBound + 1 {
                run = (last.keys.lowerBound...key, count)
            } else {
                if let run { try release(run.keys, count: run.count) }
                run = (key...key, count)
            }
        }
        if let run { try release(run.keys, count: run.count) }
    }

    private func release(_ keys: ClosedRange<Int64>, count: Int64) throws {
        update.bind(count, at: 1)
        update.bind(keys.lowerBound, at: 2)
        update.bind(keys.upperBound, at: 3)
        try update.run()
        select.bind(keys.lowerBound, at: 1)
        select.bind(keys.upperBound, at: 2)
        var unused: [ClosedRange<Int64>] = []
        try select.forEachRow { row in
            let key = row.integer(0)
            if let last = unused.last, key == last.upperBound + 1 {
                unused[unused.count - 1] = last.lowerBound...key
            } else {
                unused.append(key...key)
            }
        }
        for keys in unused {
            for statement in delete {
                statement.bind(keys.lowerBound, at: 1)
                statement.bind(keys.upperBound, at: 2)
                try statement.run()
            }
        }
    }
}
