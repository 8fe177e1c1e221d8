// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Sends notifications to push services (APNs, FCM, Web Push).
///
/// Implementation: HermesPush.
package protocol PushSender: Sendable {
    /// Sends a notification. Several calls may be under way at once.
    func send(_ delivery: PushDelivery) async -> PushSendOutcome
}
