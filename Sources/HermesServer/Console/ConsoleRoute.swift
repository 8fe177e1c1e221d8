// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import HTTPTypes
import HermesCore
import Hummingbird

/// One operation of the console, under `/console/api`. ``ConsoleCore/routes`` lists all operations, and the permissions
/// and checks follow from that list.
struct ConsoleRoute: Sendable {
    enum Access: Sendable, Hashable {
        /// No login is needed.
        case everybody
        /// Administrators with this role, or with a role that has more rights.
        case role(AdministratorRole)
    }

    let route: APIRoute
    let access: Access
    /// Whether the page requests this operation by itself. If so, the operation does not keep a session alive.
    var isPolled = false
    /// Whether the operation changes something. If so, it needs the session's request token, and the audit log records
    /// it.
    var isChange: Bool { route.method != .get }

    /// Whether a request searches for a text. A search takes more time than a view, so searches count against the
    /// session's limit for changes.
    func searches(_ request: Request) -> Bool {
        guard !isPolled, route.query.contains(where: { $0.name == "text" }) else { return false }
        // The framework's dictionary has the names as they were sent, not decoded.
        return (request.uri.query ?? "").split(separator: "&").contains { API.decoded($0)?.name == "text" }
    }
}

/// The caller of a request to the console.
struct ConsoleCaller: Sendable {
    let address: String
    /// The hash of the session's token in the request's cookie, whether it is valid or not.
    let token: TokenHash?
    /// The caller's session; nil if the operation needs no login.
    let session: ConsoleSessions.Session?

    var name: String { session?.name.rawValue ?? "" }
}

/// The cookie with the token of a session.
struct ConsoleCookie: Sendable, Hashable {
    let isEncrypted: Bool

    /// The cookie's name. With the prefix `__Host-`, a browser accepts the cookie only over TLS and only from this host
    /// (RFC 6265bis, section 4.1.3.2).
    var name: String { isEncrypted ? "__Host-hermes" : "hermes-console" }

    private var attributes: String {
        "; Path=\(isEncrypted ? "/" : "/console"); HttpOnly; SameSite=Strict\(isEncrypted ? "; Secure" : "")"
    }

    /// Returns the value of `Set-Cookie` for a token. The browser forgets the cookie when the browser is closed.
    func setting(_ token: AccessToken) -> String { "\(name)=\(token.text)\(attributes)" }

    var removing: String { "\(name)=\(attributes); Max-Age=0" }

    /// Returns the hash of the token in `Cookie` fields; nil if no cookie of this name holds a token. Also nil if there
    /// are two cookies of this name, because somebody else has set one of them.
    func token(in fields: [String]) -> TokenHash? {
        var found: Substring?
        for field in fields {
            for pair in field.split(separator: ";") {
                let parts = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
                guard parts.count == 2, parts[0] == name else { continue }
                guard found == nil else { return nil }
                found = parts[1]
            }
        }
        guard let found, found.utf8.count == AccessToken.bytes else { return nil }
        return TokenHash(ofToken: String(found))
    }
}
#endif
