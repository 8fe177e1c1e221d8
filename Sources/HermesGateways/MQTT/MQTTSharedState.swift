// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// A client's unfinished messages from shared subscriptions. If the client leaves, they go to other members of the
/// groups.
final class MQTTSharedState {
    /// An unacknowledged message, and the QoS with which it was sent.
    struct Sent {
        let publication: Publication
        let qos: QoS
        let subscription: SharedSubscription
    }

    let load = SharedLoad()
    /// The approximate size of the messages in the window, in bytes.
    private(set) var bytes = 0
    /// The unacknowledged messages, by their numbers in the window (``OutboundWindow``).
    private(set) var unacknowledged: [UInt64: Sent] = [:]

    /// - Returns: whether the bytes have grown enough to be reported.
    func remember(_ number: UInt64, _ sent: Sent) -> Bool {
        unacknowledged[number] = sent
        let before = bytes
        bytes &+= sent.publication.weight
        return bytes >> Self.stepBits != before >> Self.stepBits
    }

    func forget(_ number: UInt64) -> Sent? {
        guard let taken = unacknowledged.removeValue(forKey: number) else { return nil }
        bytes &-= taken.publication.weight
        return taken
    }

    /// The binary logarithm of the growth, in bytes, after which a report is made. The growth is 16 KiB.
    private static let stepBits = 14
}
