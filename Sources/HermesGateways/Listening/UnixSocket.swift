// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOPosix

/// A listening socket in the file system, for this user and group only.
enum UnixSocket {
    private static let mode = 0o660

    /// Binds the socket. Removes an abandoned one, but not one in use.
    ///
    /// - Throws: IOError with EADDRINUSE if another process listens there, NIO's error if the path is not a socket.
    static func bind(_ bootstrap: ServerBootstrap, path: String, group: any EventLoopGroup) async throws -> any Channel
    {
        if let living = try? await ClientBootstrap(group: group).connect(unixDomainSocketPath: path).get() {
            try? await living.close().get()
            throw IOError(errnoCode: EADDRINUSE, reason: "bind")
        }
        let channel = try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        do {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        } catch {
            try? await channel.close().get()
            throw error
        }
        return channel
    }

    /// Removes the socket; it may be missing already.
    static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }
}
