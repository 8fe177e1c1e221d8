// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Logging
package import NIOCore
import NIOPosix

/// Tells each client the UDP address from which its requests arrive (STUN Binding, RFC 8489). Clients need this address
/// for direct links.
package final class STUNListener: Sendable {
    /// The default UDP port.
    package static let defaultPort = 3478

    private let channel: any Channel

    private init(channel: any Channel) { self.channel = channel }

    /// The UDP port on which the listener receives requests.
    package var port: Int { channel.localAddress?.port ?? 0 }

    /// Starts to answer requests.
    ///
    /// - Throws: IOError if the address cannot be bound.
    package static func start(host: String, port: Int, group: any EventLoopGroup) async throws -> STUNListener {
        let channel = try await DatagramBootstrap(group: group)
            .channelOption(.socketOption(.so_reuseaddr), value: 1)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 2_048))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(STUNHandler())
                }
            }
            .bind(host: host, port: port)
            .get()
        return STUNListener(channel: channel)
    }

    /// Stops the listener.
    package func stop() async {
        try? await channel.close().get()
    }
}

/// Answers a limited number of requests per address, so that nobody can use the server to flood a third party.
final class STUNHandler: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    typealias OutboundOut = AddressedEnvelope<ByteBuffer>

    private var limiter = STUNLimiter()
    private let startedAt = NIODeadline.now()

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        let second = UInt32(clamping: (context.eventLoop.now - startedAt).nanoseconds / 1_000_000_000)
        guard
            limiter.allows(ConnectionCounter.Address(envelope.remoteAddress), second: second),
            let request = STUNMessage.bindingRequest(in: envelope.data)
        else { return }
        var answer = context.channel.allocator.buffer(capacity: 64)
        guard STUNMessage.writeAnswer(to: request, from: envelope.remoteAddress, into: &answer) else { return }
        let reply = AddressedEnvelope(remoteAddress: envelope.remoteAddress, data: answer)
        context.write(wrapOutboundOut(reply), promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // An error, for example an unreachable peer (ICMP), affects only one answer, so it is ignored.
    }
}

/// Counts requests per address and second. This type does no I/O. Its memory is bounded, even if requests have forged
/// addresses.
struct STUNLimiter {
    /// The largest number of requests of one address that are answered within one second. A client sends about one
    /// request.
    static let perAddress = 20
    /// The largest number of addresses that get answers within one second. Requests from further addresses get no
    /// answer in that second.
    static let addresses = 10_000

    private var second: UInt32 = 0
    private var counts: [ConnectionCounter.Address: Int] = [:]

    mutating func allows(_ address: ConnectionCounter.Address, second: UInt32) -> Bool {
        if second != self.second {
            self.second = second
            counts.removeAll(keepingCapacity: counts.count <= 1_000)
        }
        let count = counts[address, default: 0]
        guard count < Self.perAddress, count > 0 || counts.count < Self.addresses else { return false }
        counts[address] = count + 1
        return true
    }
}
