// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension AccountSettings {
    /// What the configuration says about accounts.
    init(_ settings: ServerSettings) {
        self.init(
            registrationOpen: settings.registration == .open,
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
            recallWindow: settings.recallWindow
        )
    }
}
