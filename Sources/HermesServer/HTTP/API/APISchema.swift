// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// The schema of a JSON value: the OpenAPI document is written from it, and requests are checked against it.
indirect enum APISchema: Sendable {
    /// A text. Its length is in characters (Unicode scalars).
    case string(length: ClosedRange<Int>, StringForm? = nil)
    /// A text. Its length is in bytes of UTF-8, as in the core's limits.
    case text(bytes: ClosedRange<Int>, StringForm? = nil)
    case choice([String])
    case integer(ClosedRange<Int64>)
    case boolean
    /// Any JSON value.
    case any
    /// Any JSON object.
    case anyObject
    case array(APISchema, count: ClosedRange<Int>)
    case object([Field])
    /// An object with exactly one of these members.
    case oneMember([Field])
    /// An account: a uid or a nick name.
    case user
    /// One of the document's named schemas.
    case named(String, APISchema)

    /// A member of an object.
    struct Field: Sendable {
        let name: String
        let schema: APISchema
        let isRequired: Bool
        let summary: String

        init(_ name: String, _ schema: APISchema, required: Bool = false, _ summary: String) {
            self.name = name
            self.schema = schema
            isRequired = required
            self.summary = summary
        }
    }

    /// A rule for texts in addition to their length, for the document and the check.
    struct StringForm: Sendable {
        /// An anchored regular expression of ECMA-262.
        let pattern: String
        /// The rule in words that continue "must be …".
        let meaning: String
        let isMet: @Sendable (String) -> Bool
    }

    /// The schema's form in the OpenAPI document (JSON Schema 2020-12).
    var document: JSON {
        switch self {
        case .string(let length, let form):
            .members([
                "type": "string", "minLength": length.lowerBound > 0 ? .integer(length.lowerBound) : nil,
                "maxLength": length.upperBound < .max ? .integer(length.upperBound) : nil,
                "pattern": form.map { .string($0.pattern) },
            ])
        // JSON Schema counts characters, which have one to four bytes each; `summary(_:)` states the limit in bytes.
        case .text(let bytes, let form):
            APISchema.string(length: (bytes.lowerBound + 3) / 4...bytes.upperBound, form).document
        case .choice(let values):
            ["type": "string", "enum": .array(values.map(JSON.string))]
        case .integer(let range):
            .members([
                "type": "integer", "format": "int64",
                "minimum": range.lowerBound > .min ? .integer(range.lowerBound) : nil,
                "maximum": range.upperBound < .max ? .integer(range.upperBound) : nil,
            ])
        case .boolean: ["type": "boolean"]
        case .any: [:]
        case .anyObject: ["type": "object"]
        case .array(let element, let count):
            .members([
                "type": "array", "items": element.document,
                "minItems": count.lowerBound > 0 ? .integer(count.lowerBound) : nil,
                "maxItems": count.upperBound < .max ? .integer(count.upperBound) : nil,
            ])
        case .object(let fields):
            Self.object(fields, isOneMember: false)
        case .oneMember(let fields):
            Self.object(fields, isOneMember: true)
        case .user:
            [
                "oneOf": [
                    // An impossible uid gets the same answer as an unused uid: not found.
                    ["type": "integer", "format": "int64"],
                    ["type": "string", "minLength": 1, "maxLength": .integer(APIUserSelector.maxBytes)],
                ]
            ]
        case .named(let name, _): ["$ref": .string("#/components/schemas/\(name)")]
        }
    }

    /// Returns the summary of a field or a parameter, with the limit that ``document`` cannot express.
    func summary(_ text: String) -> String {
        guard case .text(let bytes, _) = self, bytes.upperBound < .max else { return text }
        guard bytes.lowerBound > 1 else { return "\(text) At most \(bytes.upperBound) bytes of UTF-8." }
        return "\(text) \(bytes.lowerBound) to \(bytes.upperBound) bytes of UTF-8."
    }

    private static func object(_ fields: [Field], isOneMember: Bool) -> JSON {
        let properties = fields.map { field in
            var members: [JSON.Member] = []
            if case .object(let schema) = field.schema.document { members = schema }
            members.append(JSON.Member(name: "description", value: .string(field.schema.summary(field.summary))))
            return JSON.Member(name: field.name, value: .object(members))
        }
        let required = fields.filter(\.isRequired).map { JSON.string($0.name) }
        return .members([
            "type": "object", "properties": .object(properties), "required": required.isEmpty ? nil : .array(required),
            "minProperties": isOneMember ? 1 : nil, "maxProperties": isOneMember ? 1 : nil,
            "additionalProperties": false,
        ])
    }

    /// The named schemas that this schema contains, including itself.
    var names: [(name: String, schema: APISchema)] {
        switch self {
        case .string, .text, .choice, .integer, .boolean, .any, .anyObject, .user: []
        case .array(let element, _): element.names
        case .object(let fields), .oneMember(let fields): fields.flatMap(\.schema.names)
        case .named(let name, let schema): [(name, schema)] + schema.names
        }
    }
}
