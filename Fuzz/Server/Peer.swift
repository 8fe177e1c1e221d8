// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzSupport
package import HermesWire
package import NIOCore

/// The client's end of a connection: a socket that is written and read without a loop.
package final class Peer {
    private let socket: CInt
    /// All that came and was not taken by ``receive(with:until:)``.
    package private(set) var received = ByteBuffer()
    package private(set) var hasEnded = false
    private var chunk = [UInt8](repeating: 0, count: 65_536)

    /// So often the server is waited for, a second each: in steps, so that time does not count in which all of this process
    /// is stopped.
    private static let patience = 30

    #if os(Linux)
    private static let kind = CInt(SOCK_STREAM.rawValue)
    #else
    private static let kind = SOCK_STREAM
    #endif

    /// Connects to a socket in the file system.
    package init(path: String) {
        socket = Foundation.socket(AF_UNIX, Self.kind, 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        invariant(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path), "the path is too long")
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        connect(address)
    }

    /// Connects to a port of 127.0.0.1.
    package init(port: Int) {
        socket = Foundation.socket(AF_INET, Self.kind, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        connect(address)
    }

    private func connect<Address>(_ address: Address) {
        invariant(socket >= 0, "no socket")
        var address = address
        let size = socklen_t(MemoryLayout<Address>.size)
        var result: CInt
        repeat {
            result = withUnsafeMutablePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(socket, $0, size) }
            }
        } while result != 0 && errno == EINTR
        invariant(result == 0, "no connection: \(errno)")
        invariant(fcntl(socket, F_SETFL, O_NONBLOCK) == 0, "no socket that does not block")
    }

    /// Reads what is there, and waits for at least so many bytes in all.
    package func receive(atLeast count: Int) {
        while !hasEnded, received.readableBytes < count { waitFor(POLLIN, or: "the server does not answer") }
        receiveWhatIsThere()
    }

    /// Reads what is there.
    ///
    /// - Returns: whether something was.
    @discardableResult
    package func receiveWhatIsThere() -> Bool {
        let before = received.readableBytes
        while !hasEnded, isReady(POLLIN, within: 0) { read() }
        return received.readableBytes > before
    }

    /// Takes frames until one has come that is waited for.
    ///
    /// - Returns: the frame; nil if the server closes before.
    package func receive<Decoder: FrameDecoder>(
        with decoder: Decoder,
        until isAwaited: (Decoder.Frame) -> Bool
    ) -> Decoder.Frame? {
        var decoder = decoder
        while true {
            do {
                while let frame = try decoder.next(from: &received) {
                    if isAwaited(frame) { return frame }
                }
            } catch {
                broken("the server sent what is no frame: \(error)")
            }
            guard !hasEnded else { return nil }
            waitFor(POLLIN, or: "the server does not answer")
        }
    }

    /// - Returns: false if the server has closed.
    @discardableResult
    package func send(_ bytes: some Collection<UInt8>) -> Bool {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN || errno == EINTR {
                // It may wait until its own output is read.
                waitFor(POLLIN | POLLOUT, or: "the server neither reads nor writes")
                if hasEnded { return false }
            } else {
                return false
            }
        }
        return true
    }

    /// Says that nothing follows, reads to the end, and closes.
    package func close() {
        shutdown(socket, CInt(SHUT_WR))
        while !hasEnded { waitFor(POLLIN, or: "the server does not close") }
        Foundation.close(socket)
    }

    /// Closes without a look at what came.
    package func reset() {
        hasEnded = true
        Foundation.close(socket)
    }

    private func waitFor(_ events: CInt, or complaint: String) {
        for _ in 0..<Self.patience where isReady(events, within: 1_000) { return receiveWhatIsThereOnce() }
        broken(complaint)
    }

    private func receiveWhatIsThereOnce() { if isReady(POLLIN, within: 0) { read() } }

    private func isReady(_ events: CInt, within milliseconds: CInt) -> Bool {
        var entry = pollfd(fd: socket, events: Int16(events), revents: 0)
        var ready: CInt
        // libFuzzer's timer interrupts.
        repeat { ready = poll(&entry, 1, milliseconds) } while ready < 0 && errno == EINTR
        return ready > 0
    }

    private func read() {
        let count = recv(socket, &chunk, chunk.count, 0)
        if count > 0 {
            received.writeBytes(chunk.prefix(count))
        } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
            hasEnded = true
        }
    }
}
