// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import HermesGateways

/// Transports: a proxy in front of the server, a Unix socket, and client certificates.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct TransportTests {
    private func with(
        _ settings: ListenerSettings,
        limits: ConnectionLimits = ConnectionLimits(),
        _ body: (Listener, GatewayEnvironment) async throws -> Void
    ) async throws {
        var configured = GatewaySettings()
        configured.limits = limits
        try await GatewayHarness.with(LineGateway.self, settings: configured) { harness in
            let gateway = LineGateway(environment: harness.environment)
            let listener = try await Listener.start(
                gateway,
                name: "other",
                on: settings,
                environment: harness.environment,
                group: harness.group
            )
            let result: Result<Void, any Error>
            do { result = .success(try await body(listener, harness.environment)) } catch { result = .failure(error) }
            await listener.stopAccepting()
            await listener.drain(within: .seconds(1))
            try result.get()
        }
    }

    private static func header(_ address: [UInt8], command: UInt8 = 0x21) -> [UInt8] {
        let block = address + [127, 0, 0, 1, 0x30, 0x39, 0x07, 0x5B]
        return ProxyHeader.signature + [command, 0x11, 0, UInt8(block.count)] + block
    }

    /// Headers without the address of a client: LOCAL, UNSPEC and a Unix socket.
    private static let hiding: [[UInt8]] = [
        ProxyHeader.signature + [0x20, 0, 0, 0], ProxyHeader.signature + [0x21, 0, 0, 0],
        ProxyHeader.signature + [0x21, 0x31, 0, 216] + [UInt8](repeating: 0x61, count: 216),
    ]

    private let proxied = ListenerSettings(port: 0, proxyProtocol: .v2)

    @Test func `a peer that is told to leave may send only so much more`() async throws {
        try await with(ListenerSettings(port: 0)) { listener, _ in
            let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .connect(host: "127.0.0.1", port: listener.port)
                .get()
            // The client sends a line that is too long and never ends.
            let block = ByteBuffer(repeating: UInt8(ascii: "x"), count: 1 << 20)
            var sent = 0
            while sent < 1_024 {
                do { try await channel.writeAndFlush(block).get() } catch { break }
                sent += 1
            }
            #expect(sent < 64, "MiB, most of it in the system's buffers")
            try? await channel.close().get()
        }
    }

    // MARK: PROXY protocol

    @Test func `the address that a proxy tells is the peer's`() async throws {
        try await with(proxied) { listener, _ in
            let client = try await LineClient.connect(
                to: listener,
                first: Self.header([192, 0, 2, 7]) + Array("who\n".utf8)
            )
            #expect(await client.next() == "hello")
            #expect(await client.next() == "192.0.2.7 -")
            let check = try await LineClient.connect(to: listener, first: Self.header([192, 0, 2, 7], command: 0x20))
            #expect(await check.next() == "hello")
            try await check.send("who\n")
            #expect(await check.next() == "local -", "a health check of the proxy belongs to no address")
        }
    }

    @Test func `a header may come byte by byte`() async throws {
        try await with(proxied) { listener, _ in
            let client = try await LineClient.connect(to: listener)
            for byte in Self.header([10, 0, 0, 1]) { try await client.send(bytes: [byte]) }
            #expect(await client.next() == "hello")
            try await client.send("who\n")
            #expect(await client.next() == "10.0.0.1 -")
        }
    }

    @Test(arguments: [
        Array("hello\n".utf8), Array("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n".utf8), [0x0D, 0x0A, 0x0D, 0x0B],
    ])
    func `who sends no header is closed without a word`(bytes: [UInt8]) async throws {
        try await with(proxied) { listener, environment in
            let client = try await LineClient.connect(to: listener, first: bytes)
            #expect(await client.next() == nil)
            #expect(listener.openConnections == 0)
        }
    }

    @Test func `who never ends the header is closed in time`() async throws {
        // The time is long enough that both clients connect before the first is closed.
        try await with(proxied, limits: ConnectionLimits({ $0.timeToAuthenticate = .seconds(1) })) { listener, _ in
            let silent = try await LineClient.connect(to: listener)
            let slow = try await LineClient.connect(to: listener, first: Array(ProxyHeader.signature))
            #expect(await silent.next() == nil)
            #expect(await slow.next() == nil)
        }
    }

    @Test func `connections are limited by the address behind the proxy`() async throws {
        try await with(proxied, limits: ConnectionLimits({ $0.connectionsPerAddress = 1 })) { listener, environment in
            let first = try await LineClient.connect(to: listener, first: Self.header([192, 0, 2, 7]))
            #expect(await first.next() == "hello")
            let second = try await LineClient.connect(to: listener, first: Self.header([192, 0, 2, 7]))
            #expect(await second.next() == nil)
            let other = try await LineClient.connect(to: listener, first: Self.header([192, 0, 2, 8]))
            #expect(await other.next() == "hello")
            #expect(environment.counter.open >= 2)
            try await first.send("bye\n")
            while await first.next() != nil {}
            try? await first.channel.close().get()
            // The count decreases when the server has noticed the end. The peer may notice it earlier.
            var third = try await LineClient.connect(to: listener, first: Self.header([192, 0, 2, 7]))
            while await third.next() != "hello" {
                third = try await LineClient.connect(to: listener, first: Self.header([192, 0, 2, 7]))
            }
        }
    }

    @Test func `a connection whose proxy hides the client belongs to no address and counts only in the total`()
        async throws
    {
        let limits = ConnectionLimits {
            $0.connections = 6
            $0.connectionsPerAddress = 1
        }
        try await with(proxied, limits: limits) { listener, environment in
            var clients: [LineClient] = []
            for header in Self.hiding + Self.hiding {
                let client = try await LineClient.connect(to: listener, first: header + Array("who\n".utf8))
                #expect(await client.next() == "hello")
                #expect(await client.next() == "local -")
                clients.append(client)
            }
            #expect(environment.counter.open == clients.count)
            // The connection attempt fails if the server has already closed the connection.
            let beyond = try? await LineClient.connect(to: listener, first: Self.hiding[0])
            #expect(await beyond?.next() == nil)
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade)) func `the header comes before TLS`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        let settings = ListenerSettings(port: 0, tls: files.settings, proxyProtocol: .v2)
        try await with(settings) { listener, _ in
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(files.certificate)
            let client = try await LineClient.connect(to: listener, first: Self.header([192, 0, 2, 7]), tls: tls)
            #expect(await client.next() == "hello")
            try await client.send("who\n")
            #expect(await client.next() == "192.0.2.7 -")
        }
    }

    // MARK: Unix socket

    @Test func `a Unix socket is for this user and group, takes the place of one left behind and goes at the end`()
        async throws
    {
        let directory = FileManager.default.temporaryDirectory.appending(path: "h-\(UInt32.random(in: 0 ... .max))")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "m.sock").path
        // This is a socket without a listener. It is moved before its listener closes, because closing would remove it.
        let group = MultiThreadedEventLoopGroup.singleton
        let stale = try await ServerBootstrap(group: group).bind(unixDomainSocketPath: path + "2").get()
        try FileManager.default.moveItem(atPath: path + "2", toPath: path)
        try await stale.close().get()
        #expect(FileManager.default.fileExists(atPath: path))
        let settings = ListenerSettings(port: 0, unixSocketPath: path)
        try await with(settings) { listener, environment in
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o660)
            let client = try await LineClient.connect(to: listener, unixSocketPath: path)
            #expect(await client.next() == "hello")
            try await client.send("who\n")
            #expect(await client.next() == "local -")
            // A socket in use is not taken over.
            await #expect(throws: IOError.self) {
                try await Listener.start(
                    LineGateway(environment: environment),
                    name: "thief",
                    on: settings,
                    environment: environment,
                    group: group
                )
            }
            try await client.send("again\n")
            #expect(await client.next() == "again")
        }
        #expect(!FileManager.default.fileExists(atPath: path))
        // A file that is not a socket stays.
        try Data("x".utf8).write(to: URL(fileURLWithPath: path))
        await #expect(throws: (any Error).self) { try await with(settings) { _, _ in } }
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test func `nobody can connect before a socket has its mode`() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "s-\(UInt32.random(in: 0 ... .max))").path
        let socket = try UnixSocket.bound(path, mode: 0o600)
        defer {
            close(socket)
            UnixSocket.remove(path)
        }
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
        let client = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton).connect(unixDomainSocketPath: path)
        #expect(throws: IOError.self) { try client.wait() }
    }

    @Test(
        arguments: [(1000, 1000, true), (0, 1000, true), (1000, 0, true), (1001, 1000, false)] as [(uid_t, uid_t, Bool)]
    )
    func `a directory of somebody else is not trusted, except by root`(_ owner: uid_t, _ user: uid_t, _ isTrusted: Bool)
    {
        #expect(UnixSocket.isTrusted(owner: owner, by: user) == isTrusted)
    }

    // MARK: Handshakes

    /// Runs a body with a listener behind a proxy. The listener allows one TLS handshake per second for each address.
    private func withOneHandshakePerSecond(_ body: (Listener, TestCertificate) async throws -> Void) async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        let settings = ListenerSettings(port: 0, tls: files.settings, proxyProtocol: .v2)
        var limits = ConnectionLimits()
        limits.tlsHandshakesPerSecondPerAddress = 1
        try await with(settings, limits: limits) { listener, _ in try await body(listener, files) }
    }

    @Test(.enabled(if: TestCertificate.canBeMade))
    func `an address that begins too many TLS handshakes is closed before them, others are not`() async throws {
        try await withOneHandshakePerSecond { listener, files in
            /// Whether the server completes a TLS handshake with an address.
            func isServed(_ address: [UInt8]) async -> Bool {
                do {
                    let tls = try client(files, certificate: nil, key: nil)
                    let client = try await LineClient.connect(to: listener, first: Self.header(address), tls: tls)
                    defer { client.channel.close(promise: nil) }
                    return await client.next() == "hello"
                } catch {
                    // The server closed the connection during the connection attempt.
                    return false
                }
            }
            let start = ContinuousClock.now
            var served = 0
            for _ in 0..<60 where await isServed([192, 0, 2, 1]) { served += 1 }
            let returned = Int((ContinuousClock.now - start) / .seconds(1)) + 1
            #expect(served >= HandshakeBudget.burstSeconds && served <= HandshakeBudget.burstSeconds + returned)
            #expect(await isServed([192, 0, 2, 2]))
            // A client that waits is accepted, regardless of the number of earlier tries.
            while await !isServed([192, 0, 2, 1]) { await Task.yield() }
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade))
    func `the TLS handshake of a client that its proxy hides is charged to nobody`() async throws {
        try await withOneHandshakePerSecond { listener, files in
            for number in 0..<3 * HandshakeBudget.burstSeconds {
                let tls = try client(files, certificate: nil, key: nil)
                let header = Self.hiding[number % Self.hiding.count]
                let hidden = try await LineClient.connect(to: listener, first: header, tls: tls)
                #expect(await hidden.next() == "hello")
                hidden.channel.close(promise: nil)
            }
        }
    }

    // MARK: Certificates

    private func client(_ files: TestCertificate, certificate: String?, key: String?) throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(files.certificate)
        if let certificate, let key {
            tls.certificateChain = try NIOSSLCertificate.fromPEMFile(certificate).map { .certificate($0) }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: key, format: .pem))
        }
        return tls
    }

    @Test(.enabled(if: TestCertificate.canBeMade), arguments: [TLSSettings.ClientCertificates.optional, .required])
    func `clients show certificates of the authority, and may be named by them`(
        mode: TLSSettings.ClientCertificates
    ) async throws {
        let files = try TestCertificate()
        let foreign = try TestCertificate()
        defer {
            files.remove()
            foreign.remove()
        }
        // The certificate is its own authority; its name is localhost.
        var tls = files.settings
        tls.clientCertificates = mode
        tls.clientAuthorityPath = files.certificate
        tls.isIdentityFromCertificate = true
        try await with(ListenerSettings(port: 0, tls: tls)) { listener, _ in
            let named = try await LineClient.connect(
                to: listener,
                tls: client(files, certificate: files.certificate, key: files.key)
            )
            #expect(await named.next() == "hello")
            try await named.send("who\n")
            #expect(await named.next() == "127.0.0.1 localhost")
            let nameless = try await LineClient.connect(to: listener, tls: client(files, certificate: nil, key: nil))
            #expect(await nameless.next() == (mode == .optional ? "hello" : nil))
            let stranger = try await LineClient.connect(
                to: listener,
                tls: client(files, certificate: foreign.certificate, key: foreign.key)
            )
            #expect(await stranger.next() == nil)
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade)) func `a certificate that names nobody, or several, is refused`()
        async throws
    {
        for subject in ["/O=nobody", "/CN=anna/CN=bob"] {
            let files = try TestCertificate(subject: subject)
            defer { files.remove() }
            var tls = files.settings
            tls.clientCertificates = .required
            tls.clientAuthorityPath = files.certificate
            tls.isIdentityFromCertificate = true
            try await with(ListenerSettings(port: 0, tls: tls)) { listener, _ in
                let client = try await LineClient.connect(
                    to: listener,
                    tls: client(files, certificate: files.certificate, key: files.key)
                )
                #expect(await client.next() == nil)
            }
        }
    }

    // MARK: TCP

    @Test func `small packets leave at once, and no option is set that needs privileges`() async throws {
        try await GatewayHarness.with(LineGateway.self) { harness in
            let client = try await LineClient.connect(to: harness.listener)
            #expect(await client.next() == "hello")
            let loop = try #require(harness.environment.loops.all.first)
            let options = try await loop.eventLoop.submit {
                loop.connections(of: harness.listener.acceptor.state).compactMap { connection in
                    connection.context?.channel as? any SocketOptionProvider
                }
            }
            .get()
            let channel = try #require(options.first)
            let noDelay: CInt = try await channel.unsafeGetSocketOption(level: .tcp, name: .tcp_nodelay).get()
            // SOL_SOCKET has another option of the same number, SO_DEBUG.
            let debug: CInt = try await channel.unsafeGetSocketOption(level: .socket, name: .tcp_nodelay).get()
            #expect(noDelay != 0)
            #expect(debug == 0)
        }
    }
}
