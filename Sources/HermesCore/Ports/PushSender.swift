// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Sends notifications to push services (APNs, FCM, Web Push).
///
/// Implementation: HermesPush.
package protocol PushSender: Sendable {
    /// Sends all deliveries, several at once; returns when each of them has an outcome.
    ///
    /// - Returns: the outcomes, in the order of `deliveries`.
    func send(_ deliveries: [PushDelivery]) async -> [PushSendOutcome]
}
