// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

extension StoredPublication {
    /// For the store: with a payload of its own.
    init(_ publication: Publication, publishedAt: Timestamp) {
        self.init(
            topic: publication.topic,
            payload: publication.payload,
            qos: publication.qos,
            retain: publication.retain,
            details: publication.details,
            publishedAt: publishedAt
        )
    }
}

extension Publication {
    /// From the store.
    init(_ stored: StoredPublication) {
        self.init(
            topic: stored.topic,
            payload: stored.payload,
            kind: Publication.plainKind,
            qos: stored.qos,
            retain: stored.retain,
            details: stored.details
        )
    }
}
