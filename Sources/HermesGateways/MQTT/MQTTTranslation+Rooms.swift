// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Requirements for publications to rooms. They exist because clients of other protocols also get these publications.
extension MQTTTranslation {
    /// Returns a publication's kind. If a message to a room declares a kind of event, that kind is returned; otherwise
    /// the kind is plain.
    ///
    /// The properties are forwarded unchanged [MQTT-3.3.2-17]. So a second declaration, or a declaration that only
    /// the server may make, is refused. If it were forwarded, a subscriber that reads it could mistake the publication
    /// for an event from the server.
    ///
    /// - Parameter counted: called with the number of the payload's parts (``MessageParts``) before the payload is
    ///   parsed. It is called only if the payload has to fit its kind.
    /// - Returns: nil if clients may not send the declared type, or if the payload does not fit the kind.
    static func kind(of publication: Publication, counted: (Int) -> Void = { _ in }) -> Publication.Kind? {
        guard publication.topic.rawValue.hasBytes(startingWith: TopicName.roomPrefix),
            let properties = publication.details?.userProperties, !properties.isEmpty
        else { return .plain }
        let types = properties.filter { $0.name == roomTypeName || $0.name == applicationTypeName }
        guard let declared = types.first else { return .plain }
        guard types.count == 1, declared.name == roomTypeName,
            let kind = UInt16(declared.value).flatMap(RoomEvent.Kind.init(number:)), !kind.isServers,
            declared.value == "\(kind.number)"
        else { return nil }
        let payloads = GatewayCatalog.roomPayloads
        counted(payloads.partCount(of: kind, in: publication.payload))
        return payloads.content(of: kind, in: publication.payload) == nil ? nil : .room(kind)
    }
}
