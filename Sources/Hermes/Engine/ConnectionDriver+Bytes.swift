// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Logging
import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

// MARK: - Bytes, called by the handler
extension ConnectionDriver {
    /// Handles bytes that arrived over a channel.
    func bytesReceived(_ bytes: ByteBuffer, on channel: any Channel) {
        if case .connecting = machine.state { return keepEarly(bytes, of: channel) }
        // Ignore a connection that lost the race against another, and bytes that arrive while the connection closes.
        guard self.channel === channel, acceptsFrames else { return }
        let now = eventLoop.now
        machine.bytesReceived(now: now)
        if inbound.readableBytes == 0 {
            inbound = bytes
        } else {
            inbound.writeImmutableBuffer(bytes)
        }
        do {
            while acceptsFrames, let frame = try decoder.next(from: &inbound) {
                var effects = Link.Effects()
                defer { apply(effects) }
                try link.received(frame, now: now, effects: &effects)
            }
        } catch {
            fail(explained(error))
        }
        if acceptsFrames {
            inbound.discardReadBytes()
        } else {
            inbound = ByteBuffer()
        }
        rememberHeartbeat()
        schedule()
    }

    /// Returns a clearer error if the server's first bytes show that it speaks another protocol.
    private func explained(_ error: any Error) -> any Error {
        guard error is WireError, case .authenticating = machine.state,
            let text = ServerMismatch.text(ofAnswer: inbound.readableBytesView)
        else { return error }
        return HermesClientError(.protocolViolation, text, cause: error)
    }

    /// Keeps bytes that arrived together with the end of a WebSocket's handshake. They are read after the channel is
    /// open and the login is sent.
    private func keepEarly(_ bytes: ByteBuffer, of channel: any Channel) {
        let index = earlyBytes.firstIndex { $0.channel === channel } ?? earlyBytes.endIndex
        if index == earlyBytes.endIndex { earlyBytes.append((channel, ByteBuffer())) }
        guard earlyBytes[index].bytes.readableBytes + bytes.readableBytes <= link.maxFrameBytes else {
            let message = "the server sent too many bytes before the login"
            errorCaught(HermesClientError(.protocolViolation, message), on: channel)
            return channel.close(promise: nil)
        }
        earlyBytes[index].bytes.writeImmutableBuffer(bytes)
    }

    /// Whether frames are read: from the login until the connection counts as lost.
    private var acceptsFrames: Bool {
        switch machine.state {
        case .authenticating, .live: true
        case .idle, .connecting, .lost, .waiting, .stopped: false
        }
    }

    /// Handles an error that reached the handler. The handler then closes the channel.
    func errorCaught(_ error: any Error, on channel: any Channel) {
        // A server can also refuse the length of a frame in the WebSocket layer, below the protocol.
        if let error = error as? HermesClientError, error.isBreach, self.channel === channel, acceptsFrames {
            blame(error)
        }
        let broken = HermesClientError(.connectionLost, "the connection broke: \(explain(error))", cause: error)
        let reason = error as? HermesClientError ?? broken
        if self.channel == nil, !earlyErrors.contains(where: { $0.channel === channel }) {
            earlyErrors.append((channel, reason))
        }
        // Ignore a connection that lost the race against another.
        if lastError == nil, self.channel == nil || self.channel === channel { lastError = reason }
    }

    /// Encodes a request into the outbound buffer. All requests of one loop tick leave in one write.
    ///
    /// - Throws: HermesClientError if the request could not be encoded. In that case, no part of the request is sent,
    ///   and the request's waiter has got the error.
    func write(_ request: Link.Request, id: UInt64) throws(HermesClientError) {
        let start = outbound.writerIndex
        do {
            try link.write(request, id: id, into: &outbound)
            if id >= 16 { requests.markWritten(id, bytes: outbound.writerIndex - start) }
            machine.bytesWritten(now: eventLoop.now)
            scheduleFlush()
        } catch {
            outbound.moveWriterIndex(to: start)
            let reason = error as? HermesClientError ?? HermesClientError(.notEncodable, explain(error), cause: error)
            requests.remove(id)?.waiter.resume(throwing: reason)
            logger.debug("request not sent", metadata: ["reason": "\(reason)"])
            throw reason
        }
    }

    func scheduleFlush() {
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        eventLoop.execute { self.assumeIsolated { $0.flush() } }
    }

    /// Writes this tick's buffer to the channel.
    func flush() {
        isFlushScheduled = false
        guard let channel, outbound.readableBytes > 0 else { return }
        let bytes = outbound
        outbound = ByteBuffer()
        guard !writeWaiters.isEmpty else {
            channel.writeAndFlush(bytes, promise: nil)
            return
        }
        let waiters = writeWaiters
        writeWaiters = []
        channel.writeAndFlush(bytes).whenComplete { result in
            for waiter in waiters {
                waiter.resume(
                    with: result.mapError {
                        HermesClientError(.connectionLost, "the connection was lost: \(explain($0))", cause: $0)
                            as any Error
                    }
                )
            }
        }
    }
}

/// Returns a short description of an error. NIO's and the system's own descriptions are long.
package func explain(_ error: any Error) -> String {
    switch error {
    case let error as HermesClientError: error.message
    case let error as WireError: error.message
    case let error as IOError: String(cString: strerror(error.errnoCode))
    case let error as NIOConnectionError: explainConnection(error)
    case let error as SocketAddressError.UnknownHost: error.errorDescription
    case ChannelError.connectTimeout: "no answer in time"
    default: ServerMismatch.text(ofTLS: error) ?? "\(error)"
    }
}

private func explainConnection(_ error: NIOConnectionError) -> String {
    guard let first = error.connectionErrors.first else {
        let reason = (error.dnsAError ?? error.dnsAAAAError).map { ": \(explain($0))" } ?? ""
        return "\(error.host) is not known\(reason)"
    }
    return "\(error.host):\(error.port): \(explain(first.error))"
}
