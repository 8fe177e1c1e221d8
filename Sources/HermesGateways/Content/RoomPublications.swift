// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// Room events and their publications, with the payloads that all gateways share (``GatewayCatalog/roomPayloads``).
extension Publication {
    /// The publication of an event to its room.
    ///
    /// - Throws: `.internalError` if the payload cannot be written.
    package init(_ event: RoomEvent) throws(HermesError) {
        try self.init(event, payloads: GatewayCatalog.roomPayloads)
    }
}

extension RoomEvent {
    /// Reads the event in a publication to a room; nil if the topic is no room's, or the payload cannot be read.
    package init?(_ publication: Publication) {
        self.init(publication, payloads: GatewayCatalog.roomPayloads)
    }
}
