// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import HermesCore
import Hummingbird

/// Refuses requests that address the console by a foreign host name.
///
/// Another site can make its own host name resolve to this machine (DNS rebinding). The requests of that site's pages
/// then differ from the console's own requests only by the host name. A console that other machines can reach has
/// TLS. Its certificate is not valid for the foreign host name, so TLS already stops such requests.
struct ConsoleHosts: RouterMiddleware {
    typealias Context = HTTPContext

    /// The origins under which a proxy offers the console, from the configuration.
    let origins: Set<String>
    /// Whether only this machine can reach the port.
    let isLoopback: Bool

    init(origins: [String], isLoopback: Bool) {
        self.origins = Set(origins.map { $0.lowercased() })
        self.isLoopback = isLoopback
    }

    func allows(_ authority: String?) -> Bool {
        guard isLoopback else { return true }
        guard let authority = authority?.lowercased() else { return false }
        return WebOrigins.isLocal(authority: authority)
            || ["https://", "http://"].contains { origins.contains($0 + authority) }
    }

    @concurrent
    func handle(
        _ request: Request,
        context: HTTPContext,
        next: @concurrent (Request, HTTPContext) async throws -> Response
    ) async throws -> Response {
        guard allows(request.head.authority) else {
            return Console.response(
                APIProblem(
                    .misdirectedRequest,
                    .forbidden,
                    "The console is not offered under this name. Open it as localhost, or name the origin in console.origins."
                )
            )
        }
        return try await next(request, context)
    }
}
#endif
