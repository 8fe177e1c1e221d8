// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)), .enabled(if: TestCertificate.canBeMade))
struct TLSListenerTests {
    @Test func `speaks TLS and reads its certificate again`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        try await GatewayHarness.with(tls: files.settings) { server in
            let listener = try #require(server.listeners["delimited"])
            let first = try files.copy()
            let ann = try await DelimitedTestClient.connect(port: listener.port, authority: first)
            let uid = try await ann.register("ann").uid

            try files.renew()
            let second = try files.copy()
            // Nothing changes before the reload.
            let before = try await DelimitedTestClient.connect(port: listener.port, authority: first)
            _ = try await before.register("before")
            try listener.reloadCertificate()
            let after = try await DelimitedTestClient.connect(port: listener.port, authority: second)
            _ = try await after.register("after")
            // Connections keep the certificate with which they began.
            try await ann.send("note", to: uid, id: 2)
            _ = try await ann.receipt(2)

            // A file that cannot be read leaves the certificate in use.
            try Data("no certificate".utf8).write(to: URL(fileURLWithPath: files.certificate))
            #expect(throws: (any Error).self) { try listener.reloadCertificate() }
            let last = try await DelimitedTestClient.connect(port: listener.port, authority: second)
            _ = try await last.register("last")
        }
    }

    @Test func `a pipe in the place of a TLS file is refused and does not stop the reading`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        try await GatewayHarness.with(tls: files.settings) { server in
            let listener = try #require(server.listeners["delimited"])
            let authority = try files.copy()
            for path in [files.key, files.certificate] {
                try FileManager.default.moveItem(atPath: path, toPath: path + ".good")
                #expect(mkfifo(path, 0o600) == 0)
                let error = #expect(throws: TLSFile.Unusable.self) { try listener.reloadCertificate() }
                #expect(error?.description.contains("it is a pipe") == true, "\(path)")
                try FileManager.default.removeItem(atPath: path)
                try FileManager.default.moveItem(atPath: path + ".good", toPath: path)
            }
            try listener.reloadCertificate()
            let ann = try await DelimitedTestClient.connect(port: listener.port, authority: authority)
            _ = try await ann.register("ann")
        }
    }

    @Test func `a pipe as authority or list, and a key that is too long, are refused at the start`() throws {
        let files = try TestCertificate()
        defer { files.remove() }
        let pipe = files.directory.appending(path: "pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        var settings = files.settings
        settings.clientCertificates = .required
        settings.clientAuthorityPath = pipe
        #expect(throws: TLSFile.Unusable.self) { try TLSContextBox(settings) }
        settings.clientAuthorityPath = files.certificate
        settings.revocationListPath = pipe
        #expect(throws: RevokedCertificates.Unusable.self) { try TLSContextBox(settings) }
        settings = files.settings
        settings.privateKeyPath = files.directory.appending(path: "long").path
        try Data(count: TLSFile.maxBytes + 1).write(to: URL(fileURLWithPath: settings.privateKeyPath))
        let error = #expect(throws: TLSFile.Unusable.self) { try TLSContextBox(settings) }
        #expect(error?.description.contains("it is larger than") == true)
    }

    @Test func `a chain that no client takes is refused`() throws {
        let files = try TestCertificate()
        defer { files.remove() }
        let one = try String(contentsOfFile: files.certificate, encoding: .utf8)
        func write(_ count: Int) throws {
            let text = String(repeating: one, count: count)
            try Data(text.utf8).write(to: URL(fileURLWithPath: files.certificate))
        }
        try write(TLSFile.maxChain)
        _ = try TLSContextBox(files.settings)
        try write(TLSFile.maxChain + 1)
        let error = #expect(throws: TLSFile.Unusable.self) { try TLSContextBox(files.settings) }
        #expect(error?.description.contains("33 certificates; a chain has at most 32") == true)
    }

    @Test func `last words arrive through TLS`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        try await GatewayHarness.with(tls: files.settings) { server in
            let port = server.port("delimited")
            let client = try await DelimitedTestClient.connect(port: port, authority: files.certificate)
            try await client.wire.send(ByteBuffer(bytes: [3, 0xFF, 0xFF, 0xFF]))
            #expect(try await client.kicked().reason == .protocol)
            #expect(try await client.wire.next() == nil)
            // A client without TLS does not affect other clients.
            let plain = try await DelimitedTestClient.connect(port: port)
            try await plain.wire.send(ByteBuffer(bytes: [1, 2, 3, 4, 5, 6]))
            #expect(try await plain.wire.next() == nil)
            let ann = try await DelimitedTestClient.connect(port: port, authority: files.certificate)
            _ = try await ann.register("ann")
        }
    }

    @Test func `nothing is kept for a peer that does not end the handshake`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        try await GatewayHarness.with(tls: files.settings) { server in
            let port = server.port("liveroom")
            let silent = try await WireClient<LiveRoomFrameDecoder>.connect(port: port)
            let viewer = try await WireClient<LiveRoomFrameDecoder>.connect(port: port, authority: files.certificate)
            let mark = LiveRoomTestFrames.raw(20)
            try await viewer.send(mark)
            #expect(try await viewer.next() == mark)
            #expect(await server.environment.loops.topicPlane.subscriberCount(of: RoomName.lobby.topic) == 1)
            try await silent.close()
        }
    }
}
