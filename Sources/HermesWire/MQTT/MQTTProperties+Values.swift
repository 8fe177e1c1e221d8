// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The values of single properties. A value is nil if the packet does not have the property.
extension MQTTProperties {
    package var topicAlias: UInt16? {
        first { if case .topicAlias(let alias) = $0 { alias } else { nil } }
    }

    /// The first subscription identifier; a PUBLISH may have several.
    package var subscriptionIdentifier: Int? {
        first { if case .subscriptionIdentifier(let number) = $0 { number } else { nil } }
    }

    /// The interval in seconds; 0xFFFFFFFF means that the session never expires.
    package var sessionExpiryInterval: UInt32? {
        first { if case .sessionExpiryInterval(let time) = $0 { time } else { nil } }
    }

    package var authenticationMethod: String? {
        first { if case .authenticationMethod(let method) = $0 { method } else { nil } }
    }

    package var authenticationData: ByteBuffer? {
        first { if case .authenticationData(let data) = $0 { data } else { nil } }
    }

    package var requestResponseInformation: Bool? {
        first { if case .requestResponseInformation(let wanted) = $0 { wanted } else { nil } }
    }

    package var reasonString: String? {
        first { if case .reasonString(let text) = $0 { text } else { nil } }
    }

    package var serverReference: String? {
        first { if case .serverReference(let text) = $0 { text } else { nil } }
    }
}
