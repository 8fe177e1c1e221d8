// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The rules for accounts and logins.
package struct AccountSettings: Sendable, Hashable {
    /// Whether anybody may register.
    package var registrationOpen: Bool
    /// The shortest password, in bytes.
    package var minPasswordBytes: Int
    /// The longest password, in bytes.
    package var maxPasswordBytes: Int
    /// What a new password hash costs.
    package var passwordParameters: PasswordHasher.Parameters
    /// How many passwords are hashed at once.
    package var maxConcurrentHashes: Int
    /// How many more may wait before `.overloaded`.
    package var maxWaitingHashes: Int
    /// How failed logins are delayed.
    package var loginLimits: LoginThrottle.Limits
    /// How many devices an account has; a new one beyond that takes the place of the one not seen for longest.
    package var maxDevices: Int

    package init(
        registrationOpen: Bool = true,
        minPasswordBytes: Int = 6,
        maxPasswordBytes: Int = 256,
        passwordParameters: PasswordHasher.Parameters = .standard,
        maxConcurrentHashes: Int = ProcessInfo.processInfo.activeProcessorCount,
        maxWaitingHashes: Int = 1000,
        loginLimits: LoginThrottle.Limits = LoginThrottle.Limits(),
        maxDevices: Int = 50
    ) {
        self.registrationOpen = registrationOpen
        self.minPasswordBytes = minPasswordBytes
        self.maxPasswordBytes = maxPasswordBytes
        self.passwordParameters = passwordParameters
        self.maxConcurrentHashes = maxConcurrentHashes
        self.maxWaitingHashes = maxWaitingHashes
        self.loginLimits = loginLimits
        self.maxDevices = max(1, maxDevices)
    }
}
