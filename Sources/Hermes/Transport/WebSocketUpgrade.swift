// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Turns an HTTP connection into a WebSocket (RFC 6455; section 6 of the MQTT standards). The next handler gets the
/// WebSocket's payload as a stream of bytes.
struct WebSocketUpgrade: Sendable {
    let host: String
    let target: WebSocketTarget
    let timeout: TimeAmount
    /// The promise that succeeds with the channel after the channel has become a WebSocket.
    let upgraded: EventLoopPromise<any Channel>
    /// The function that adds the handler that gets the bytes.
    let configure: @Sendable (any Channel) throws -> Void

    /// The largest payload of a frame, in bytes. A message can span several frames.
    private static let maxFrameBytes = 1 << 24

    /// Adds the handlers that request the upgrade; called in the channel's initializer.
    func begin(_ channel: any Channel) throws {
        let upgrader = NIOWebSocketClientUpgrader(
            maxFrameSize: Self.maxFrameBytes,
            automaticErrorHandling: false,
            upgradePipelineHandler: { channel, response in
                channel.eventLoop.makeCompletedFuture {
                    do {
                        let agreed = response.headers["Sec-WebSocket-Protocol"].first
                        guard agreed?.lowercased() == target.subprotocol else {
                            let said = agreed.map { "agreed on \($0)" } ?? "did not agree on a subprotocol"
                            let message = "the WebSocket server \(said); the client asked for \(target.subprotocol)"
                            throw HermesClientError(.cannotConnect, message)
                        }
                        try channel.pipeline.syncOperations.addHandler(WebSocketBytes())
                        try configure(channel)
                        // Succeed later, after the HTTP handlers are gone.
                        channel.eventLoop.execute { upgraded.succeed(channel) }
                    } catch {
                        upgraded.fail(error)
                        channel.close(promise: nil)
                        throw error
                    }
                }
            }
        )
        let request = WebSocketRequest(host: host, target: target, upgraded: upgraded)
        let timer = channel.eventLoop.scheduleTask(in: timeout) {
            upgraded.fail(HermesClientError(.cannotConnect, "the server did not answer the WebSocket request in time"))
            channel.close(promise: nil)
        }
        let bound = NIOLoopBound(request, eventLoop: channel.eventLoop)
        let configuration: NIOHTTPClientUpgradeSendableConfiguration = (
            upgraders: [upgrader],
            completionHandler: { _ in
                timer.cancel()
                channel.pipeline.syncOperations.removeHandler(bound.value, promise: nil)
            }
        )
        try channel.pipeline.syncOperations.addHTTPClientHandlers(
            leftOverBytesStrategy: .forwardBytes,
            withClientUpgrade: configuration
        )
        try channel.pipeline.syncOperations.addHandler(request)
        channel.closeFuture.whenComplete { _ in
            timer.cancel()
            upgraded.fail(HermesClientError(.cannotConnect, "the server closed instead of opening a WebSocket"))
        }
    }
}

/// Sends the request for a WebSocket, and reports the server's refusal.
private final class WebSocketRequest: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let host: String
    private let target: WebSocketTarget
    private let upgraded: EventLoopPromise<any Channel>

    init(host: String, target: WebSocketTarget, upgraded: EventLoopPromise<any Channel>) {
        self.host = host
        self.target = target
        self.upgraded = upgraded
    }

    func channelActive(context: ChannelHandlerContext) {
        let headers: HTTPHeaders = ["Host": host, "Sec-WebSocket-Protocol": target.subprotocol, "Content-Length": "0"]
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: target.path, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(let head) = unwrapInboundIn(data) else { return }
        let status = "\(head.status.code) \(head.status.reasonPhrase)"
        let message =
            head.status == .switchingProtocols
            ? "the server's answer does not open a WebSocket: Sec-WebSocket-Accept is missing or wrong"
            : "no WebSocket at \(target.path): the server answered \(status); is the path right?"
        upgraded.fail(HermesClientError(.cannotConnect, message))
        context.close(promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        upgraded.fail(error)
        context.close(promise: nil)
    }
}
