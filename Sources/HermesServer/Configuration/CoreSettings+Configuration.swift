// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesGateways

extension StoreSettings {
    /// The settings of the store: its own settings, and those that follow from other groups.
    package init(_ settings: ServerSettings) {
        self = settings.store
        // A message can be recalled only while its record exists.
        recordPeriod = max(recordPeriod, settings.messages.recallWindow)
        eventPeriod = settings.messages.retention
        maxQueuedMessages = settings.gateways.broker.maxQueuedMessages
        maxQueuedBytes = settings.gateways.broker.maxQueuedBytes
        queuedMessages = settings.gateways.broker.keptMessages
        queuedBytes = settings.gateways.broker.keptBytes
    }
}

extension DurableSettings {
    /// The settings of kept sessions and retained publications.
    init(_ settings: ServerSettings) {
        let redistribution = settings.gateways.broker.sharedRedistribution
        self.init(
            sessions: settings.gateways.broker.keptSessions,
            filters: settings.gateways.broker.keptSubscriptions,
            isRetainAvailable: settings.gateways.broker.isRetainAvailable,
            sharedRedistribution: redistribution > .zero ? redistribution : nil,
            retainedMessages: settings.gateways.broker.retainedMessages,
            retainedBytes: settings.gateways.broker.retainedBytes
        )
    }
}
