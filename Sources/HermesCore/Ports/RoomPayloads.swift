// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Encodes room events as payloads, and decodes these payloads.
///
/// All protocols share one form of payload, because subscribers of a topic, event streams and stores get the payload
/// itself. The form does not depend on the publisher's protocol. A payload is opaque to the core. A gateway whose
/// frames contain these payloads forwards them unchanged.
package protocol RoomPayloads: Sendable {
    /// Encodes an event as a payload.
    ///
    /// - Throws: `.internalError` if the event cannot be encoded.
    func payload(of content: RoomEvent.Content) throws(HermesError) -> ByteBuffer

    /// Decodes a payload that came from outside the server.
    ///
    /// - Returns: the content of the event; nil if the payload does not fit the kind.
    func content(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> RoomEvent.Content?

    /// Returns the number of message parts in a payload that came from outside the server. This number measures the
    /// work of decoding the payload. It is 0 for a payload of the application's own kinds.
    func partCount(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> Int
}
