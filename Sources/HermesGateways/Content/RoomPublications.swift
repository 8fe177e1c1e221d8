// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire

/// Converts between room events and publications, with the payloads that all gateways share
/// (``GatewayCatalog/roomPayloads``).
extension Publication {
    /// Creates the publication of an event to its room.
    ///
    /// - Throws: `.internalError` if the payload cannot be written.
    package init(_ event: RoomEvent) throws(HermesError) {
        try self.init(event, payloads: GatewayCatalog.roomPayloads)
    }
}

extension RoomEvent {
    /// Reads the event in a publication to a room; nil if the topic is not a room's topic, or if the payload cannot
    /// be read. A plain payload cannot be read as text if it contains too many combining marks in a row
    /// (``StreamSafeText``).
    package init?(_ publication: Publication) {
        if publication.kind == .plain, !StreamSafeText.isSafe(publication.payload) { return nil }
        self.init(publication, payloads: GatewayCatalog.roomPayloads)
    }
}
