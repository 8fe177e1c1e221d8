// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

extension APISchema {
    /// Returns the reason why a value does not match the schema; nil if it does.
    ///
    /// - Parameter path: the value's name in the message, such as `to.user`.
    func problem(with value: JSON, at path: String) -> String? {
        switch self {
        case .string(let length, let form):
            guard case .string(let text) = value else { return "\(path) must be a text, but is \(value.kind)" }
            return Self.problem(with: text, length, form, at: path)
        case .choice(let values):
            guard case .string(let text) = value, values.contains(text) else {
                return "\(path) must be one of \(values.joined(separator: ", "))"
            }
            return nil
        case .integer(let range):
            guard case .number = value, let number = value.integer else {
                return "\(path) must be a whole number, but is \(value.kind)"
            }
            return range.contains(number) ? nil : "\(path) must be \(Self.text(range))"
        case .boolean:
            return value.boolean == nil ? "\(path) must be true or false, but is \(value.kind)" : nil
        case .any:
            return nil
        case .anyObject:
            if case .object = value { return nil }
            return "\(path) must be an object, but is \(value.kind)"
        case .array(let element, let count):
            guard let values = value.array else { return "\(path) must be a list, but is \(value.kind)" }
            guard count.contains(values.count) else {
                return "\(path) must have \(count.lowerBound) to \(count.upperBound) elements, but has \(values.count)"
            }
            for (index, value) in values.enumerated() {
                if let problem = element.problem(with: value, at: "\(path)[\(index)]") { return problem }
            }
            return nil
        case .object(let fields):
            return Self.problem(with: value, fields, at: path)
        case .oneMember(let fields):
            if case .object(let members) = value, members.count != 1 {
                return "\(path) must have exactly one of \(fields.map(\.name).joined(separator: ", "))"
            }
            return Self.problem(with: value, fields, at: path)
        case .user:
            return APIUserSelector(value) == nil
                ? "\(path) must be a uid (a whole number) or a nick name of at most "
                    + "\(APIUserSelector.maxBytes) bytes" : nil
        case .named(_, let schema):
            return schema.problem(with: value, at: path)
        }
    }

    private static func problem(with value: JSON, _ fields: [Field], at path: String) -> String? {
        guard case .object(let members) = value else { return "\(path) must be an object, but is \(value.kind)" }
        let prefix = path == "the body" ? "" : "\(path)."
        for member in members {
            guard let field = fields.first(where: { $0.name == member.name }) else {
                let allowed = fields.map(\.name).joined(separator: ", ")
                return "\(prefix)\(member.name.prefix(64)) is unknown; allowed: \(allowed)"
            }
            if let problem = field.schema.problem(with: member.value, at: prefix + member.name) { return problem }
        }
        if let missing = fields.first(where: { $0.isRequired && value[$0.name] == nil }) {
            return "\(prefix)\(missing.name) is missing"
        }
        return nil
    }

    private static func problem(
        with text: String,
        _ length: ClosedRange<Int>,
        _ form: StringForm?,
        at path: String
    ) -> String? {
        let count = text.unicodeScalars.count
        guard length.contains(count) else {
            return count < length.lowerBound
                ? "\(path) must have at least \(length.lowerBound) characters"
                : "\(path) must have at most \(length.upperBound) characters, but has \(count)"
        }
        if let form, !form.isMet(text) { return "\(path) must be \(form.meaning)" }
        return nil
    }

    private static func text(_ range: ClosedRange<Int64>) -> String {
        switch (range.lowerBound == .min, range.upperBound == .max) {
        case (false, false): "from \(range.lowerBound) to \(range.upperBound)"
        case (false, true): "at least \(range.lowerBound)"
        case (true, false): "at most \(range.upperBound)"
        case (true, true): "a number of 64 bits"
        }
    }
}
