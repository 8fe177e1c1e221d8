// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import HTTPTypes
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ConsoleTests {
    /// The table of all routes. It is the server's own table, so the tests cannot miss a new route.
    private func routes(_ server: TestServer) throws -> [ConsoleRoute] {
        let assembly = try server.assembly()
        return assembly.consoleCore(try #require(assembly.console)).routes
    }

    /// A path in which each parameter has a possible value.
    private func path(_ route: ConsoleRoute) -> String {
        var path = route.route.path
        for parameter in route.route.pathParameters { path = path.replacing("{\(parameter.name)}", with: "nobody") }
        let query = route.route.query.filter(\.isRequired).map { "\($0.name)=a" }
        return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
    }

    @Test func `every change is refused without a session, to lower roles, and without the request token`() async throws
    {
        try await withServer(store: .sqlite) { server in
            let routes = try routes(server)
            #expect(routes.count > 20 && Set(routes.map(\.route.id)).count == routes.count)
            #expect(routes.filter { $0.access == .everybody }.map(\.route.id) == ["logIn", "getSession"])
            var stranger = ConsoleProbe(server)
            stranger.isSpread = true
            for role in AdministratorRole.allCases {
                var somebody = try await ConsoleProbe(server, role)
                somebody.isSpread = true
                for route in routes {
                    guard case .role(let needed) = route.access, route.route.id != "logOut" else { continue }
                    let method = route.route.method.rawValue
                    let body = route.route.body == nil ? nil : "{}"
                    let name = "\(role.rawValue): \(method) \(route.route.path)"
                    #expect(try await stranger.send(method, path(route), body).status == 401, "\(name)")
                    if role < needed {
                        #expect(try await somebody.send(method, path(route), body).status == 403, "\(name)")
                        continue
                    }
                    // A stream has no end.
                    if route.route.isStream { continue }
                    guard route.isChange else {
                        let status = try await somebody.send(method, path(route), body).status
                        #expect([200, 204, 404].contains(status), "\(name): \(status)")
                        continue
                    }
                    #expect(role > .viewer, "a viewer can change something: \(name)")
                    for token in [nil, "", "x", somebody.cookie] {
                        var forger = somebody
                        forger.requestToken = token
                        #expect(try await forger.send(method, path(route), body).status == 403, "\(name)")
                    }
                    for header in [
                        ("Sec-Fetch-Site", "cross-site"), ("Origin", "https://evil.example"), ("Origin", "null"),
                    ] {
                        let answer = try await somebody.send(method, path(route), body, headers: [header])
                        #expect(answer.status == 403, "\(name)")
                    }
                }
            }
        }
    }

    @Test func `no path has a second way in`() async throws {
        try await withServer(store: .sqlite) { server in
            let administrator = try await ConsoleProbe(server, .administrator)
            for path in [
                "/users/../../v1/users", "/%2e%2e/login", "/nothing", "/", "/users/ann/messages", "/users/ann/tokens/x",
            ] {
                for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
                    let status = try await administrator.send(method, path, method == "GET" ? nil : "{}").status
                    #expect(status == 404 || status == 405, "\(method) \(path): \(status)")
                }
            }
            // Neither port serves the other port's paths.
            for path in ["/v1/users", "/metrics", "/chat/", "/hermes.js", "/console/../etc/passwd"] {
                #expect(try await HTTPProbe.get(path, port: server.port("console")).status == 404, "\(path)")
            }
            for path in ["/console/", "/console/api/session", "/console/api/login"] {
                #expect(try await HTTPProbe.get(path, port: server.port("http")).status == 404, "\(path)")
            }
        }
    }

    @Test func `the cookie is for this page alone, new with each login, and useless after the logout`() async throws {
        try await withServer(store: .sqlite) { server in
            var ann = try await ConsoleProbe(server, .viewer)
            let first = try #require(ann.cookie)
            // A cookie that somebody else has chosen is not accepted.
            var fixed = ConsoleProbe(server)
            fixed.cookie = "hermes-console=" + String(repeating: "A", count: 43)
            let answer = try await fixed.logIn("viewer")
            let set = try #require(answer.headers["set-cookie"])
            #expect(set.hasSuffix("; Path=/console; HttpOnly; SameSite=Strict"))
            let value = String(set.prefix { $0 != ";" })
            #expect(value != fixed.cookie && value != first && value.utf8.count == "hermes-console=".utf8.count + 43)
            #expect(try await fixed.send("GET", "/overview").status == 401)
            // A missing session is not an error, because browsers write failed requests into their logs.
            for nobody in [ConsoleProbe(server), fixed] {
                let answer = try await nobody.send("GET", "/session")
                #expect(answer.status == 200 && answer.text == #"{"session":null}"#)
            }
            // A login in the same browser ends the previous session.
            let again = try await ann.logIn("viewer")
            #expect(try await ann.send("GET", "/overview").status == 401)
            ann.cookie = again.headers["set-cookie"].map { String($0.prefix { $0 != ";" }) }
            ann.requestToken = try JSONParser.parse(Array(again.text.utf8), maxValues: .max)["csrf_token"]?.string
            #expect(try await ann.send("GET", "/overview").status == 200)
            #expect(try await ann.send("GET", "/session").text == "{\"session\":\(again.text)}")
            // One of the two cookies belongs to somebody else.
            var twice = ann
            twice.cookie = "\(first); \(ann.cookie ?? "")"
            #expect(try await twice.send("GET", "/overview").status == 401)
            let farewell = try await ann.send("POST", "/logout")
            #expect(farewell.status == 204 && farewell.headers["set-cookie"]?.contains("Max-Age=0") == true)
            #expect(try await ann.send("GET", "/overview").status == 401)
        }
        let secure = ConsoleCookie(isEncrypted: true)
        let token = AccessToken()
        #expect(secure.setting(token) == "__Host-hermes=\(token.text); Path=/; HttpOnly; SameSite=Strict; Secure")
        #expect(secure.token(in: ["a=b; __Host-hermes=\(token.text)"]) == token.hash)
        #expect(secure.token(in: ["hermes-console=\(token.text)"]) == nil)
    }

    @Test func `every answer forbids frames, scripts from elsewhere, and keeping it`() async throws {
        try await withServer(store: .sqlite) { server in
            let viewer = try await ConsoleProbe(server, .viewer)
            for path in ["/session", "/users", "/nothing", "/audit"] {
                let headers = try await viewer.send("GET", path).headers
                #expect(headers["content-security-policy"]?.contains("frame-ancestors 'none'") == true, "\(path)")
                #expect(headers["x-frame-options"] == "DENY" && headers["cache-control"] == "no-store", "\(path)")
                #expect(headers["x-content-type-options"] == "nosniff", "\(path)")
                #expect(headers["access-control-allow-origin"] == nil, "\(path)")
            }
        }
    }

    @Test func `the page is served on the console's port alone, under a strict policy`() async throws {
        try await withServer(store: .sqlite) { server in
            let port = server.port("console")
            let files = WebFile.all.filter { $0.pages == .console }.map(\.path)
            #expect(files.sorted() == ["console.css", "console.js", "icon.svg", "index.html"].map { "/console/\($0)" })
            for path in files + ["/console/"] {
                let answer = try await HTTPProbe.send("GET", path, port: port)
                let policy = answer.headers["content-security-policy"] ?? ""
                #expect(answer.status == 200 && policy.hasPrefix("default-src 'none'; script-src 'self';"), "\(path)")
                #expect(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "\(path)")
                #expect(answer.headers["x-frame-options"] == "DENY" && answer.headers["etag"] != nil, "\(path)")
                #expect(try await HTTPProbe.get(path, port: server.port("http")).status == 404, "\(path)")
            }
            let page = try await HTTPProbe.get("/console/", port: port).text
            #expect(page.firstMatch(of: /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=/.ignoresCase()) == nil)
            for (method, path) in [("GET", "/"), ("HEAD", "/"), ("GET", "/console"), ("HEAD", "/console")] {
                let answer = try await HTTPProbe.send(method, path, port: port)
                #expect(answer.status == 308 && answer.headers["location"] == "/console/", "\(method) \(path)")
            }
            for path in [
                "/console/../console.js", "/console/..%2f..%2fetc/passwd", "/console/%2e%2e/x", "/console/x.js",
            ] {
                #expect(try await HTTPProbe.get(path, port: port).status == 404, "\(path)")
            }
            // Only visitors from this machine see the link to the console.
            let home = server.port("http")
            #expect(try await HTTPProbe.get("/", port: home).text.contains("http://127.0.0.1:\(port)/console/"))
            let forwarded = [("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1")]
            for field in forwarded {
                let answer = try await HTTPProbe.send("GET", "/", headers: [field], port: home)
                #expect(answer.status == 200 && !answer.text.contains(":\(port)"), "\(field)")
            }
            for host in ["chat.example.org", "localhost.evil.example:\(home)"] {
                let answer = try await HTTPProbe.send("GET", "/", port: home, host: host)
                #expect(answer.status == 200 && !answer.text.contains(":\(port)"), "\(host)")
            }
        }
    }

    @Test func `a flood of logins is delayed`() async throws {
        try await withServer(store: .sqlite) { server in
            let stranger = ConsoleProbe(server)
            var statuses: [Int] = []
            for _ in 0..<30 { statuses.append(try await stranger.logIn("ann", "wrong password").status) }
            #expect(statuses.prefix(20).allSatisfy { $0 == 403 })
            #expect(statuses.suffix(10).allSatisfy { $0 == 429 })
        }
    }

    @Test func `the audit log has who did what to whom, and what was refused`() async throws {
        try await withServer(store: .sqlite) { server in
            let administrator = try await ConsoleProbe(server, .administrator)
            let viewer = try await ConsoleProbe(server, .viewer)
            let made = try await administrator.send("POST", "/users", #"{"nick_name":"<b>ann","password":"secret-6+"}"#)
            #expect(made.status == 201)
            #expect(try await viewer.send("DELETE", "/users/ann").status == 403)
            #expect(try await administrator.send("DELETE", "/users/%3Cb%3Eann").status == 204)
            let log = try await server.assembly().administrators.auditLog(before: nil, limit: 3).map(\.event)
            #expect(log.map(\.who) == ["administrator", "viewer", "administrator"])
            #expect(log.map(\.action) == ["deleteUser", "deleteUser", "createUser"])
            #expect(log.map(\.isRefused) == [false, true, false])
            #expect(log[0].target == "<b>ann" && log[2].target == "<b>ann" && log[0].address == "127.0.0.1")
            #expect(!log.contains { "\($0)".contains("secret-6+") })
            let shown = try await administrator.send("GET", "/audit?limit=2").text
            #expect(try await viewer.send("POST", "/logout").status == 204)
            let last = try await server.assembly().administrators.auditLog(before: nil, limit: 2).map(\.event)
            #expect(last.map(\.action) == ["logOut", "deleteUser"], "a log-out is recorded once")
            #expect(last[0].who == "viewer" && last[0].result == "done" && !last[0].isRefused)
            #expect(shown.contains(#""action":"deleteUser""#) && !shown.contains("createUser"))
        }
    }

    @Test func `nobody floods the audit log with what is refused`() async throws {
        try await withServer(store: .sqlite, time: StandingTime()) { server in
            let viewer = try await ConsoleProbe(server, .viewer)
            let administrators = try server.assembly().administrators
            func count() async throws -> Int { try await administrators.auditLog(before: nil, limit: 1_000).count }
            let before = try await count()
            for _ in 0..<60 { #expect(try await viewer.send("DELETE", "/users/ann").status == 403) }
            #expect(try await count() - before == 30)
            // Requests that are refused because there are too many do not fill the log either.
            let administrator = try await ConsoleProbe(server, .operator)
            let then = try await count()
            var statuses: [Int] = []
            for number in 0..<60 {
                statuses.append(try await administrator.send("DELETE", "/rooms/room\(number)/members").status)
            }
            #expect(statuses.suffix(20).allSatisfy { $0 == 429 })
            #expect(try await count() - then == 30)
        }
    }

    @Test(arguments: ["/groups?text=a", "/search/users?text=a", "/sessions?text=a", "/rooms?text=a", "/search?text=a"])
    func `a search costs as much as a change`(_ path: String) async throws {
        try await withServer(store: .sqlite, time: StandingTime()) { server in
            let somebody = try await ConsoleProbe(server, .operator)
            var statuses: [Int] = []
            for _ in 0..<40 { statuses.append(try await somebody.send("GET", path).status) }
            #expect(statuses.prefix(30).allSatisfy { $0 == 200 })
            #expect(statuses.suffix(10).allSatisfy { $0 == 429 })
            #expect(try await somebody.send("GET", "/rooms").status == 200)
        }
    }

    @Test func `the page has a Chinese word for each action of the audit log`() async throws {
        let page = try #require(WebFile.unpacked["/console/console.js"])
        let text = String(buffer: page)
        try await withServer(store: .sqlite) { server in
            let recorded = try routes(server).filter { $0.isChange || $0.route.isStream }.map(\.route.id)
            for action in recorded { #expect(text.contains("\"\(action)\":"), "\(action)") }
        }
    }

    @Test func `the console needs TLS where others can reach it`() throws {
        #expect(throws: (any Error).self) {
            try HermesServer.load(arguments: ["--listeners.console.host", "0.0.0.0"], environment: [:])
        }
        let off = ["--listeners.console.host", "0.0.0.0", "--listeners.console.enabled", "false"]
        #expect(try !HermesServer.load(arguments: off, environment: [:]).console.listener.isEnabled)
    }

    @Test func `the configuration is shown with its sources`() async throws {
        let settings = try HermesServer.load(
            arguments: ["--log.level", "debug"],
            environment: ["HERMES_WEBHOOKS_URL": "https://example.org/hook"]
        )
        let configure: (inout ServerSettings) -> Void = { $0.inForce = settings.inForce }
        try await withServer(store: .sqlite, configure: configure) { server in
            let text = try await ConsoleProbe(server, .operator).send("GET", "/configuration").text
            #expect(text.contains(#"{"key":"log.level","value":"debug","source":"command line"}"#))
            #expect(text.contains("HERMES_WEBHOOKS_URL") && text.contains(#""source":"default""#))
        }
    }

    @Test func `a page that lets its name lead here gets nothing, and no log-in is counted for it`() async throws {
        try await withServer(store: .sqlite) { server in
            let port = server.port("console")
            let foreign = [
                "evil.example:\(port)", "evil.example", "", "localhost.evil.example", "127.0.0.1.evil.example",
            ]
            for host in foreign {
                for path in ["/", "/console/", "\(Console.prefix)/session"] {
                    let status = try await HTTPProbe.send("GET", path, port: port, host: host).status
                    #expect(status >= 400, "\(host) \(path)")
                }
            }
            for host in ["localhost:\(port)", "127.0.0.1:\(port)", "[::1]:\(port)", "LOCALHOST"] {
                let status = try await HTTPProbe.send("GET", "/console/", port: port, host: host).status
                #expect(status == 200, "\(host)")
            }
        }
    }

    @Test(arguments: [
        "[" + String(repeating: "[],", count: 5_000) + "[]]",
        "{\"a\":" + String(repeating: " ", count: 40_000) + "1}",
    ])
    func `a body of very many values is refused before they are built, on the console and the API`(
        _ body: String
    ) async throws {
        try await withServer(store: .sqlite) { server in
            let answer = try await ConsoleProbe(server).send("POST", "/login", body)
            #expect(answer.status == 400 || answer.status == 413)
            #expect(answer.text.contains("too many values") || answer.text.contains("larger than"))
        }
    }
}
#endif
