// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle

/// Serves `hermes user` and `hermes backup` on a Unix socket in the data directory, to which only the owner has access.
///
/// A connection sends one line of JSON (ControlRequest) and gets one line back (ControlResponse).
struct ControlSocket: Service {
    static let fileName = "control.sock"
    /// The longest request.
    static let maxRequestBytes = 65_536

    typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>

    let administration: Administration
    let server: NIOAsyncChannel<Connection, Never>
    let path: String
    let logger: Logger

    /// Binds the socket. Removes an earlier server's socket: the store's lock shows that none is running.
    static func bind(
        directory: String,
        administration: Administration,
        group: any EventLoopGroup,
        logger: Logger
    ) async throws -> ControlSocket {
        let path = directory + "/" + fileName
        let server = try await ServerBootstrap(group: group)
            .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true) { channel in
                channel.eventLoop.makeCompletedFuture { try Connection(wrappingChannelSynchronously: channel) }
            }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        return ControlSocket(administration: administration, server: server, path: path, logger: logger)
    }

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            try await server.executeThenClose { connections in
                await withDiscardingTaskGroup { group in
                    do {
                        for try await connection in connections {
                            group.addTask { await serve(connection) }
                        }
                    } catch is CancellationError {
                        // The server stops.
                    } catch {
                        logger.warning("control socket failed", metadata: ["error": "\(error)"])
                    }
                    group.cancelAll()
                }
            }
        }
        // The socket may be missing already.
        try? FileManager.default.removeItem(atPath: path)
    }

    private func serve(_ connection: Connection) async {
        do {
            try await connection.executeThenClose { inbound, outbound in
                var line = ByteBuffer()
                for try await bytes in inbound {
                    line.writeImmutableBuffer(bytes)
                    guard line.readableBytes <= Self.maxRequestBytes else { return }
                    guard let end = line.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) else { continue }
                    let data = Data(line.readableBytesView[..<end])
                    let response: ControlResponse
                    if let request = try? JSONDecoder().decode(ControlRequest.self, from: data) {
                        response = await administration.perform(request)
                    } else {
                        response = .failed(code: 2001, message: "The request is not understood.")
                    }
                    try await outbound.write(ByteBuffer(bytes: JSONEncoder().encode(response) + [UInt8(ascii: "\n")]))
                    return
                }
            }
        } catch {
            logger.debug("control connection ended", metadata: ["error": "\(error)"])
        }
    }
}
