// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The will of a connected client, or of one that is gone. A class, so that the many clients without one need no room
/// for it.
package final class PendingWill: Sendable {
    package let publication: Publication
    /// When the client gave it: its expiry counts only from its publication.
    package let givenAt: Timestamp
    /// The delay after the end of the connection.
    package let delay: Duration

    /// The source that pays for the retained copy that it leaves.
    package let source: CommitSource
    /// The client that gave it: the rules are asked again when it is published.
    package let identity: ClientIdentity
    /// The will's place in the record of several nodes; nil: it has none.
    package let id: WillID?

    package init(
        publication: Publication,
        givenAt: Timestamp,
        delay: Duration,
        source: CommitSource,
        identity: ClientIdentity,
        id: WillID? = nil
    ) {
        self.source = source
        self.identity = identity
        self.publication = publication
        self.givenAt = givenAt
        self.delay = delay
        self.id = id
    }

    /// The same of a client with other permissions.
    package func by(_ identity: ClientIdentity) -> PendingWill { with(publication, identity: identity, id: id) }

    /// The same with a place in the record.
    func recorded(as id: WillID) -> PendingWill { with(publication, identity: identity, id: id) }

    /// The same, but not retained for `user/NAME` or below it: the next owner of the name finds nothing there.
    package func leavingNothing() -> PendingWill {
        guard publication.retain, belongsToName else { return self }
        return with(publication.with(retain: false, publication.details), identity: identity, id: id)
    }

    /// Whether the will is for `user/NAME` or below it, where NAME is that of its client's account.
    package var belongsToName: Bool { identity.userName.map(publication.topic.belongs) ?? false }

    /// Its approximate bytes.
    package var weight: Int { publication.weight + publication.topic.rawValue.utf8.count + 512 }

    private func with(_ publication: Publication, identity: ClientIdentity, id: WillID?) -> PendingWill {
        PendingWill(
            publication: publication,
            givenAt: givenAt,
            delay: delay,
            source: source,
            identity: identity,
            id: id
        )
    }
}

extension Publication {
    /// The same with another retain flag and other properties.
    package func with(retain: Bool, _ details: PublicationDetails?) -> Publication {
        Publication(
            topic: topic,
            payload: payload,
            kind: kind,
            dropClass: dropClass,
            sender: sender,
            qos: qos,
            retain: retain,
            details: details
        )
    }
}
