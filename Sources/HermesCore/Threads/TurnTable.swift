// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Values by name that take turns. A value that is empty after it was used is removed, and has no turn. Pure.
package struct TurnTable<Name: Hashable, Value> {
    private var values: [Name: Value] = [:]
    /// The names, each once, in turn.
    private var turns = Deque<Name>()

    package init() {}

    subscript(_ name: Name) -> Value? { values[name] }

    /// Changes a value. A new one has its turn after all others.
    package mutating func update(_ name: Name, default value: @autoclosure () -> Value, _ body: (inout Value) -> Void) {
        if values[name] == nil { turns.append(name) }
        body(&values[name, default: value()])
    }

    /// Uses the value whose turn it is.
    ///
    /// - Parameter body: returns its result, and whether the value is empty now.
    package mutating func next<Result>(_ body: (inout Value) -> (Result?, isEmpty: Bool)) -> Result? {
        guard let name = turns.popFirst(), var value = values.removeValue(forKey: name) else { return nil }
        let (result, isEmpty) = body(&value)
        if !isEmpty {
            values[name] = value
            turns.append(name)
        }
        return result
    }

    /// Uses a value out of turn; it keeps its turn.
    mutating func take<Result>(
        of name: Name,
        _ body: (inout Value) -> (Result?, isEmpty: Bool)
    ) -> Result? {
        guard var value = values.removeValue(forKey: name) else { return nil }
        let (result, isEmpty) = body(&value)
        if isEmpty { turns.removeAll { $0 == name } } else { values[name] = value }
        return result
    }

    /// The name of a value with the greatest number; takes as long as there are values.
    func keyOfGreatest(_ number: (Value) -> Int) -> Name? { values.max { number($0.value) < number($1.value) }?.key }
}

extension TurnTable: Sendable where Name: Sendable, Value: Sendable {}
