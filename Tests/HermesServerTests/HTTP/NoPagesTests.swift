// Hermes
// SPDX-License-Identifier: Apache-2.0

#if !Pages
import HermesTestKit
import Testing

@testable import HermesServer

/// A build without the trait `Pages`. scripts/check-without-pages tests the program of such a build.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct NoPagesTests {
    @Test func `there is no page and no console, and the API is there`() async throws {
        try await withServer(store: .sqlite) { server in
            for path in ["/", "/api", "/chat/", "/room/lobby", "/room/lobby/viewers", "/hermes.js", "/console/"] {
                #expect(try await HTTPProbe.get(path, port: server.port("http")).status == 404, "\(path)")
            }
            #expect(try await HTTPProbe.get("/healthz", port: server.port("http")).status == 200)
            #expect(try await HTTPProbe.get("/v1/openapi.json", port: server.port("http")).status == 200)
            #expect(try server.assembly().console == nil)
        }
    }
}
#endif
