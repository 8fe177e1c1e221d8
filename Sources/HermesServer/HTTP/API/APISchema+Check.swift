// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire

extension APISchema {
    /// Returns the reason why a value does not match the schema; nil if the value matches. The error is `.tooLarge`
    /// if a text or a list is too long, and `.invalidArgument` otherwise. The error's message does not end with a
    /// full stop.
    ///
    /// - Parameter path: the value's name in the message, such as `to.user`.
    func problem(with value: JSON, at path: String) -> HermesError? {
        switch self {
        case .string(let length, let form):
            guard case .string(let text) = value else {
                return Self.invalid("\(path) must be a text, but is \(value.kind)")
            }
            return Self.problem(with: text, text.unicodeScalars.count, length, "characters", form, at: path)
        case .text(let bytes, let form):
            guard case .string(let text) = value else {
                return Self.invalid("\(path) must be a text, but is \(value.kind)")
            }
            return Self.problem(with: text, text.utf8.count, bytes, "bytes", form, at: path)
        case .choice(let values):
            guard case .string(let text) = value, values.contains(text) else {
                return Self.invalid("\(path) must be one of \(values.joined(separator: ", "))")
            }
            return nil
        case .integer(let range):
            guard case .number = value, let number = value.integer else {
                return Self.invalid("\(path) must be a whole number, but is \(value.kind)")
            }
            return range.contains(number) ? nil : Self.invalid("\(path) must be \(Self.words(range))")
        case .boolean:
            return value.boolean == nil ? Self.invalid("\(path) must be true or false, but is \(value.kind)") : nil
        case .any:
            return nil
        case .anyObject:
            if case .object = value { return nil }
            return Self.invalid("\(path) must be an object, but is \(value.kind)")
        case .array(let element, let count):
            guard let values = value.array else {
                return Self.invalid("\(path) must be a list, but is \(value.kind)")
            }
            guard count.contains(values.count) else {
                return HermesError(
                    .ofValue(values.count, atMost: count.upperBound),
                    "\(path) must have \(count.lowerBound) to \(count.upperBound) elements, but has \(values.count)"
                )
            }
            for (index, value) in values.enumerated() {
                if let problem = element.problem(with: value, at: "\(path)[\(index)]") { return problem }
            }
            return nil
        case .object(let fields):
            return Self.problem(with: value, fields, at: path)
        case .oneMember(let fields):
            if case .object(let members) = value, members.count != 1 {
                return Self.invalid("\(path) must have exactly one of \(fields.map(\.name).joined(separator: ", "))")
            }
            return Self.problem(with: value, fields, at: path)
        case .user:
            guard APIUserSelector(value) == nil else { return nil }
            let isTooLong = value.string.map { $0.utf8.count > APIUserSelector.maxBytes } ?? false
            return HermesError(
                isTooLong ? .tooLarge : .invalidArgument,
                "\(path) must be a uid (a whole number) or a nick name of at most \(APIUserSelector.maxBytes) bytes"
            )
        case .named(_, let schema):
            return schema.problem(with: value, at: path)
        }
    }

    private static func invalid(_ message: String) -> HermesError { HermesError(.invalidArgument, message) }

    private static func problem(with value: JSON, _ fields: [Field], at path: String) -> HermesError? {
        guard case .object(let members) = value else {
            return invalid("\(path) must be an object, but is \(value.kind)")
        }
        let prefix = path == "the body" ? "" : "\(path)."
        for member in members {
            guard let field = fields.first(where: { $0.name == member.name }) else {
                let allowed = fields.map(\.name).joined(separator: ", ")
                return invalid("\(prefix)\(member.name.prefix(64)) is unknown; allowed: \(allowed)")
            }
            if let problem = field.schema.problem(with: member.value, at: prefix + member.name) { return problem }
        }
        if let missing = fields.first(where: { $0.isRequired && value[$0.name] == nil }) {
            return invalid("\(prefix)\(missing.name) is missing")
        }
        return nil
    }

    private static func problem(
        with text: String,
        _ count: Int,
        _ length: ClosedRange<Int>,
        _ unit: String,
        _ form: StringForm?,
        at path: String
    ) -> HermesError? {
        guard count >= length.lowerBound else {
            if length.lowerBound == 1 { return invalid("\(path) must not be empty") }
            return invalid("\(path) must have at least \(length.lowerBound) \(unit)")
        }
        guard count <= length.upperBound else {
            return HermesError(.tooLarge, "\(path) must have at most \(length.upperBound) \(unit), but has \(count)")
        }
        if let form, !form.isMet(text) { return invalid("\(path) must be \(form.meaning)") }
        return nil
    }

    private static func words(_ range: ClosedRange<Int64>) -> String {
        switch (range.lowerBound == .min, range.upperBound == .max) {
        case (false, false): "from \(range.lowerBound) to \(range.upperBound)"
        case (false, true): "at least \(range.lowerBound)"
        case (true, false): "at most \(range.upperBound)"
        case (true, true): "a number of 64 bits"
        }
    }
}
