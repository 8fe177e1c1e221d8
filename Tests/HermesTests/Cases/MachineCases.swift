// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Testing

/// The case files in `web/cases`. The state machines of the Swift SDK and of the JavaScript SDK are tested with the
/// same files.
enum MachineCases {
    /// Reads the cases of a file.
    ///
    /// - Throws: the decoder's errors; `UnknownKey` if a case or a step has a key that this reader does not know.
    static func read<Case: MachineCase>(_ name: String, as type: Case.Type = Case.self) throws -> [Case] {
        let data = try data(name)
        let raw = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
        for entry in try #require(raw["cases"] as? [[String: Any]]) {
            try check(entry, Case.CodingKeys.self)
            for step in try #require(entry["steps"] as? [[String: Any]]) { try check(step, Case.Step.CodingKeys.self) }
        }
        return try JSONDecoder().decode(CaseFile<Case>.self, from: data).cases
    }

    /// Reads the fields of a file other than its cases.
    static func header<Header: Decodable>(_ name: String) throws -> Header {
        try JSONDecoder().decode(Header.self, from: data(name))
    }

    private static func data(_ name: String, testFile: String = #filePath) throws -> Data {
        let root = (1...4).reduce(URL(filePath: testFile)) { url, _ in url.deletingLastPathComponent() }
        return try Data(contentsOf: root.appending(components: "web", "cases", "\(name).json"))
    }

    private static func check<Key: CodingKey & CaseIterable>(_ entry: [String: Any], _ type: Key.Type) throws {
        let known = Set(Key.allCases.map(\.stringValue))
        if let key = entry.keys.first(where: { !known.contains($0) }) { throw UnknownKey(key: key) }
    }

    struct UnknownKey: Error {
        let key: String
    }
}

private struct CaseFile<Case: MachineCase>: Decodable {
    let cases: [Case]
}

/// A case of one of the files.
protocol MachineCase: Decodable, Sendable, CustomTestStringConvertible {
    associatedtype CodingKeys: CodingKey, CaseIterable
    associatedtype Step: CaseStep

    var name: String { get }
    var steps: [Step] { get }
}

extension MachineCase {
    var testDescription: String { name }
}

/// A case that has only a name and steps.
struct StepsCase<Step: CaseStep>: MachineCase {
    enum CodingKeys: String, CodingKey, CaseIterable { case name, steps }

    let name: String
    let steps: [Step]
}

/// A step of a case: an event, and the expectations after it.
protocol CaseStep: Decodable, Sendable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

/// An expected value, which may be null. If the key is absent, there is no expectation.
struct Expected<Value: Decodable & Equatable & Sendable>: Decodable, Equatable, Sendable {
    let value: Value?

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        value = container.decodeNil() ? nil : try container.decode(Value.self)
    }
}

extension KeyedDecodingContainer {
    /// Decodes an expectation. An absent key gives nil, but null gives an expectation.
    func decodeIfPresent<Value>(_ type: Expected<Value>.Type, forKey key: Key) throws -> Expected<Value>? {
        contains(key) ? try decode(type, forKey: key) : nil
    }
}

/// The times of the cases are in milliseconds.
extension NIODeadline {
    private static let caseStart = NIODeadline.uptimeNanoseconds(1_000_000_000_000_000)

    init(caseTime milliseconds: Double) { self = .caseStart + TimeAmount(.milliseconds(milliseconds)) }

    var caseTime: Double { Double((self - .caseStart).nanoseconds) / 1_000_000 }
}
