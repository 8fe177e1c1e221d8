// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesGateways

extension ServerSettings {
    /// The settings that a store takes: its own settings, and those that follow from other groups.
    package var storeSettings: StoreSettings {
        StoreSettings(
            store,
            // A message can be recalled only while its record exists.
            recordPeriod: max(MessageSettings.storedPeriod, messages.recallWindow),
            eventPeriod: messages.retention,
            maxQueuedMessages: gateways.broker.maxQueuedMessages,
            maxQueuedBytes: gateways.broker.maxQueuedBytes,
            queuedMessages: gateways.broker.keptMessages,
            queuedBytes: gateways.broker.keptBytes
        )
    }

    /// The settings of kept sessions and retained publications.
    var durableSettings: DurableSettings {
        DurableSettings(
            sessions: gateways.broker.keptSessions,
            filters: gateways.broker.keptSubscriptions,
            isRetainAvailable: gateways.broker.isRetainAvailable,
            sharedRedistribution: gateways.broker.sharedRedistribution > .zero
                ? gateways.broker.sharedRedistribution : nil,
            retainedMessages: gateways.broker.retainedMessages,
            retainedBytes: gateways.broker.retainedBytes
        )
    }
}
