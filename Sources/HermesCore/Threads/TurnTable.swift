// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Named values that take turns. If a value is empty after a use, the table removes the value and its turn. Does no
/// I/O.
package struct TurnTable<Name: Hashable, Value> {
    private var values: [Name: Value] = [:]
    /// The names in the order of their turns. Each name occurs once.
    private var turns = Deque<Name>()

    package init() {}

    subscript(_ name: Name) -> Value? { values[name] }

    /// Changes a value. A new value has its turn after all others.
    package mutating func update(_ name: Name, default value: @autoclosure () -> Value, _ body: (inout Value) -> Void) {
        if values[name] == nil { turns.append(name) }
        body(&values[name, default: value()])
    }

    /// Uses the value whose turn it is.
    ///
    /// - Parameter body: uses the value, and returns the result of ``next(_:)`` and whether the value is now empty.
    package mutating func next<Result>(_ body: (inout Value) -> (Result?, isEmpty: Bool)) -> Result? {
        guard let name = turns.popFirst(), var value = values.removeValue(forKey: name) else { return nil }
        let (result, isEmpty) = body(&value)
        if !isEmpty {
            values[name] = value
            turns.append(name)
        }
        return result
    }

    /// Uses a value out of turn. The value keeps its place in the order of turns.
    mutating func take<Result>(
        of name: Name,
        _ body: (inout Value) -> (Result?, isEmpty: Bool)
    ) -> Result? {
        guard var value = values.removeValue(forKey: name) else { return nil }
        let (result, isEmpty) = body(&value)
        if isEmpty { turns.removeAll { $0 == name } } else { values[name] = value }
        return result
    }

    /// Returns the name of the value with the greatest number. The search takes time proportional to the number of
    /// values.
    func keyOfGreatest(_ number: (Value) -> Int) -> Name? { values.max { number($0.value) < number($1.value) }?.key }
}

extension TurnTable: Sendable where Name: Sendable, Value: Sendable {}
