// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization

/// Serves commands such as `hermes user` and `hermes backup` on a Unix socket in the data directory. Only the owner has
/// access to the socket.
///
/// A connection sends one line of JSON (ControlRequest) and gets one line back (ControlResponse).
struct ControlSocket: Service {
    static let fileName = "control.sock"

    /// Returns the path of the socket in a data directory.
    static func path(in directory: String) -> String { directory + "/" + fileName }

    let administration: Administration
    let server: any Channel
    let connections: ControlConnections
    let path: String
    let logger: Logger

    /// Binds the socket, and replaces the socket of an earlier server. This is safe, because the store's lock shows
    /// that no other server is running.
    ///
    /// - Throws: ``Untrusted`` if the directory belongs to somebody who could replace the socket.
    static func bind(
        directory: String,
        administration: Administration,
        group: any EventLoopGroup,
        logger: Logger
    ) async throws -> ControlSocket {
        guard let owner = UnixSocket.owner(of: directory), UnixSocket.isTrusted(owner: owner) else {
            throw Untrusted(directory: directory)
        }
        let path = path(in: directory)
        let connections = ControlConnections()
        let bootstrap = ServerBootstrap(group: group)
            .pausingWithoutDescriptors(logger)
            .childChannelInitializer { channel in
                connections.add(channel)
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ControlHandler(connections))
                }
            }
        let server = try await UnixSocket.bind(bootstrap, path: path, mode: 0o600)
        return ControlSocket(
            administration: administration,
            server: server,
            connections: connections,
            path: path,
            logger: logger
        )
    }

    /// The directory belongs to another user.
    struct Untrusted: Error, CustomStringConvertible {
        let directory: String

        var description: String {
            "\(directory) belongs to another user, who could replace the socket; change its owner to the server's user"
        }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for await line in connections.lines {
                    group.addTask { await answer(line) }
                }
                // The server stops. Unread answers are dropped.
                connections.closeAll()
                group.cancelAll()
            }
        }
        try? await server.close().get()
        // The socket may be missing already.
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Performs a request. If the command ends before its backup is complete, the backup is cancelled, because nobody
    /// would use it.
    private func perform(_ request: ControlRequest, for channel: any Channel) async -> ControlResponse {
        guard case .backup = request else { return await administration.perform(request) }
        // The task is unstructured, so that the end of the connection can cancel it. It is awaited below.
        let work = Task { [administration] in await administration.perform(request) }
        channel.closeFuture.whenComplete { _ in work.cancel() }
        return await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
    }

    private func answer(_ line: ControlConnections.Line) async {
        let response: ControlResponse
        if let request = try? JSONDecoder().decode(ControlRequest.self, from: line.bytes) {
            response = await perform(request, for: line.channel)
        } else {
            response = .failed(code: 2001, message: "The request is not understood.")
        }
        do {
            let bytes = try ByteBuffer(bytes: JSONEncoder().encode(response) + [UInt8(ascii: "\n")])
            try await line.channel.writeAndFlush(bytes).get()
        } catch {
            logger.debug("control connection ended", metadata: ["error": "\(error)"])
        }
        line.channel.close(promise: nil)
    }
}

/// The open connections of the control socket, and their requests. A stopping server drops both.
///
/// State: one `Mutex`; nothing is called under it.
final class ControlConnections: Sendable {
    /// A request, and the channel for its answer.
    struct Line: Sendable {
        let channel: any Channel
        let bytes: Data
    }

    /// The requests. The stream ends when the iterating task is cancelled.
    let lines: AsyncStream<Line>
    private let received: AsyncStream<Line>.Continuation
    private let state = Mutex(State())

    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var isOver = false
    }

    init() { (lines, received) = AsyncStream.makeStream() }

    func add(_ channel: any Channel) {
        let id = ObjectIdentifier(channel)
        let isOver = state.withLock { state in
            if !state.isOver { state.channels[id] = channel }
            return state.isOver
        }
        if isOver { return channel.close(promise: nil) }
        channel.closeFuture.whenComplete { [self] _ in state.withLock { $0.channels[id] = nil } }
    }

    func lineReceived(_ line: Line) { received.yield(line) }

    /// Closes all connections, and every connection that is added later.
    func closeAll() {
        let open = state.withLock { state in
            state.isOver = true
            return Array(state.channels.values)
        }
        for channel in open { channel.close(promise: nil) }
    }
}

/// Reads one line.
///
/// State: confined to the channel's event loop.
private final class ControlHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    /// The largest size of a request, in bytes.
    private static let maxRequestBytes = 65_536
    /// The time within which the request must arrive.
    private static let patience = TimeAmount.seconds(30)

    private let connections: ControlConnections
    private var line = ByteBuffer()
    private var isWhole = false
    private var deadline: Scheduled<Void>?

    init(_ connections: ControlConnections) { self.connections = connections }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: Self.patience) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isWhole else { return }
        line.writeImmutableBuffer(unwrapInboundIn(data))
        guard line.readableBytes <= Self.maxRequestBytes else { return context.close(promise: nil) }
        guard let end = line.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else { return }
        isWhole = true
        deadline?.cancel()
        let bytes = Data(line.readableBytesView[..<end])
        line = ByteBuffer()
        connections.lineReceived(.init(channel: context.channel, bytes: bytes))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

@available(*, unavailable)
extension ControlHandler: Sendable {}
