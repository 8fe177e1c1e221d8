// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HTTPTypes
import HermesCore
import HermesGateways

/// The page at `/api`: the routes of the HTTP API, for people.
enum APIPage {
    /// - Parameters:
    ///   - hasHome: whether there is a page at `/` to go back to.
    ///   - program: the program in the commands of the page; nil if the visitor may be on another machine.
    static func text(_ routes: [APIRoute], hasHome: Bool, program: LocalProgram?) -> String {
        HTML.page(title: "HTTP API of Hermes") { html in
            html.element("h1", "HTTP API")
            html.element("p") { html in
                html.element("span", "Calls carry a key as “Authorization: Bearer hk_…”. Create one with")
                let command = program?.command ?? "hermes"
                html.element("code", "\(command) apikey create NAME\(program?.dataOption ?? "")")
            }
            html.element("p") { html in
                html.element("a", "The OpenAPI document", with: "href=\"/v1/openapi.json\"")
                html.element("span", "has the same content for client generators.")
                if hasHome { html.element("a", "Back to the server", with: "href=\"/\"") }
            }
            for route in routes { show(route, &html) }
        }
    }

    private static func show(_ route: APIRoute, _ html: inout HTML) {
        html.element("details") { html in
            html.element("summary") { html in
                html.element("span", route.method.rawValue, with: "class=\"method\"")
                html.element("code", "/v1" + route.path)
                html.element("span", route.summary, with: "class=\"muted\"")
            }
            html.element("p", route.scope.map { "The key needs the scope \($0.rawValue)." } ?? "No key is needed.")
            if route.isIdempotent {
                html.element("p", "A repetition with the same Idempotency-Key gets the first answer and does nothing.")
            }
            let parameters =
                route.pathParameters.map { ($0.name, "path", $0) } + route.query.map { ($0.name, "query", $0) }
            if !parameters.isEmpty {
                html.element("h2", "Parameters")
                let rows = parameters.map { name, place, parameter in
                    (name, "\(words(parameter.schema)), in the \(place)", parameter.isRequired, parameter.summary)
                }
                table(rows, &html)
            }
            if let body = route.body {
                html.element("h2", "Body")
                fields(body, &html)
            }
            html.element("h2", "Answer \(route.success.code)")
            if let answer = route.answer { fields(answer, &html) } else { html.element("p", "Without a body.") }
            let failures = route.allFailures.map { String($0.code) }.joined(separator: ", ")
            html.element(
                "p",
                "Failures: \(failures); the body says why (application/problem+json).",
                with: "class=\"muted\""
            )
        }
    }

    private static func fields(_ schema: APISchema, _ html: inout HTML) {
        switch schema {
        case .named(_, let inner): fields(inner, &html)
        case .object(let fields), .oneMember(let fields):
            if case .oneMember = schema { html.element("p", "Exactly one of:") }
            table(fields.map { ($0.name, words($0.schema), $0.isRequired, $0.summary) }, &html)
        default: html.element("p", words(schema))
        }
    }

    private static func table(
        _ rows: [(name: String, type: String, isRequired: Bool, summary: String)],
        _ html: inout HTML
    ) {
        html.element("table") { html in
            for row in rows {
                html.element("tr") { html in
                    html.element("td") { $0.element("code", row.name) }
                    html.element("td", row.type + (row.isRequired ? ", required" : ""))
                    html.element("td", row.summary)
                }
            }
        }
    }

    /// Describes a schema in a few words.
    private static func words(_ schema: APISchema) -> String {
        switch schema {
        case .string(let length, let form):
            (length.upperBound < .max ? "text of \(length.lowerBound) to \(length.upperBound) characters" : "text")
                + (form.map { ", \($0.meaning)" } ?? "")
        case .text(let bytes, let form):
            (bytes.upperBound < .max ? "text of \(bytes.lowerBound) to \(bytes.upperBound) bytes" : "text")
                + (form.map { ", \($0.meaning)" } ?? "")
        case .choice(let values): values.joined(separator: " or ")
        case .integer(let range):
            switch (range.lowerBound > .min, range.upperBound < .max) {
            case (true, true): "whole number, \(range.lowerBound) to \(range.upperBound)"
            case (true, false): "whole number from \(range.lowerBound)"
            case (false, true): "whole number up to \(range.upperBound)"
            case (false, false): "whole number"
            }
        case .boolean: "true or false"
        case .any: "any JSON"
        case .anyObject: "any object"
        case .array(let element, let count):
            count.upperBound < .max
                ? "\(count.lowerBound) to \(count.upperBound) times: \(words(element))" : "list of: \(words(element))"
        case .object(let fields): "object of " + fields.map(\.name).joined(separator: ", ")
        case .oneMember(let fields): "object of one of " + fields.map(\.name).joined(separator: ", ")
        case .user: "uid or nick name"
        case .named(_, let inner): words(inner)
        }
    }
}
#endif
