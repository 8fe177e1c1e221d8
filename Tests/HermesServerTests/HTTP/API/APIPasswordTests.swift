// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesServer

@Suite("Passwords in the HTTP API", .inTurns, .timeLimit(.minutes(1)))
struct APIPasswordTests {
    @Test func `a password is measured in bytes, as in the other protocols`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            func status(_ name: String, _ password: String) async throws -> Int {
                try await api.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"\#(password)"}"#).status
            }
            // This letter has two bytes.
            let letter = "\u{E4}"
            #expect(try await status("ann", String(repeating: letter, count: 3)) == 201)
            #expect(try await status("bob", String(repeating: letter, count: 128)) == 201)
            #expect(try await status("cleo", letter + letter + "1") == 422)
            #expect(try await status("cleo", "12345") == 422)
            #expect(try await status("cleo", String(repeating: letter, count: 129)) == 413)
            let changed = try await api.send("PATCH", "/v1/users/ann", #"{"password":"\#(letter)\#(letter)12"}"#)
            #expect(changed.status == 200)
        }
    }
}
