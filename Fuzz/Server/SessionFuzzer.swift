// Hermes
// SPDX-License-Identifier: Apache-2.0

import FuzzSupport
import HermesCore
package import HermesGateways
package import HermesWire
import NIOCore
import NIOPosix

/// What a protocol adds to the fuzzing of whole connections.
package protocol FuzzedProtocol<Served> {
    associatedtype Served: Gateway
    associatedtype Decoder: FrameDecoder

    /// The bytes by which a connection logs in, or does what comes closest to it.
    static func opening(_ account: FuzzAccount, device: String) -> [UInt8]

    /// Whether a connection that has logged in is seen as a device of its account.
    static var isOnlineAfterOpening: Bool { get }

    /// The bytes of a sign of life, and whether a frame answers it.
    static var probe: [UInt8] { get }
    static func answersProbe(_ frame: Decoder.Frame) -> Bool

    /// Looks at what the server sent.
    static func check(_ frame: Decoder.Frame)
}

/// An account that every input finds.
package struct FuzzAccount: Sendable {
    package let uid: UInt32
    package let nickName: String
    package let token: String
    package static var password: String { "correct horse" }
}

/// Feeds inputs to whole connections of one protocol, and looks whether the server is as well as before.
///
/// There are two accounts, ann and bob (``SessionWorld``), who are contacts and in one group. The first byte of an input says
/// how ann's connection begins and ends: ``Mode``. What follows is what clients send: up to the first ``separator`` ann's, then
/// bob's, then ann's again, and so on.
package final class SessionFuzzer<Fuzzed: FuzzedProtocol> {
    /// How a connection begins and ends.
    private struct Mode: OptionSet {
        let rawValue: UInt8
        static var logsInFirst: Mode { Mode(rawValue: 1) }
        static var inPieces: Mode { Mode(rawValue: 2) }
        /// Another device of ann's listens.
        static var withListener: Mode { Mode(rawValue: 4) }
        /// The end comes while requests are under way.
        static var endsEarly: Mode { Mode(rawValue: 8) }
        /// Nothing is read, and the end is a reset.
        static var isReset: Mode { Mode(rawValue: 16) }
    }

    /// A server is replaced after so many inputs, so that what accounts gather does not fill the memory.
    private static var inputsPerServer: Int { 1_000 }

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    private var world: SessionWorld<Fuzzed.Served>
    private var inputs = 0

    package init() { world = SessionWorld(group) }

    package func run(_ input: UnsafeRawBufferPointer) {
        guard let first = input.first else { return }
        if inputs == Self.inputsPerServer { renew() }
        inputs += 1
        let mode = Mode(rawValue: first)
        let served = world.served
        let listener = mode.contains(.withListener) ? open(world.ann, device: "tablet") : nil
        var peers: [Peer] = []
        for (index, part) in input.dropFirst().parts(separatedBy: separator).enumerated() {
            if index == 0 {
                peers.append(mode.contains(.logsInFirst) ? open(world.ann, device: "phone") : served.connect())
            } else if index == 1 {
                served.settle(peers)
                peers.append(open(world.bob, device: "phone"))
            } else {
                served.settle(peers)
            }
            feed(part, to: peers[index % 2], inPieces: mode.contains(.inPieces))
        }
        if !mode.contains(.endsEarly) { served.settle(peers) }
        for (index, peer) in peers.enumerated() {
            if index == 0, mode.contains(.isReset) {
                peer.reset()
            } else {
                peer.close()
                check(peer)
            }
        }
        if let listener {
            listener.close()
            check(listener)
        }
        let probe = served.connect()
        probe.send(Fuzzed.probe)
        let answer = probe.receive(with: Fuzzed.Decoder(maxFrameBytes: 1 << 20), until: Fuzzed.answersProbe)
        invariant(answer != nil, "another client is not answered")
        probe.close()
        served.awaitQuiet()
    }

    /// A connection that has logged in. If the account cannot any more, since an input has deleted it or has changed its
    /// password, the next input gets a new server.
    private func open(_ account: FuzzAccount, device: String) -> Peer {
        let peer = world.served.connect()
        peer.send(Fuzzed.opening(account, device: device))
        peer.receive(atLeast: 1)
        guard Fuzzed.isOnlineAfterOpening, !world.isOnline(account) else { return peer }
        invariant(inputs > 1, "a new account cannot log in")
        inputs = Self.inputsPerServer
        return peer
    }

    private func feed(_ bytes: some Collection<UInt8>, to peer: Peer, inPieces: Bool) {
        guard inPieces else {
            peer.send(bytes)
            return
        }
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            guard peer.send(rest.prefix(7)) else { return }
            rest = rest.dropFirst(7)
            // The server has read it, so that the next is a piece of its own.
            world.served.turn()
        }
    }

    /// What the server sent can be read.
    private func check(_ peer: Peer) {
        var buffer = peer.received
        var decoder = Fuzzed.Decoder(maxFrameBytes: 16 << 20)
        do {
            while let frame = try decoder.next(from: &buffer) { Fuzzed.check(frame) }
        } catch {
            broken("the server sent what is no frame: \(error)")
        }
    }

    private func renew() {
        world.served.stop()
        world = SessionWorld(group)
        inputs = 0
    }
}
