// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

/// Sends requests to the API of a test server, and checks every answer against the description of its route.
struct APIClient {
    struct Answer {
        let status: Int
        let headers: [String: String]
        let body: JSON
    }

    let port: Int
    let routes: [APIRoute]
    var key: String
    /// The key's name.
    let keyName: String

    /// - Parameter scopes: what the key may do.
    init(_ server: TestServer, scopes: Set<APIScope> = Set(APIScope.allCases)) async throws {
        let assembly = try server.assembly()
        let api = try #require(assembly.api)
        port = server.port("http")
        routes = api.routes
        keyName = "test\(UInt32.random(in: 0 ... .max))"
        key = try await api.core.keys.create(name: keyName, scopes: scopes).secret
    }

    @discardableResult
    func send(
        _ method: String,
        _ path: String,
        _ body: String? = nil,
        headers: [(String, String)] = [],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Answer {
        var fields = headers
        if !key.isEmpty { fields.append(("Authorization", "Bearer \(key)")) }
        if body != nil, !headers.contains(where: { $0.0 == "Content-Type" }) {
            fields.append(("Content-Type", "application/json"))
        }
        let answer = try await HTTPProbe.send(method, path, headers: fields, body: body, port: port)
        let json = answer.text.isEmpty ? JSON.null : try JSONParser.parse(Array(answer.text.utf8), maxValues: .max)
        if let route = route(method, path) {
            check(answer, json, route, sourceLocation)
        }
        return Answer(status: answer.status, headers: answer.headers, body: json)
    }

    private func route(_ method: String, _ path: String) -> APIRoute? {
        let parts = path.split(separator: "?")[0].dropFirst("/v1".count).split(separator: "/")
        return routes.first { route in
            let template = route.path.split(separator: "/")
            return route.method.rawValue == method && template.count == parts.count
                && zip(template, parts).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
        }
    }

    /// Checks that the document lists the status, and that the body has the form that the document describes.
    private func check(
        _ answer: HTTPProbe.Answer,
        _ json: JSON,
        _ route: APIRoute,
        _ sourceLocation: SourceLocation
    ) {
        if answer.status == route.success.code {
            let problem = route.answer.flatMap { $0.problem(with: json, at: "the answer") }
            #expect(problem == nil, "\(route.id)", sourceLocation: sourceLocation)
            #expect(route.answer != nil || answer.text.isEmpty, sourceLocation: sourceLocation)
        } else {
            #expect(
                route.allFailures.map(\.code).contains(answer.status),
                "\(route.id): \(answer.status) is not in the document: \(answer.text)",
                sourceLocation: sourceLocation
            )
            #expect(APIProblem.schema.problem(with: json, at: "the problem") == nil, sourceLocation: sourceLocation)
            #expect(answer.headers["content-type"] == "application/problem+json", sourceLocation: sourceLocation)
            #expect(json["status"]?.integer == Int64(answer.status), sourceLocation: sourceLocation)
        }
    }
}
