// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOEmbedded
import Testing

@testable import HermesGateways

struct WebSocketPingTests {
    @Test func `a ping that comes while the channel is full is answered when there is room`() throws {
        let channel = EmbeddedChannel()
        let handler = WebSocketHandler(WebSocketInput()) { WebSocketMessage(bytes: $0.readableBytes) }
        try channel.pipeline.syncOperations.addHandler(handler)
        channel.isWritable = false
        // This is a masked ping with the payload "hi". The mask is 0.
        try channel.writeInbound(ByteBuffer(bytes: [0x89, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
        channel.isWritable = true
        channel.pipeline.fireChannelWritabilityChanged()
        #expect(try channel.readOutbound(as: ByteBuffer.self) == ByteBuffer(bytes: [0x8A, 2, 0x68, 0x69]))
        #expect(try channel.readOutbound(as: ByteBuffer.self) == nil)
        _ = try channel.finish()
    }
}
