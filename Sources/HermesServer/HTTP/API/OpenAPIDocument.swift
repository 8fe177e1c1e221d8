// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesWire

/// The OpenAPI 3.1 document of the API, written from its routes.
enum OpenAPIDocument {
    static func document(of routes: [APIRoute]) -> JSON {
        var paths: [JSON.Member] = []
        for route in routes {
            let path = "/v1" + route.path
            let operation = JSON.Member(name: route.method.rawValue.lowercased(), value: self.operation(route))
            if let index = paths.firstIndex(where: { $0.name == path }), case .object(let known) = paths[index].value {
                paths[index] = JSON.Member(name: path, value: .object(known + [operation]))
            } else {
                paths.append(JSON.Member(name: path, value: .object([operation])))
            }
        }
        return [
            "openapi": "3.1.0",
            "info": [
                "title": "Hermes",
                "version": .string(HermesVersion.current),
                "description":
                    "Pushes, accounts, messages, rooms, topics and events for back ends. Keys: hermes apikey create.",
            ],
            "paths": .object(paths),
            "components": [
                "securitySchemes": ["key": ["type": "http", "scheme": "bearer"]],
                "schemas": .object(schemas(routes)),
            ],
        ]
    }

    private static func schemas(_ routes: [APIRoute]) -> [JSON.Member] {
        var found: [JSON.Member] = []
        let all = routes.flatMap { ($0.body?.names ?? []) + ($0.answer?.names ?? []) } + APIProblem.schema.names
        for (name, schema) in all where !found.contains(where: { $0.name == name }) {
            found.append(JSON.Member(name: name, value: schema.document))
        }
        return found.sorted { $0.name < $1.name }
    }

    private static func operation(_ route: APIRoute) -> JSON {
        var parameters =
            route.pathParameters.map { parameter($0, in: "path") } + route.query.map { parameter($0, in: "query") }
        if route.isIdempotent {
            let key = APIRoute.Parameter(
                "Idempotency-Key",
                .string(
                    length: 1...APICore.maxIdempotencyKeyBytes,
                    APISchema.StringForm(pattern: "^[!-~]+$", meaning: "printable ASCII", isMet: { _ in true })
                ),
                "A repetition with the same key gets the first answer and does nothing, for 24 hours."
            )
            parameters.append(parameter(key, in: "header"))
        }
        var responses = [JSON.Member(name: String(route.success.code), value: success(route))]
        for status in route.allFailures {
            responses.append(JSON.Member(name: String(status.code), value: failure(status)))
        }
        return .members([
            "operationId": .string(route.id),
            "summary": .string(route.summary),
            "description": route.scope.map { .string("Scope: `\($0.rawValue)`.") },
            "security": route.scope == nil ? [] : [["key": []]],
            "parameters": parameters.isEmpty ? nil : .array(parameters),
            "requestBody": route.body.map { body in
                ["required": true, "content": ["application/json": ["schema": body.document]]]
            },
            "responses": .object(responses),
        ])
    }

    private static func parameter(_ parameter: APIRoute.Parameter, in place: String) -> JSON {
        [
            "name": .string(parameter.name), "in": .string(place), "required": .boolean(parameter.isRequired),
            "description": .string(parameter.schema.summary(parameter.summary)), "schema": parameter.schema.document,
        ]
    }

    private static func success(_ route: APIRoute) -> JSON {
        .members([
            "description": .string(route.success.reasonPhrase),
            "headers": route.scope == nil
                ? nil
                : [
                    "RateLimit-Limit": number("The most requests at once."),
                    "RateLimit-Remaining": number("The number of requests allowed now."),
                    "RateLimit-Reset": number("Seconds until all of them are back."),
                ],
            "content": route.answer.map { answer in
                .members([(route.isStream ? HTTPContext.eventStream : "application/json"): ["schema": answer.document]])
            },
        ])
    }

    private static func failure(_ status: HTTPResponse.Status) -> JSON {
        let isForNow = status == .tooManyRequests
        return .members([
            "description": .string(status.reasonPhrase),
            "headers": isForNow ? ["Retry-After": number("Seconds to wait.")] : nil,
            "content": status == APIRoute.headTooLarge
                ? ["text/plain": ["schema": ["type": "string"]]]
                : ["application/problem+json": ["schema": APIProblem.schema.document]],
        ])
    }

    private static func number(_ summary: String) -> JSON {
        ["description": .string(summary), "schema": ["type": "integer", "minimum": 0]]
    }
}
