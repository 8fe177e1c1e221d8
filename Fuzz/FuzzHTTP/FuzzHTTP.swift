// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import FuzzServer
import FuzzSupport
import NIOCore

/// The entry that libFuzzer calls.
///
/// The first byte says how a connection to the HTTP port is used: bit 0, in pieces of seven bytes; bit 1, the end comes while
/// requests are under way; bit 2, nothing is read, and the end is a reset. The rest is what a client says, with byte 1 for the
/// key of the API; after a ``separator`` it goes on when the server has answered.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHTTP(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: start, count: count)
    guard let mode = input.first else { return 0 }
    let port = ServedPort.shared
    let peer = port.connect()
    for part in input.dropFirst().parts(separatedBy: separator) {
        guard feed(port.withKey(part), to: peer, inPieces: mode & 1 != 0) else { break }
        if mode & 2 == 0 { port.settle(peer) }
    }
    if mode & 4 != 0 {
        peer.reset()
    } else {
        peer.close()
        check(Array(peer.received.readableBytesView))
    }
    port.check()
    return 0
}

private func feed(_ bytes: [UInt8], to peer: Peer, inPieces: Bool) -> Bool {
    guard inPieces else { return peer.send(bytes) }
    var rest = bytes[...]
    while !rest.isEmpty {
        guard peer.send(rest.prefix(7)) else { return false }
        rest = rest.dropFirst(7)
        // So that it is read on its own.
        usleep(20)
    }
    return true
}

/// Whatever the server says begins as an answer of HTTP does.
private func check(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    invariant(bytes.starts(with: "HTTP/1.1 ".utf8), "the server sent what is no answer: \(bytes.prefix(64))")
}
