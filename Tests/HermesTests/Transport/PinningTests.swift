// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit
import HermesWire
import NIOSSL
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)), .enabled(if: TestCertificate.canBeMade))
struct PinningTests {
    /// Logs in to a server with a trusted certificate. The client expects certain keys.
    private func logIn(
        webSocketPath: String? = nil,
        pinning pinned: (TestCertificate) throws -> TLSOptions.Source
    ) async throws -> Int {
        let files = try TestCertificate()
        defer { files.remove() }
        let packets = Log<Int>()
        let tls = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: NIOSSLCertificate.fromPEMFile(files.certificate).map { .certificate($0) },
                privateKey: .privateKey(NIOSSLPrivateKey(file: files.key, format: .pem))
            )
        )
        let server = try await FakeHermesServer.scripted(tls: tls) { packet, connection in
            packets.append(1)
            connection.accept(id: packet.id)
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.reconnect = .never
        configuration.server.host = "localhost"
        configuration.server.webSocketPath = webSocketPath
        configuration.server.security = .tls(
            TLSOptions(trustedCertificates: .file(files.certificate), pinnedCertificates: try pinned(files))
        )
        let client = try HermesClient(configuration)
        do {
            _ = try await client.logIn(.token("t"))
            await client.close()
        } catch {
            #expect((error as? HermesClientError)?.code == .badTLS)
        }
        try await server.stop()
        return packets.all.count
    }

    @Test func `the expected key is accepted`() async throws {
        #expect(try await logIn { .file($0.certificate) } == 1)
    }

    @Test(arguments: [nil, "/ws"])
    func `a trusted certificate with another key gets not a byte`(_ webSocketPath: String?) async throws {
        let other = try TestCertificate()
        defer { other.remove() }
        #expect(try await logIn(webSocketPath: webSocketPath) { _ in .file(other.certificate) } == 0)
    }

    @Test func `a file without certificates is told`() {
        var configuration = HermesClient.Configuration.fake(port: 1)
        configuration.server.security = .tls(TLSOptions(pinnedCertificates: .file("/nonexistent.pem")))
        let error = #expect(throws: HermesClientError.self) { try HermesClient(configuration) }
        #expect(error?.code == .badTLS)
    }
}
