// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Who may register.
package enum RegistrationRule: String, Sendable, Hashable, CaseIterable {
    case open
    /// Who has a code (``Invitation``).
    case invitation
    case closed
}

/// The rules for accounts and logins.
package struct AccountSettings: Sendable, Hashable {
    /// Who may register.
    package var registration: RegistrationRule
    /// How many may, where they need no invitation.
    package var registrationLimits: RegistrationLimit.Limits
    /// The shortest password, in bytes.
    package var minPasswordBytes: Int
    /// The longest password, in bytes.
    package var maxPasswordBytes: Int
    /// What a new password hash costs.
    package var passwordParameters: PasswordHasher.Parameters
    /// How many passwords of logins are hashed at once; new passwords besides.
    package var maxConcurrentHashes: Int
    /// How many more may wait before `.overloaded`.
    package var maxWaitingHashes: Int
    /// How many of these may be of one account, or of one address.
    package var maxWaitingHashesOfOne: Int
    /// How failed logins are delayed.
    package var loginLimits: LoginThrottle.Limits
    /// How many devices an account has; a new one beyond that is refused.
    package var maxDevices: Int

    package init(
        registration: RegistrationRule = .open,
        registrationLimits: RegistrationLimit.Limits = RegistrationLimit.Limits(),
        minPasswordBytes: Int = 6,
        maxPasswordBytes: Int = 256,
        passwordParameters: PasswordHasher.Parameters = .standard,
        maxConcurrentHashes: Int = ProcessInfo.processInfo.activeProcessorCount,
        maxWaitingHashes: Int = 1000,
        maxWaitingHashesOfOne: Int = 200,
        loginLimits: LoginThrottle.Limits = LoginThrottle.Limits(),
        maxDevices: Int = 50
    ) {
        self.registration = registration
        self.registrationLimits = registrationLimits
        self.minPasswordBytes = minPasswordBytes
        self.maxPasswordBytes = maxPasswordBytes
        self.passwordParameters = passwordParameters
        self.maxConcurrentHashes = maxConcurrentHashes
        self.maxWaitingHashes = maxWaitingHashes
        self.maxWaitingHashesOfOne = maxWaitingHashesOfOne
        self.loginLimits = loginLimits
        self.maxDevices = max(1, maxDevices)
    }
}
