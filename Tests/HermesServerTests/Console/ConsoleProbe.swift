// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import HermesTestKit
import HermesWire

@testable import HermesCore
@testable import HermesServer

/// A client of the console of a server in this process.
struct ConsoleProbe {
    static let password = "correct horse"

    let port: Int
    var cookie: String?
    var requestToken: String?
    /// Whether each request comes from another address, so that their number is not limited.
    var isSpread = false

    init(_ server: TestServer) { port = server.port("console") }

    /// Logs in as a new administrator with this role.
    init(_ server: TestServer, _ role: AdministratorRole) async throws {
        self.init(server)
        let administrators = try server.assembly().administrators
        _ = try await administrators.create(name: role.rawValue, role: role, password: Self.password)
        let answer = try await logIn(role.rawValue)
        cookie = answer.headers["set-cookie"].map { String($0.prefix { $0 != ";" }) }
        requestToken = try JSONParser.parse(Array(answer.text.utf8), maxValues: .max)["csrf_token"]?.string
    }

    func logIn(
        _ name: String,
        _ password: String = Self.password,
        code: String? = nil
    ) async throws -> HTTPProbe.Answer {
        let code = code.map { ",\"code\":\"\($0)\"" } ?? ""
        return try await send("POST", "/login", "{\"name\":\"\(name)\",\"password\":\"\(password)\"\(code)}")
    }

    func send(
        _ method: String,
        _ path: String,
        _ body: String? = nil,
        headers: [(String, String)] = []
    ) async throws -> HTTPProbe.Answer {
        var fields = headers
        if let cookie { fields.append(("Cookie", cookie)) }
        if let requestToken { fields.append(("X-CSRF-Token", requestToken)) }
        if body != nil { fields.append(("Content-Type", "application/json")) }
        let address = isSpread ? "127.1.\(Int.random(in: 0...255)).\(Int.random(in: 1...254))" : nil
        return try await HTTPProbe.send(
            method,
            Console.prefix + path,
            headers: fields,
            body: body,
            port: port,
            from: address
        )
    }
}
#endif
