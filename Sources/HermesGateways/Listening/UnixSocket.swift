// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOPosix

/// A listening socket in the file system, for this user and group alone.
enum UnixSocket {
    private static let mode = 0o660

    /// Binds the socket. One that was left behind is removed, one that is in use is not.
    ///
    /// - Throws: IOError with EADDRINUSE if somebody listens there, NIO's error if the path is no socket.
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

    /// Missing already if somebody tidied up; then there is nothing to do.
    static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }
}
