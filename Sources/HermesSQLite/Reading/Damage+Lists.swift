// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Damage {
    /// Reads the rows of a list, without damaged ones.
    ///
    /// - Parameters:
    ///   - limit: the largest number of values. Damaged rows do not count: they stay where they are, so a page of them
    ///     alone would look like the end.
    ///   - name: returns the name of a damaged row, without its content.
    func list<Value>(
        _ query: PreparedStatement,
        limit: Int = .max,
        name: (PreparedStatement) -> String,
        read: (PreparedStatement) throws -> Value
    ) throws -> [Value] {
        guard limit > 0 else { return [] }
        var values: [Value] = []
        try query.forEachRowWhile { row in
            if let value = try skipping(name(row), { try read(row) }) { values.append(value) }
            return values.count < limit
        }
        return values
    }
}
