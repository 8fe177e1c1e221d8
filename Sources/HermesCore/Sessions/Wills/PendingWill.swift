// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The will of a client that is connected or has gone. It is a class, so that a client without a will needs little
/// memory.
package final class PendingWill: Sendable {
    package let publication: Publication
    /// The time at which the client gave the will. The will's expiry period begins only when the will is published.
    package let givenAt: Timestamp
    /// The time between the end of the connection and the publication of the will.
    package let delay: Duration

    /// The source that pays for the will while it is retained.
    package let source: CommitSource
    /// The client that gave the will. The access rules are checked again when the will is published.
    package let identity: ClientIdentity
    /// The id of the will in the record (the content of the store that several nodes share); nil if it is not recorded.
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

    /// The key of the client's session.
    package var key: SessionKey { identity.sessionKey }

    /// Returns the same will with a new identity of its client. The new identity has other permissions.
    package func by(_ identity: ClientIdentity) -> PendingWill { with(publication, identity: identity, id: id) }

    /// Returns the same will with an id in the record.
    func recorded(as id: WillID) -> PendingWill { with(publication, identity: identity, id: id) }

    /// Returns the same will. If its topic is `user/NAME` or below it, the returned will is not retained, so that the
    /// next owner of the name finds nothing there.
    package func leavingNothing() -> PendingWill {
        guard publication.retain, belongsToName else { return self }
        return with(publication.with(retain: false, publication.details), identity: identity, id: id)
    }

    /// Whether the topic of the will is `user/NAME` or below it, where NAME is the name of its client's account.
    package var belongsToName: Bool { identity.userName.map(publication.topic.belongs) ?? false }

    /// The approximate size of the will, in bytes.
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
    /// Returns the same publication with another retain flag and other properties.
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
