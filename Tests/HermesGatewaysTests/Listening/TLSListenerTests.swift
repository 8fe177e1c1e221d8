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
            // Nothing changes before it is asked for.
            let before = try await DelimitedTestClient.connect(port: listener.port, authority: first)
            _ = try await before.register("before")
            try listener.reloadCertificate()
            let after = try await DelimitedTestClient.connect(port: listener.port, authority: second)
            _ = try await after.register("after")
            // Connections keep the certificate they began with.
            try await ann.send("note", to: uid, id: 2)
            _ = try await ann.receipt(2)

            // A file that cannot be read leaves the certificate in use.
            try Data("no certificate".utf8).write(to: URL(fileURLWithPath: files.certificate))
            #expect(throws: (any Error).self) { try listener.reloadCertificate() }
            let last = try await DelimitedTestClient.connect(port: listener.port, authority: second)
            _ = try await last.register("last")
        }
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
            // Somebody who speaks no TLS disturbs nobody.
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
