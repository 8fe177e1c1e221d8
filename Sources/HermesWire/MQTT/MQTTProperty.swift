// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// One property of MQTT 5.0 (2.2.2.2).
package enum MQTTProperty: Hashable, Sendable {
    case payloadFormatIndicator(Bool)
    /// The value in seconds.
    case messageExpiryInterval(UInt32)
    case contentType(String)
    case responseTopic(String)
    case correlationData(ByteBuffer)
    /// The identifier, 1 … 268,435,455.
    case subscriptionIdentifier(Int)
    /// The interval in seconds; 0xFFFFFFFF means that the session never expires.
    case sessionExpiryInterval(UInt32)
    case assignedClientIdentifier(String)
    /// The value in seconds.
    case serverKeepAlive(UInt16)
    case authenticationMethod(String)
    case authenticationData(ByteBuffer)
    case requestProblemInformation(Bool)
    /// The value in seconds.
    case willDelayInterval(UInt32)
    case requestResponseInformation(Bool)
    case responseInformation(String)
    case serverReference(String)
    case reasonString(String)
    case receiveMaximum(UInt16)
    case topicAliasMaximum(UInt16)
    case topicAlias(UInt16)
    /// The highest QoS that the server supports, 0 or 1. A server that supports QoS 2 omits the property.
    case maximumQoS(MQTTQoS)
    case retainAvailable(Bool)
    case userProperty(String, String)
    /// The size in bytes.
    case maximumPacketSize(UInt32)
    case wildcardSubscriptionAvailable(Bool)
    case subscriptionIdentifierAvailable(Bool)
    case sharedSubscriptionAvailable(Bool)
}

extension MQTTProperty {
    /// The identifiers of table 2-4.
    enum Identifier: UInt8, CaseIterable {
        case payloadFormatIndicator = 0x01
        case messageExpiryInterval = 0x02
        case contentType = 0x03
        case responseTopic = 0x08
        case correlationData = 0x09
        case subscriptionIdentifier = 0x0B
        case sessionExpiryInterval = 0x11
        case assignedClientIdentifier = 0x12
        case serverKeepAlive = 0x13
        case authenticationMethod = 0x15
        case authenticationData = 0x16
        case requestProblemInformation = 0x17
        case willDelayInterval = 0x18
        case requestResponseInformation = 0x19
        case responseInformation = 0x1A
        case serverReference = 0x1C
        case reasonString = 0x1F
        case receiveMaximum = 0x21
        case topicAliasMaximum = 0x22
        case topicAlias = 0x23
        case maximumQoS = 0x24
        case retainAvailable = 0x25
        case userProperty = 0x26
        case maximumPacketSize = 0x27
        case wildcardSubscriptionAvailable = 0x28
        case subscriptionIdentifierAvailable = 0x29
        case sharedSubscriptionAvailable = 0x2A
    }
}
