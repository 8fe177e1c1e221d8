// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// What few publications have: the properties of MQTT 5 that are passed on as they are.
///
/// Apart from ``Publication``, so that those without cost one word.
package final class PublicationDetails: Sendable, Hashable {
    /// When it need not be delivered any more; nil for never.
    package let expiresAt: Timestamp?
    /// The publisher says that the payload is text.
    package let payloadIsUTF8: Bool
    package let contentType: String?
    /// Where an answer is expected.
    package let responseTopic: String?
    package let correlationData: ByteBuffer?
    /// In the publisher's order [MQTT-3.3.2-18].
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

    /// What it counts for where publications wait, in bytes.
    package var weight: Int {
        userProperties.reduce(
            64 &+ (contentType?.utf8.count ?? 0) &+ (responseTopic?.utf8.count ?? 0)
                &+ (correlationData?.readableBytes ?? 0)
        ) { $0 &+ $1.name.utf8.count &+ $1.value.utf8.count &+ 32 }
    }
}
