// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// A device that reconnects over a slow network after an absence.
@Suite(.inTurns, .timeLimit(.minutes(2))) struct SlowInboxTests {
    @Test func `it gets all that waits however much more than the queue holds`() async throws {
        var settings = GatewaySettings()
        settings.limits.outboundQueueBytes = 256 * 1024
        try await GatewayHarness.with(DelimitedGateway.self, settings: settings) { harness in
            let ann = try await harness.register("ann")
            let bob = try await harness.register("bob")
            var content = Hermes_V1_Content()
            content.text = String(repeating: "x", count: 60_000)
            let bytes = MessageContent(bytes: try content.wireBytes())
            let conversation = ConversationID.direct(between: ann.principal.user, and: bob.principal.user)
            // This is far more than the socket buffers of both sides can hold.
            let count = 120
            for _ in 0..<count {
                let draft = MessageDraft(conversation: conversation, clientID: nil, content: bytes)
                _ = try await withCheckedThrowingContinuation { continuation in
                    harness.messenger.messages.send(draft, from: ann.principal) { continuation.resume(with: $0) }
                }
            }

            let peer = try await WireClient<DelimitedFrameDecoder>.connect(
                port: harness.listener.port,
                tls: nil,
                receiveBuffer: 16_384
            )
            try await peer.channel.setOption(.autoRead, value: false).get()
            var login = Hermes_V1_Packet()
            login.id = 1
            login.authenticate.token = try #require(bob.token)
            login.authenticate.device.id = "phone"
            try await peer.send(bytes: login.delimitedBytes())
            // Let the server write until the socket buffers are full. A request on another connection is answered after
            // that.
            for _ in 0..<20 {
                let other = try await harness.connect(DelimitedFrameDecoder.self)
                var ping = Hermes_V1_Packet()
                ping.ping = Hermes_V1_Ping()
                try await other.send(bytes: ping.delimitedBytes())
                _ = try await other.next()
                try await other.close()
            }
            try await peer.channel.setOption(.autoRead, value: true).get()
            peer.channel.read()
            var expected: UInt64 = 1
            while expected <= count, let frame = try await peer.next() {
                let packet = try frame.packet()
                guard case .event(let event) = packet.body else { continue }
                #expect(event.seq == expected)
                expected = event.seq + 1
            }
            #expect(expected == UInt64(count) + 1)
        }
    }
}

extension Hermes_V1_Packet {
    fileprivate func delimitedBytes() throws -> [UInt8] {
        var bytes = ByteBuffer()
        try DelimitedFrame.write(self, into: &bytes)
        return Array(bytes.readableBytesView)
    }
}
