// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Hermes
import Testing

@testable import HermesCLI

@Suite struct ClientFailureTests {
    private func failure(_ code: HermesClientError.Code, _ message: String) -> ClientFailure {
        ClientFailure(HermesClientError(code, message), server: ServerAddress(port: 7_000))
    }

    @Test func `a failed connection has its exit code, also if the reason is TLS`() {
        let plain = failure(.cannotConnect, "nobody answers")
        let noTLS = failure(.cannotConnect, "the peer does \(ServerMismatch.speaksNoTLS)")
        let onlyTLS = failure(.cannotConnect, ServerMismatch.speaksTLS)
        #expect([plain, noTLS, onlyTLS].map(\.exitCode) == Array(repeating: ExitCode(69), count: 3))
        #expect(noTLS.message.hasSuffix("use --no-tls") && onlyTLS.message.hasSuffix("use --tls"))
        #expect(failure(.connectionLost, ServerMismatch.speaksTLS).exitCode == .failure)
    }
}
