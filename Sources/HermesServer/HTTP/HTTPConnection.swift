// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOSSL
import Synchronization

/// Connections of the HTTP port: the first request decides whether one becomes a WebSocket, or is answered as HTTP/1.1.
struct HTTPConnection: HTTPChannelHandler {
    /// What a connection became.
    enum Outcome: Sendable {
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        /// A gateway has it.
        case webSocket
    }

    /// A connection whose first request is awaited.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let outcome: EventLoopFuture<Outcome>
    }

    let responder: Responder
    let upgrader: WebSocketUpgrader
    let limit: HTTPConnectionLimit
    let idleTimeout: TimeAmount
    /// Nil: not encrypted.
    let tls: TLSContextBox?

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            guard limit.opened() else { throw HTTPConnectionLimit.Reached() }
            let counted = HTTPConnectionLimit.Place(limit)
            channel.closeFuture.whenComplete { _ in counted.giveBack() }
            if let tls {
                try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls.current()))
            }
            var configuration = NIOUpgradableHTTPServerPipelineConfiguration(
                upgradeConfiguration: NIOTypedHTTPServerUpgradeConfiguration<Outcome>(
                    upgraders: [upgrader],
                    notUpgradingCompletionHandler: { channel in
                        channel.eventLoop.makeCompletedFuture { .http(try serve(channel, logger)) }
                    }
                )
            )
            configuration.enablePipelining = false
            configuration.enableErrorHandling = false
            configuration.enableResponseHeaderValidation = false
            let outcome = try channel.pipeline.syncOperations
                .configureUpgradableHTTPServerPipeline(configuration: configuration)
            let waiting = FirstRequestHandler(upgrader: upgrader, patience: idleTimeout)
            let decision = try channel.pipeline.syncOperations.handler(
                type: NIOTypedHTTPServerUpgradeHandler<Outcome>.self
            )
            try channel.pipeline.syncOperations.addHandler(waiting, position: .before(decision))
            let removal = NIOLoopBound(waiting, eventLoop: channel.eventLoop)
            outcome.whenComplete { result in
                channel.pipeline.syncOperations.removeHandler(removal.value, promise: nil)
                if case .success(.webSocket) = result { counted.giveBack() }
            }
            return Value(channel: channel, outcome: outcome)
        }
    }

    private func serve(
        _ channel: any Channel,
        _ logger: Logger
    ) throws -> NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart> {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: tls != nil))
        try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: Duration(idleTimeout), logger: logger))
        return try NIOAsyncChannel(
            wrappingChannelSynchronously: channel,
            configuration: .init(isOutboundHalfClosureEnabled: true)
        )
    }

    func handle(value: Value, logger: Logger) async {
        let outcome = await withTaskCancellationHandler {
            try? await value.outcome.get()
        } onCancel: {
            value.channel.close(promise: nil)
        }
        switch outcome {
        case .http(let channel): await handleHTTP(asyncChannel: channel, logger: logger)
        case .webSocket: break
        case nil: value.channel.close(promise: nil)
        }
    }
}

/// Stands before the handshake until the first request has decided: closes a connection where that does not come in time,
/// or not before the server stops.
///
/// NIO's handler loses the head of a request that asks for an upgrade and gets none, so a request that cannot become a
/// WebSocket is passed on as one that does not ask.
///
/// State: confined to the channel's event loop.
private final class FirstRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let upgrader: WebSocketUpgrader
    private let patience: TimeAmount
    private var deadline: Scheduled<Void>?
    /// What comes behind the first head may be of any type.
    private var hasSeenHead = false

    init(upgrader: WebSocketUpgrader, patience: TimeAmount) {
        self.upgrader = upgrader
        self.patience = patience
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasSeenHead else { return context.fireChannelRead(data) }
        hasSeenHead = true
        guard case .head(var head) = unwrapInboundIn(data), !upgrader.takes(head) else {
            return context.fireChannelRead(data)
        }
        head.headers.remove(name: "upgrade")
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent { return context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }
}

@available(*, unavailable)
extension FirstRequestHandler: Sendable {}

/// How many connections may be HTTP at a time; one that became a WebSocket counts with its gateway.
///
/// State: one atomic number.
final class HTTPConnectionLimit: Sendable {
    struct Reached: Error {}

    private let most: Int
    private let count = Atomic<Int>(0)

    init(_ most: Int) { self.most = most }

    /// - Returns: false if there are enough.
    func opened() -> Bool {
        if count.add(1, ordering: .relaxed).newValue <= most { return true }
        count.subtract(1, ordering: .relaxed)
        return false
    }

    /// One connection's place, given back once.
    final class Place: Sendable {
        private let limit: HTTPConnectionLimit
        private let isTaken = Atomic(true)

        init(_ limit: HTTPConnectionLimit) { self.limit = limit }

        func giveBack() {
            guard isTaken.exchange(false, ordering: .relaxed) else { return }
            limit.count.subtract(1, ordering: .relaxed)
        }
    }
}
