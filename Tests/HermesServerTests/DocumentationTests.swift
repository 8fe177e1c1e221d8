// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesServer
import HermesTestKit
import Testing

@Suite struct DocumentationTests {
    private static let docs = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "docs")

    private func document(_ name: String) throws -> String {
        try String(contentsOf: Self.docs.appending(path: name), encoding: .utf8)
    }

    @Test func `the annotated file is current`() throws {
        #expect(try document("hermes.yaml") == ConfigurationText.annotatedFile(), "run make docs")
    }

    @Test func `the reference is current`() throws {
        #expect(try document("configuration.md") == ConfigurationText.reference(), "run make docs")
    }

    @Test func `the annotated file says what the defaults say`() throws {
        let path = Self.docs.appending(path: "hermes.yaml").path
        var settings = try HermesServer.load(environment: [:], file: path)
        let defaults = try ServerSettings.defaults()
        // This property records the source of each value, which is the file here.
        settings.inForce = []
        #expect(settings.gateways == defaults.gateways)
        // The dictionaries in these settings have no order.
        settings.gateways = defaults.gateways
        #expect("\(settings)" == "\(defaults)")
    }

    @Test(arguments: InboxRule.allCases)
    func `who may write into others' inboxes is documented`(_ rule: InboxRule) throws {
        #expect(try document("access.md").contains("\n| \(rule.rawValue) | "), "docs/access.md has no row of it")
    }

    @Test func `whatever an account can cause in another's inbox has a scenario`() {
        #expect(
            InboxRuleConformance.rowsWithoutScenario == [.push, .expired, .typing, .presence, .signal, .command]
        )
    }

    @Test(arguments: ServerFailure.ExitCode.allCases)
    func `every exit code is documented`(_ code: ServerFailure.ExitCode) throws {
        #expect(try document("operations.md").contains("| \(code.rawValue) |"))
    }

    @Test(arguments: APIScope.allCases)
    func `every scope is documented`(_ scope: APIScope) throws {
        #expect(try document("http-api.md").contains("`\(scope.rawValue)`"))
        let command = Self.docs.deletingLastPathComponent()
            .appending(path: "Sources/HermesCLI/APIKey/APIKeyCommand.swift")
        #expect(try String(contentsOf: command, encoding: .utf8).contains(scope.rawValue), "the help lacks it")
    }

    @Test func `every error code is documented`() throws {
        let source = Self.docs.deletingLastPathComponent().appending(path: "Sources/HermesCore/HermesError.swift")
        let text = try String(contentsOf: source, encoding: .utf8)
        let errors = try document("errors.md")
        let codes = text.matches(of: /static let (\w+) = Self\(rawValue: (\d+)\)/)
        #expect(codes.count > 10)
        for code in codes {
            #expect(errors.contains("| \(code.2) | `\(code.1)` |"), "docs/errors.md lacks \(code.2) \(code.1)")
        }
    }
}
