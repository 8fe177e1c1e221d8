// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Damage {
    /// Reads the rows of a list, without damaged ones.
    ///
    /// - Parameters:
    ///   - limit: the largest number of values. Damaged rows do not count. Otherwise a page of damaged rows alone
    ///     would be empty and look like the end of the list.
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
