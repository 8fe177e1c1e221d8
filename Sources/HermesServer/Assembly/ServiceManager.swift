// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Logging
import NIOCore
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The service manager that has started the server, such as systemd. It waits for messages about the server's state
/// (sd_notify(3)).
///
/// The environment variable `NOTIFY_SOCKET` names the manager's datagram socket. Without this variable there is no
/// object of this type, and the server sends nothing. A message that cannot be sent never stops the server; the first
/// such failure is logged.
///
/// State: one atomic flag. Each message uses a new socket, because there are few messages.
final class ServiceManager: Sendable {
    /// The environment variable with the address of the socket.
    static let variable = "NOTIFY_SOCKET"

    /// The time by which each message about the start extends systemd's limit for the start. systemd ends the server
    /// if this time passes without another such message.
    static let startExtension = Duration.seconds(120)

    /// The number of attempts to send a message while the queue of the manager's socket is full, and the pause between
    /// two attempts.
    private static let attempts = 20
    private static let pauseMicroseconds: UInt32 = 50_000

    /// The path of the socket. If it begins with "@", the rest is a name in Linux's abstract namespace.
    private let path: String
    private let logger: Logger
    private let hasFailed = Atomic(false)

    /// - Parameter environment: the environment of the process. The result is nil if it names no socket.
    init?(environment: [String: String], logger: Logger) {
        guard let path = environment[Self.variable], !path.isEmpty else { return nil }
        self.path = path
        self.logger = logger
    }

    /// The server is starting, and is not stuck.
    ///
    /// - Parameter status: the present step, for people; nil if the step has not changed.
    func starting(_ status: String?) {
        let microseconds = Self.startExtension.components.seconds * 1_000_000
        send((status.map { ["STATUS=\($0)"] } ?? []) + ["EXTEND_TIMEOUT_USEC=\(microseconds)"])
    }

    /// All listeners are open, or the files were read again.
    func ready() { send(["READY=1", "STATUS=ready"]) }

    /// The server begins to read its files again. ``ready()`` follows.
    func reloading() {
        // NIO's clock is CLOCK_MONOTONIC, which systemd expects.
        let microseconds = NIODeadline.now().uptimeNanoseconds / 1_000
        send(["RELOADING=1", "MONOTONIC_USEC=\(microseconds)", "STATUS=reading certificates, rules and keys again"])
    }

    /// The server was told to stop, and drains its clients.
    func stopping() { send(["STOPPING=1", "STATUS=draining"]) }

    /// Sends one message.
    private func send(_ lines: [String]) {
        guard let problem = failure(sending: lines.joined(separator: "\n")) else { return }
        guard !hasFailed.exchange(true, ordering: .relaxed) else { return }
        logger.warning(
            "the service manager cannot be told of the server's state",
            metadata: ["socket": "\(path)", "error": "\(problem)"]
        )
    }

    /// Sends one datagram.
    ///
    /// - Returns: the reason why it was not sent; nil if it was sent.
    private func failure(sending text: String) -> String? {
        guard path.hasPrefix("/") || path.hasPrefix("@") else { return "\(Self.variable) names no Unix socket" }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The first byte of an abstract name is 0.
        let isAbstract = path.hasPrefix("@")
        let bytes: [UInt8] = isAbstract ? [0] + Array(path.utf8.dropFirst()) : Array(path.utf8)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard bytes.count < room else { return "the path is longer than \(room - 1) bytes" }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        // Every byte of an abstract name counts, so the length includes no zero byte at the end.
        let size = MemoryLayout<sockaddr_un>.size - room + bytes.count + (isAbstract ? 0 : 1)
        #if canImport(Glibc)
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        #else
        let descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
        #endif
        guard descriptor >= 0 else { return Self.reason(errno) }
        defer { close(descriptor) }
        let message = Array(text.utf8)
        for attempt in 1...Self.attempts {
            let sent = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { target in
                    sendto(descriptor, message, message.count, Int32(MSG_DONTWAIT), target, socklen_t(size))
                }
            }
            if sent == message.count { return nil }
            let code = errno
            guard code == EAGAIN || code == ENOBUFS || code == EINTR, attempt < Self.attempts else {
                return Self.reason(code)
            }
            usleep(Self.pauseMicroseconds)
        }
        return Self.reason(EAGAIN)
    }

    private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }
}
