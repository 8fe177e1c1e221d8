// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import HermesWire
import NIOSSL
import Testing

@testable import Hermes

@Suite struct ServerAddressTests {
    @Test(arguments: [
        ("a.example:9000", "a.example", 9000, nil), ("hermes://a.example", "a.example", 9000, nil),
        ("HERMES://a.example:1", "a.example", 1, nil), ("wss://a.example", "a.example", 443, "/ws"),
        ("WSS://a.example:8443/x/y?z=1", "a.example", 8443, "/x/y?z=1"), ("mqtts://a.example", "a.example", 8883, nil),
        ("10.0.0.1:9000", "10.0.0.1", 9000, nil), ("[2001:db8::1]:9000", "2001:db8::1", 9000, nil),
        ("wss://localhost", "localhost", 443, "/ws"),
    ])
    func `an address is encrypted`(text: String, host: String, port: Int, path: String?) throws {
        let address = try #require(ServerAddress(text))
        #expect(address.host == host)
        #expect(address.port == port)
        #expect(address.webSocketPath == path)
        #expect(address.tlsOptions == TLSOptions())
    }

    @Test(arguments: [
        ("tcp://a.example:9000", "a.example", 9000, nil), ("ws://a.example", "a.example", 80, "/ws"),
        ("ws://[::1]", "::1", 80, "/ws"), ("ws://[::1]:8080/", "::1", 8080, "/"),
        ("ws://10.0.0.1:8080", "10.0.0.1", 8080, "/ws"), ("mqtt://a.example", "a.example", 1883, nil),
        ("localhost:9000", "localhost", 9000, nil), ("hermes://127.0.0.1", "127.0.0.1", 9000, nil),
        ("127.1.2.3:9000", "127.1.2.3", 9000, nil), ("[::1]:9000", "::1", 9000, nil),
    ])
    func `clear text is asked for by name, or to this machine`(
        text: String,
        host: String,
        port: Int,
        path: String?
    ) throws {
        let address = try #require(ServerAddress(text))
        #expect(address.host == host)
        #expect(address.port == port)
        #expect(address.webSocketPath == path)
        #expect(address.tlsOptions == nil)
    }

    @Test(arguments: [
        "", "a", "a:0", "a:b", "é:1", "hermes:", "hermes://", "hermes://a/b", "tcp://a", "http://a", "ws:", "ws://",
        "ws:///ws", "ws://a:0", "ws://a:b", "ws://a@b", "ws://a/b c", "ws://a/b\r\nX: y", "ws://a/#b", "ws://a?b",
        "ws://::1", "ws://[::1", "ws://é", "ws://a/" + String(repeating: "a", count: 2048),
    ])
    func `no address`(text: String) { #expect(ServerAddress(text) == nil) }

    @Test(arguments: ["127.example", "127.0.0.1.example", "localhost.example", "128.0.0.1", "0.0.0.0", "::2"])
    func `a name that looks like this machine's is encrypted`(host: String) {
        #expect(ServerAddress(host: host, port: 1).tlsOptions == TLSOptions())
    }

    @Test func `clear text does not leave this machine`() throws {
        var address = ServerAddress(port: 1)
        let elsewhere = ServerAddress.Endpoint(host: "a.example", port: 1)
        let here = ServerAddress.Endpoint(host: "::1", port: 2)
        #expect(address.mayRedirect(to: here))
        #expect(!address.mayRedirect(to: elsewhere))
        address.alternatives = [here]
        #expect(address.tlsOptions == nil)
        // If one endpoint is on another machine, all connections are encrypted.
        address.alternatives = [elsewhere]
        #expect(address.tlsOptions == TLSOptions())
        #expect(address.mayRedirect(to: elsewhere))
        address = ServerAddress(port: 1, security: .clearText)
        #expect(address.mayRedirect(to: elsewhere))
    }

    @Test func `a protocol without WebSocket refuses a path`() {
        let error = #expect(throws: HermesClientError.self) {
            try Connector(ServerAddress(port: 1, webSocketPath: "/x"))
        }
        #expect(error?.code == .cannotConnect)
    }
}

@Suite(.inTurns, .timeLimit(.minutes(1)), .enabled(if: TestCertificate.canBeMade))
struct TLSSourceTests {
    /// Logs in with these options to a server with the certificate.
    private func logIn(_ files: TestCertificate, _ options: TLSOptions) async throws {
        let tls = try NIOSSLContext(
            configuration: .makeServerConfiguration(
                certificateChain: NIOSSLCertificate.fromPEMFile(files.certificate).map { .certificate($0) },
                privateKey: .privateKey(NIOSSLPrivateKey(file: files.key, format: .pem))
            )
        )
        let server = try await FakeHermesServer.scripted(tls: tls) { packet, connection in
            connection.accept(id: packet.id)
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.reconnect = .never
        configuration.server.host = "localhost"
        configuration.server.security = .tls(options)
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        await client.close()
        try await server.stop()
    }

    @Test func `certificates and keys come as files, text and data`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        let pem = try String(contentsOfFile: files.certificate, encoding: .utf8)
        let certificate = try #require(try NIOSSLCertificate.fromPEMFile(files.certificate).first)
        let sources: [TLSOptions.Source] = [
            .file(files.certificate), .text(pem), .data(Data(pem.utf8)), .data(Data(try certificate.toDERBytes())),
        ]
        for source in sources {
            var options = TLSOptions(trustedCertificates: source, pinnedCertificates: source)
            options.certificate = source
            options.privateKey = .text(try String(contentsOfFile: files.key, encoding: .utf8))
            try await logIn(files, options)
        }
    }

    @Test func `the reason why TLS cannot be set up is told in plain words`() throws {
        let files = try TestCertificate()
        defer { files.remove() }
        func message(_ options: TLSOptions) -> String? {
            var address = ServerAddress(host: "a.example", port: 1)
            address.security = .tls(options)
            let error = #expect(throws: HermesClientError.self) { try Connector(address) }
            return error?.message
        }
        let missing = message(TLSOptions(trustedCertificates: .file("/nonexistent.pem")))
        #expect(missing == "TLS cannot be set up: /nonexistent.pem cannot be read: No such file or directory")
        var options = TLSOptions()
        options.certificate = .file(files.certificate)
        let keyless = message(options)
        #expect(keyless?.contains("with \(files.certificate): no private key can be read") == true)
        options.certificate = .file(files.key)
        options.privateKey = .file(files.key)
        #expect(message(options)?.contains("no certificate can be read") == true)
    }

    @Test func `an error names the file, and nothing of what was given as text`() throws {
        for (source, name) in [
            (TLSOptions.Source.file("/nonexistent.pem"), "/nonexistent.pem"), (.text("secret"), "text"),
        ] {
            var address = ServerAddress(host: "a.example", port: 1)
            var options = TLSOptions()
            options.certificate = source
            address.security = .tls(options)
            let error = #expect(throws: HermesClientError.self) { try Connector(address) }
            #expect(error?.code == .badTLS)
            #expect(error?.message.contains(name) == true)
            #expect(error?.message.contains("secret") == false)
        }
    }
}
