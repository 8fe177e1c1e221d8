// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Writes room events as payloads of their topics, and reads them.
///
/// All protocols share one form of payload, because subscribers of a topic, event streams and stores get the payload
/// itself, whatever protocol the publisher speaks. To the core, a payload is opaque. A gateway whose frames contain
/// just these payloads passes them on unchanged.
package protocol RoomPayloads: Sendable {
    /// Returns the payload of an event.
    ///
    /// - Throws: `.internalError` if the payload cannot be written.
    func payload(of content: RoomEvent.Content) throws(HermesError) -> ByteBuffer

    /// Returns the event of a payload from outside.
    ///
    /// - Returns: nil if the payload does not fit the kind.
    func content(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> RoomEvent.Content?

    /// Returns the number of message parts in a payload from outside, which measures the work of reading it; 0 for a
    /// payload of the application's own kinds.
    func partCount(of kind: RoomEvent.Kind, in payload: ByteBuffer) -> Int
}
