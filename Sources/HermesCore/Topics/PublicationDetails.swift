// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Rare attributes of publications: the MQTT 5 properties that are forwarded unchanged.
///
/// They are separate from ``Publication``, so that a publication without them needs only one machine word for them.
package final class PublicationDetails: Sendable, Hashable {
    /// The time after which the publication is not delivered; nil if it does not expire.
    package let expiresAt: Timestamp?
    /// Whether the publisher declares that the payload is UTF-8 text.
    package let payloadIsUTF8: Bool
    package let contentType: String?
    /// The topic for a response.
    package let responseTopic: String?
    package let correlationData: ByteBuffer?
    /// The user properties, in the publisher's order [MQTT-3.3.2-18].
    package let userProperties: [(name: String, value: String)]

    package init(
        expiresAt: Timestamp? = nil,
        payloadIsUTF8: Bool = false,
        contentType: String? = nil,
        responseTopic: String? = nil,
        correlationData: ByteBuffer? = nil,
        userProperties: [(name: String, value: String)] = []
    ) {
        self.expiresAt = expiresAt
        self.payloadIsUTF8 = payloadIsUTF8
        self.contentType = contentType
        self.responseTopic = responseTopic
        self.correlationData = correlationData
        self.userProperties = userProperties
    }

    /// Whether the publication has expired.
    package func hasExpired(at now: Timestamp) -> Bool {
        guard let expiresAt else { return false }
        return expiresAt <= now
    }

    package static func == (left: PublicationDetails, right: PublicationDetails) -> Bool {
        left === right
            || left.expiresAt == right.expiresAt && left.payloadIsUTF8 == right.payloadIsUTF8
                && left.contentType == right.contentType && left.responseTopic == right.responseTopic
                && left.correlationData == right.correlationData
                && left.userProperties.elementsEqual(right.userProperties, by: ==)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(expiresAt)
        hasher.combine(contentType)
        hasher.combine(responseTopic)
        hasher.combine(correlationData)
        hasher.combine(userProperties.count)
    }

    /// The size of the details for the limits of queues, in bytes.
    package var weight: Int {
        userProperties.reduce(
            64 &+ (contentType?.utf8.count ?? 0) &+ (responseTopic?.utf8.count ?? 0)
                &+ (correlationData?.readableBytes ?? 0)
        ) { $0 &+ $1.name.utf8.count &+ $1.value.utf8.count &+ 32 }
    }
}
