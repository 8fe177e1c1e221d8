// Hermes
// SPDX-License-Identifier: Apache-2.0

extension Damage {
    /// Reads the rows of a list, without damaged ones.
    ///
    /// - Parameters:
    ///   - limit: the number of values after which no further row is read. Damaged rows do not count.
    ///   - name: returns the name of a damaged row, without its content.
    func list<Value>(
        _ query: PreparedStatement,
        limit: Int = .max,
        name: (PreparedStatement) -> String,
        read: (PreparedStatement) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        try query.forEachRow { row in
            if let value = try skipping(name(row), { try read(row) }) { values.append(value) }
            return values.count < limit
        }
        return values
    }
}
