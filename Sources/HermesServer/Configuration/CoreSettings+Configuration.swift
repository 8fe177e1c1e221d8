// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways

extension AccountSettings {
    /// What the configuration says about accounts.
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
    /// What the configuration says about messages.
    init(_ settings: ServerSettings) {
        self.init(
            maxContentBytes: settings.maxMessageBytes,
            retention: settings.retention,
            recallWindow: settings.recallWindow,
            contactRequestsPerHour: settings.contactRequestsPerHour,
            groupEntriesPerHour: settings.groupEntriesPerHour
        )
    }
}

extension StoreSettings {
    /// What the configuration says about how long and how much is kept.
    init(_ settings: ServerSettings) {
        self.init(
            historyPeriod: .seconds(settings.historyDays * 86_400),
            maxQueuedMessages: settings.gateways.broker.maxQueuedMessages,
            maxQueuedBytes: settings.gateways.broker.maxQueuedBytes,
            inbox: settings.inbox,
            maxUnreadBytes: settings.maxUnreadBytes,
            maxGroups: settings.maxGroups
        )
    }
}

extension DurableSettings {
    /// What the configuration says about kept sessions and retained publications.
    init(_ settings: ServerSettings) {
        let redistribution = settings.gateways.broker.sharedRedistribution
        self.init(
            isRetainAvailable: settings.gateways.broker.isRetainAvailable,
            sharedRedistribution: redistribution > .zero ? redistribution : nil,
            maxRetainedMessages: settings.gateways.broker.maxRetainedMessages,
            maxRetainedBytes: settings.gateways.broker.maxRetainedBytes
        )
    }
}
