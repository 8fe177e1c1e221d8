// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import Testing

/// The files of `web/cases`: the machines of both SDKs, this one and the one in JavaScript, are tested against them.
enum MachineCases {
    /// Reads the cases of a file.
    ///
    /// - Throws: what the decoder throws; `UnknownKey` if a case or a step has a key that this reader does not know.
    static func read<Case: MachineCase>(_ name: String, as type: Case.Type = Case.self) throws -> [Case] {
        let data = try data(name)
        let raw = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
        for entry in try #require(raw["cases"] as? [[String: Any]]) {
            try check(entry, Case.CodingKeys.self)
            for step in try #require(entry["steps"] as? [[String: Any]]) { try check(step, Case.Step.CodingKeys.self) }
        }
        return try JSONDecoder().decode(CaseFile<Case>.self, from: data).cases
    }

    /// Reads what a file says beside its cases.
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

/// A case that says nothing but its steps.
struct StepsCase<Step: CaseStep>: MachineCase {
    enum CodingKeys: String, CodingKey, CaseIterable { case name, steps }

    let name: String
    let steps: [Step]
}

/// A step of a case: an event, and what is expected after it.
protocol CaseStep: Decodable, Sendable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

/// An expectation that may be null; an absent one expects nothing.
struct Expected<Value: Decodable & Equatable & Sendable>: Decodable, Equatable, Sendable {
    let value: Value?

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        value = container.decodeNil() ? nil : try container.decode(Value.self)
    }
}

extension KeyedDecodingContainer {
    /// Keeps null and absence apart.
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
