// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import HermesCore
import HermesTestKit
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@testable import HermesPush

@Suite("HTTP/2", .inTurns, .enabled(if: TestCertificate.canBeMade))
struct HTTP2ClientTests {
    typealias Frame = FakeHTTP2Server.Frame

    /// Runs `body` with a server that follows this script, and a client with a time limit.
    private func with(
        _ script: FakeHTTP2Server.Script,
        timeout: TimeAmount = .minutes(1),
        maxRequests: Int = HTTP2Connection.maxRequests,
        _ body: (HTTP2Client, FakeHTTP2Server) async throws -> Void
    ) async throws {
        let certificate = try TestCertificate()
        defer { certificate.remove() }
        let server = try await FakeHTTP2Server(certificate, script)
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(certificate.certificate))
        let client = try HTTP2Client(
            group: NIOSingletons.posixEventLoopGroup,
            tls: tls,
            timeout: timeout,
            maxRequests: maxRequests
        )
        let result: Result<Void, any Error>
        do { result = .success(try await body(client, server)) } catch { result = .failure(error) }
        client.shutdown()
        await server.stop()
        try result.get()
    }

    private func post(_ client: HTTP2Client, _ server: FakeHTTP2Server) async throws -> PushHTTPClient.Answer {
        try await client.post("\(server.url)/3/device/aa", headers: [("a", "b")], body: ByteBuffer(string: "{}"))
    }

    /// Sends a request, and returns its failure; nil if the request was answered.
    private func failure(_ client: HTTP2Client, _ server: FakeHTTP2Server) async -> PushHTTPFailure? {
        do {
            _ = try await post(client, server)
            return nil
        } catch {
            return error as? PushHTTPFailure ?? .badAnswer("\(error)")
        }
    }

    /// Whether a request is answered after some tries. On a busy machine, a request may take longer than the client
    /// waits.
    private func isAnswered(_ client: HTTP2Client, _ server: FakeHTTP2Server) async -> Bool {
        for _ in 0..<30 where await failure(client, server) == nil { return true }
        return false
    }

    @Test
    func `an answer in parts, after an interim one; the connection is used again`() async throws {
        let script = FakeHTTP2Server.Script(answer: { _, stream in
            [
                .head(stream, "103"), .head(stream, "410"), .data(stream, "go"), .data(stream, ""),
                .data(stream, "ne", ends: true),
            ]
        })
        try await with(script) { client, server in
            for _ in 0..<3 {
                let answer = try await post(client, server)
                #expect(answer.status == 410)
                #expect(String(decoding: answer.body, as: UTF8.self) == "gone")
            }
            #expect(server.connections == 1)
        }
    }

    @Test(arguments: ["", "-5", "0", "50", "050", "+20", "600", "1000", "2 0", "x", nil])
    func `a status that is none fails its request, and nothing else`(status: String?) async throws {
        let script = FakeHTTP2Server.Script(answer: { connection, stream in
            connection == 1 && stream == 1
                ? [.head(stream, status), .data(stream, "x", ends: true)]
                : [.head(stream, "200", ends: true)]
        })
        try await with(script) { client, server in
            #expect(await failure(client, server) != nil)
            #expect(await failure(client, server) == nil)
        }
    }

    @Test(arguments: ["101", "100", "199"])
    func `an answer that ends with an interim status fails`(status: String) async throws {
        try await with(.init(answer: { _, stream in [.head(stream, status, ends: true)] })) { client, server in
            #expect(await failure(client, server) != nil)
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `an answer in very many small parts is cut off`() async throws {
        let script = FakeHTTP2Server.Script(answer: { connection, stream in
            guard connection == 1, stream == 1 else { return [.head(stream, "200", ends: true)] }
            return [.head(stream, "200")] + Array(repeating: .data(stream, "x"), count: 60_000)
        })
        try await with(script) { client, server in
            let start = ContinuousClock.now
            #expect(await failure(client, server) == .badAnswer("it has more than 1000 frames"))
            #expect(ContinuousClock.now - start < .seconds(5))
            #expect(await failure(client, server) == nil)
        }
    }

    @Test
    func `interim answers without end are cut off`() async throws {
        let script = FakeHTTP2Server.Script(answer: { _, stream in
            Array(repeating: .head(stream, "103"), count: 5_000)
        })
        try await with(script) { client, server in #expect(await failure(client, server) != nil) }
    }

    @Test(arguments: [UInt8(6), 0xF7])
    func `frames without end that belong to no answer end the connection`(type: UInt8) async throws {
        let frame = Frame(type: type, payload: Array(repeating: 1, count: 8))
        let script = FakeHTTP2Server.Script(answer: { connection, stream in
            let answer = [Frame.head(stream, "200", ends: true)]
            return connection == 1 ? Array(repeating: frame, count: 100_000) + answer : answer
        })
        try await with(script) { client, server in
            #expect(await failure(client, server) != nil)
            #expect(await failure(client, server) == nil)
            #expect(server.connections == 2)
        }
    }

    @Test
    func `a connection that says nothing is replaced`() async throws {
        let script = FakeHTTP2Server.Script(begin: { $0 == 1 ? [] : [.settings] })
        try await with(script, timeout: .seconds(1)) { client, server in
            #expect(await failure(client, server) != nil)
            #expect(await isAnswered(client, server))
            #expect(server.connections > 1)
        }
    }

    @Test
    func `a connection that answers nothing any more is replaced`() async throws {
        let ping = Frame(type: 6, payload: Array(repeating: 1, count: 8))
        let script = FakeHTTP2Server.Script(answer: { connection, stream in
            connection == 1 && stream > 1 ? [ping] : [.head(stream, "200", ends: true)]
        })
        try await with(script, timeout: .seconds(1)) { client, server in
            _ = await failure(client, server)
            #expect(await failure(client, server) != nil)
            #expect(await isAnswered(client, server))
            #expect(server.connections > 1)
        }
    }

    @Test
    func `a connection that answers other requests is kept`() async throws {
        let script = FakeHTTP2Server.Script(answer: { _, stream in
            stream == 3 ? [] : [.head(stream, "200", ends: true)]
        })
        try await with(script, timeout: .seconds(10)) { client, server in
            #expect(await failure(client, server) == nil)
            async let unanswered = failure(client, server)
            try await Task.sleep(for: .milliseconds(500))
            #expect(await failure(client, server) == nil)
            #expect(await unanswered == .noAnswer)
            #expect(await failure(client, server) == nil)
            #expect(server.connections == 1)
        }
    }

    @Test
    func `a service that leaves gets the next request over another connection`() async throws {
        let early = FakeHTTP2Server.Script(begin: { $0 == 1 ? [.goAway] : [.settings] })
        try await with(early) { client, server in
            #expect(await failure(client, server) != nil)
            #expect(await failure(client, server) == nil)
        }
        let late = FakeHTTP2Server.Script(answer: { _, stream in [.goAway, .head(stream, "200", ends: true)] })
        try await with(late) { client, server in
            // GOAWAY reports that the stream was not handled, so the request may fail. The next request gets a new
            // connection.
            for _ in 0..<4 { _ = await failure(client, server) }
            #expect(server.connections == 4)
        }
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func `a connection ends after its last request, and the next request opens another`(areParallel: Bool) async throws
    {
        try await with(.init(), maxRequests: 2) { client, server in
            if areParallel {
                await withTaskGroup(of: PushHTTPFailure?.self) { group in
                    for _ in 0..<5 { group.addTask { await failure(client, server) } }
                    for await failure in group { #expect(failure == nil) }
                }
            } else {
                for _ in 0..<5 { #expect(await failure(client, server) == nil) }
            }
            #expect(server.connections == 3)
            while server.closedConnections < 2 { try await Task.sleep(for: .milliseconds(5)) }
        }
    }

    @Test
    func `a service that leaves at once gets no connection after the other`() async throws {
        try await with(.init(begin: { _ in [.settings, .goAway] })) { client, server in
            for _ in 0..<5 { #expect(await failure(client, server) != nil) }
            #expect((5...10).contains(server.connections))
        }
    }

    @Test
    func `a request is accepted after a head of success, even if the rest does not come`() async throws {
        let reset: @Sendable (UInt32) -> Frame = { Frame(type: 3, stream: $0, payload: [0, 0, 0, 8]) }
        let script = FakeHTTP2Server.Script(answer: { _, stream in
            stream == 1 ? [.head(stream, "200"), reset(stream)] : [.head(stream, stream == 3 ? "201" : "500")]
        })
        try await with(script, timeout: .seconds(5)) { client, server in
            #expect(await failure(client, server) == nil)
            #expect(await failure(client, server) == nil)
            #expect(await failure(client, server) == .noAnswer)
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `APNs gets its notifications over HTTP2`() async throws {
        let certificate = try TestCertificate()
        defer { certificate.remove() }
        let folder = try PushFixtures.Folder()
        let keyFile = try folder.write("key.p8", P256.Signing.PrivateKey().pemRepresentation)
        let server = try await FakeHTTP2Server(certificate, .init())
        let http = try PushHTTPClient(
            group: NIOSingletons.posixEventLoopGroup,
            authority: certificate.certificate
        )
        let sender = try APNsSender(
            .init(
                keyFile: keyFile,
                keyID: "KEY1234567",
                teamID: "TEAM123456",
                topic: "org.example.app",
                endpoint: server.url
            ),
            http: http,
            time: SteadyTime(ManualClock(now: PushFixtures.now))
        )
        let notification = PushFixtures.notification()
        for _ in 0..<2 {
            let outcome = await sender.send(PushDelivery(notification, to: PushFixtures.apnsToken))
            #expect(outcome == .delivered(id: notification.id))
        }
        #expect(server.connections == 1)
        await http.shutdown()
        await server.stop()
    }

    @Test
    func `a service without HTTP2 is refused, whatever it spoke before`() async throws {
        try await with(.init(protocols: ["http/1.1"])) { client, server in
            for _ in 0..<4 { #expect(await failure(client, server) != nil) }
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a cancelled request ends at once, also while the connection is being opened`() async throws {
        for begin in [[], [Frame.settings]] {
            let script = FakeHTTP2Server.Script(begin: { _ in begin }, answer: { _, _ in [] })
            try await with(script, timeout: .seconds(600)) { client, server in
                let asking = Task { await failure(client, server) }
                while server.connections == 0 { try await Task.sleep(for: .milliseconds(5)) }
                try await Task.sleep(for: .milliseconds(50))
                asking.cancel()
                #expect(await asking.value != nil)
            }
        }
    }
}
