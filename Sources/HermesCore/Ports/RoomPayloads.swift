// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Writes room events as payloads of their topics, and reads them.
///
/// There is one form of payloads for all, because subscribers of a topic, event streams and stores get the payload
/// itself, whatever protocol the publisher speaks. To the core it is opaque. A gateway whose frames contain just these
/// payloads passes them on unchanged.
package protocol RoomPayloads: Sendable {
    /// The payload of an event.
    ///
    /// - Throws: `.internalError` if it cannot be written.
    func payload(of content: RoomEvent.Content) throws(HermesError) -> ByteBuffer

    /// The event of a payload from outside.
    ///
    /// - Returns: nil if the payload does not fit the kind.
    func content(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> RoomEvent.Content?

    /// The work of reading a payload from outside, in the parts of its message; 0 for an application's own.
    func partCount(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> Int
}
