// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The rule for who may register.
package enum RegistrationRule: String, Sendable, Hashable, CaseIterable {
    case open
    /// Holders of an ``Invitation`` code.
    case invitation
    case closed
}

/// The rules for accounts and logins.
package struct AccountSettings: Sendable, Hashable {
    /// The rule for who may register.
    package var registration: RegistrationRule
    /// The rates of registration without invitations.
    package var registrationLimits: RegistrationLimit.Limits
    /// The shortest password, in bytes.
    package var minPasswordBytes: Int
    /// The longest password, in bytes.
    package var maxPasswordBytes: Int
    /// The cost of a new password hash.
    package var passwordParameters: PasswordHasher.Parameters
    /// The number of login passwords hashed at once; new passwords not included.
    package var maxConcurrentHashes: Int
    /// The number of waiting hashes before `.overloaded`.
    package var maxWaitingHashes: Int
    /// The number of waiting hashes of one account or one address.
    package var maxWaitingHashesOfOne: Int
    /// The delays after failed logins.
    package var loginLimits: LoginThrottle.Limits
    /// The number of devices of an account; a further one is refused.
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
