// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
package import NIOCore
package import NIOPosix

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A listening socket in the file system. Its access mode is set before anybody can connect.
package enum UnixSocket {
    /// The mode of a listener's socket: only the owner and the group of the file may connect.
    static let groupMode: mode_t = 0o660
    /// The number of connections that may wait to be accepted, as on other listeners.
    static let backlog: CInt = 1_024

    /// Binds a listener's socket. Removes an abandoned socket at the path, but not a socket that is in use.
    ///
    /// - Throws: IOError with EADDRINUSE if another process listens there, or if the path is not a socket.
    static func bind(_ bootstrap: ServerBootstrap, path: String, group: any EventLoopGroup) async throws -> any Channel
    {
        if let living = try? await ClientBootstrap(group: group).connect(unixDomainSocketPath: path).get() {
            try? await living.close().get()
            throw IOError(errnoCode: EADDRINUSE, reason: "bind")
        }
        return try await bind(bootstrap, path: path, mode: groupMode)
    }

    /// Binds a socket. The new socket replaces an earlier socket at the path. The caller must remove the new socket
    /// when it is no longer needed.
    ///
    /// - Parameter mode: the mode of the file.
    /// - Throws: IOError with EADDRINUSE if the path is not a socket.
    package static func bind(
        _ bootstrap: ServerBootstrap,
        path: String,
        mode: mode_t
    ) async throws -> any Channel {
        let socket = try bound(path, mode: mode)
        let channel = try await bootstrap.withBoundSocket(socket).get()
        // NIO listens with a backlog of 128. This second call changes the backlog.
        _ = listen(socket, backlog)
        return channel
    }

    /// Creates a socket with its path and its mode. The socket does not listen yet. Until it listens, the system
    /// refuses every connection.
    static func bound(_ path: String, mode: mode_t) throws -> CInt {
        let address = try SocketAddress(unixDomainSocketPath: path)
        removeSocket(path)
        #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
        do {
            guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { throw IOError(errnoCode: errno, reason: "fcntl") }
            try address.withSockAddr { address, size in
                guard systemBind(descriptor, address, socklen_t(size)) == 0 else {
                    throw IOError(errnoCode: errno, reason: "bind")
                }
            }
            // If a symbolic link has taken the socket's place, the mode of the link's target is not changed.
            guard fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == 0 else {
                let error = IOError(errnoCode: errno, reason: "chmod")
                removeSocket(path)
                throw error
            }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Whether a socket in a directory is safe from the directory's owner. It is safe if the owner is the server's user
    /// or root. A server that runs as root trusts every owner, because the directory may belong to the operator, as in
    /// containers.
    ///
    /// - Parameters:
    ///   - owner: the directory's owner.
    ///   - user: the server's user.
    package static func isTrusted(owner: uid_t, by user: uid_t = geteuid()) -> Bool {
        owner == user || owner == 0 || user == 0
    }

    /// Returns the owner of a directory; nil if it cannot be read.
    package static func owner(of directory: String) -> uid_t? {
        var status = stat()
        return stat(directory, &status) == 0 ? status.st_uid : nil
    }

    private static func removeSocket(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        unlink(path)
    }

    private static func systemBind(_ descriptor: CInt, _ address: UnsafePointer<sockaddr>, _ size: socklen_t) -> CInt {
        #if canImport(Glibc)
        Glibc.bind(descriptor, address, size)
        #elseif canImport(Musl)
        Musl.bind(descriptor, address, size)
        #else
        Darwin.bind(descriptor, address, size)
        #endif
    }

    /// Removes the socket. It may already be missing.
    static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }
}
