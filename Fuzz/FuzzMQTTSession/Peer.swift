// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzSupport
import HermesWire
import NIOCore

/// The client's end of a connection: a socket without an event loop.
final class Peer {
    private let socket: CInt
    /// The received bytes that ``receive(until:)`` has not taken.
    private(set) var received = ByteBuffer()
    private var hasEnded = false
    private var chunk = [UInt8](repeating: 0, count: 65_536)

    /// - Parameter accept: takes the server's end.
    init(_ accept: (CInt) -> Void) {
        var ends: [CInt] = [-1, -1]
        #if os(Linux)
        let kind = CInt(SOCK_STREAM.rawValue)
        #else
        let kind = SOCK_STREAM
        #endif
        invariant(socketpair(AF_UNIX, kind, 0, &ends) == 0, "no sockets")
        socket = ends[0]
        invariant(fcntl(socket, F_SETFL, O_NONBLOCK) == 0, "no socket that does not block")
        accept(ends[1])
    }

    /// Reads the available bytes, and waits for at least so many in all.
    func receive(atLeast count: Int) {
        while !hasEnded {
            guard received.readableBytes < count || isReady(POLLIN, within: 0) else { return }
            guard isReady(POLLIN, within: 5_000) else { broken("the server does not answer") }
            read()
        }
    }

    /// Takes packets until one of a type arrives.
    ///
    /// - Returns: false if the server closes.
    func receive(until type: MQTTPacketType) -> Bool {
        var decoder = MQTTFrameDecoder()
        while true {
            do {
                while let frame = try decoder.next(from: &received) {
                    invariant(
                        (try? MQTTPacket(frame, version: .v5)) != nil,
                        "what another client sent makes a packet that cannot be read: \(frame.header) \(frame.body)"
                    )
                    if frame.type == type { return true }
                }
            } catch {
                broken("the server sent what is no packet: \(error)")
            }
            guard !hasEnded else { return false }
            guard isReady(POLLIN, within: 5_000) else { broken("the server does not answer") }
            read()
        }
    }

    func send(packet: MQTTPacket, version: MQTTVersion) {
        var bytes = ByteBuffer()
        do { try packet.write(into: &bytes, version: version) } catch { broken("\(error)") }
        send(Array(bytes.readableBytesView))
    }

    /// - Returns: false if the server has closed.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN || errno == EINTR {
                // The server may wait until its own output is read.
                guard isReady(POLLIN | POLLOUT, within: 5_000) else { broken("the server neither reads nor writes") }
                if isReady(POLLIN, within: 0) { read() }
            } else {
                return false
            }
        }
        return true
    }

    /// Shuts down the output, reads to the end, and closes.
    func close() {
        shutdown(socket, CInt(SHUT_WR))
        while !hasEnded {
            guard isReady(POLLIN, within: 5_000) else { broken("the server does not close") }
            read()
        }
        Foundation.close(socket)
    }

    private func isReady(_ events: CInt, within milliseconds: CInt) -> Bool {
        var entry = pollfd(fd: socket, events: Int16(events), revents: 0)
        var ready: CInt
        // libFuzzer's timer interrupts system calls.
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
