// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire

/// The server's side of one connection of one protocol. It is used only on the connection's event loop, so it needs
/// no locks. It starts tasks only for slow requests (``Connection/hold()``).
///
/// This object keeps its ``Connection`` as a `let` and writes to it. The connection releases this object after the
/// connection is closed.
package protocol GatewayConnection: AnyObject, ConnectionEvents {
    /// Decodes input into frames.
    associatedtype Decoder: FrameDecoder

    /// Whether a connection must call ``Connection/authenticated()`` within the time limit.
    static var requiresAuthentication: Bool { get }
    /// Whether each frame counts as a sign of life of the peer. If false, this object calls ``Connection/touch()`` for
    /// the frames that count.
    static var everyFrameIsLife: Bool { get }
    /// Whether ``ConnectionLimits/requestsPerSecond`` applies; false where the protocol's flow control and the
    /// subscribers' pace slow a peer down.
    static var hasRequestLimit: Bool { get }
    /// Whether reading pauses while the peer does not read; true for protocols whose requests have answers.
    static var pausesReadingWhenStuck: Bool { get }

    /// The longest body of a frame before the login, in bytes; ``ConnectionLimits/maxLoginFrameBytes`` may set a lower
    /// limit. The limit is no larger than a login may need, because these bytes are not charged to any account yet.
    static var maxLoginFrameBytes: Int { get }

    /// Creates a decoder of the connection's input.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted.
    func makeDecoder(maxFrameBytes: Int) -> Decoder

    /// Handles a frame. Bodies are slices of the read buffer, so an implementation must copy what it keeps.
    func received(_ frame: Decoder.Frame)

    /// Handles a frame that arrived before the peer closed its side, and that has not been examined yet. The frame
    /// now matters only for how the connection ended.
    func receivedLast(_ frame: Decoder.Frame)

    /// Whether the peer still has to confirm something that was sent to it. If so, the next bytes from it are most
    /// likely a confirmation.
    var awaitsConfirmation: Bool { get }
}

extension GatewayConnection {
    package var awaitsConfirmation: Bool { false }

    package func makeDecoder(maxFrameBytes: Int) -> Decoder { Decoder(maxFrameBytes: maxFrameBytes) }

    package func receivedLast(_ frame: Decoder.Frame) {}

    package static var requiresAuthentication: Bool { true }
    package static var everyFrameIsLife: Bool { true }
    package static var hasRequestLimit: Bool { true }
    package static var pausesReadingWhenStuck: Bool { true }
    /// The default is more than a JSON Web Token needs.
    package static var maxLoginFrameBytes: Int { 16_384 }
}
