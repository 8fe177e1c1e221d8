// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesGateways

extension AccountSettings {
    /// The account settings of the configuration.
    init(_ settings: ServerSettings) {
        self.init(
            registration: settings.registration,
            registrationLimits: RegistrationLimit.Limits(
                perAddress: settings.registrationsPerAddress,
                inTotal: settings.registrationsPerHour
            ),
            passwordParameters: settings.passwordCost,
            maxConcurrentHashes: settings.passwordHashesAtOnce,
            loginLimits: LoginThrottle.Limits(failuresPerAddress: settings.loginFailuresPerAddress),
            maxDevices: settings.maxDevices
        )
    }
}

extension MessageSettings {
    /// The message settings of the configuration.
    init(_ settings: ServerSettings) {
        self.init(
            maxContentBytes: settings.maxMessageBytes,
            retention: settings.retention,
            recallWindow: settings.recallWindow,
            acceptedFrom: settings.acceptedFrom,
            contactRequestsPerHour: settings.contactRequestsPerHour,
            groupEntriesPerHour: settings.groupEntriesPerHour,
            maxStoredBytes: settings.maxStoredBytes
        )
    }
}

extension StoreSettings {
    /// The store settings of the configuration.
    package init(_ settings: ServerSettings) {
        let defaults = StoreSettings()
        self.init(
            historyPeriod: .seconds(settings.historyDays * 86_400),
            // A message can be recalled only while its record exists.
            recordPeriod: max(defaults.recordPeriod, settings.recallWindow),
            eventPeriod: settings.retention,
            maxQueuedMessages: settings.gateways.broker.maxQueuedMessages,
            maxQueuedBytes: settings.gateways.broker.maxQueuedBytes,
            queuedMessages: settings.gateways.broker.keptMessages,
            queuedBytes: settings.gateways.broker.keptBytes,
            inbox: settings.inbox,
            maxUnreadBytes: settings.maxUnreadBytes,
            maxGroups: settings.maxGroups
        )
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
