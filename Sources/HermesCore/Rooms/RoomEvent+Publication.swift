// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

extension Publication {
    /// Creates the publication of an event to its room.
    ///
    /// - Throws: `.internalError` if the payload cannot be written.
    package init(_ event: RoomEvent, payloads: any RoomPayloads) throws(HermesError) {
        self.init(
            event.content.kind,
            try payloads.payload(of: event.content),
            to: event.room.topic,
            sender: event.sender,
            details: event.place.map { PublicationDetails(userProperties: PublicationDetails.properties(of: $0)) }
        )
    }

    /// Creates the publication of an event whose payload already exists.
    ///
    /// - Parameter payload: the payload, in the form of the server's ``RoomPayloads``.
    package init(
        _ kind: RoomEvent.Kind,
        _ payload: ByteBuffer,
        to topic: TopicName,
        sender: UserID?,
        details: PublicationDetails? = nil
    ) {
        self.init(
            topic: topic,
            payload: payload,
            kind: .room(kind),
            dropClass: kind.dropClass,
            sender: sender,
            details: details
        )
    }
}

extension RoomEvent {
    /// The name under which a room shows a plain text whose publisher gives no name.
    private static let nameless = "MQTT"
    /// The user property that gives the name under which a room shows a plain text.
    private static let nameProperty = "name"

    /// Reads the event in a publication to a room. A plain publication is a text; its publisher may give a name in a
    /// user property.
    ///
    /// - Returns: nil if the topic does not belong to a room, or if the payload cannot be read.
    package init?(_ publication: Publication, payloads: any RoomPayloads) {
        guard let room = publication.topic.room else { return nil }
        let content: Content
        var place: TopicNumbers.Place?
        switch publication.kind {
        case .plain:
            let bytes = publication.payload.readableBytesView
            guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
            let name = publication.details?.userProperties.first {
                $0.name == Self.nameProperty && $0.value.utf8.count <= RoomLimits.maxNameBytes
            }?.value
            content = .said(RoomMember(name: name ?? Self.nameless), text)
        case .room(let kind):
            guard let read = payloads.content(of: kind, in: publication.payload) else { return nil }
            content = read
            if kind == .noticed { place = publication.details?.place }
        }
        self.init(content, in: room, sender: publication.sender, place: place)
    }
}
