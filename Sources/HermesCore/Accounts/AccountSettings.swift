// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The rule that decides who may register.
package enum RegistrationRule: String, Sendable, Hashable, CaseIterable {
    case open
    /// Only holders of an ``Invitation`` code may register.
    case invitation
    case closed
}

/// The rules for accounts and logins.
package struct AccountSettings: Sendable, Hashable {
    /// The rule that decides who may register.
    package var registration: RegistrationRule
    /// The rate limits of registrations without an invitation.
    package var registrationLimits: RegistrationLimit.Limits
    /// The shortest password, in bytes.
    package var minPasswordBytes: Int
    /// The longest password, in bytes.
    package var maxPasswordBytes: Int
    /// The cost of a new password hash.
    package var passwordParameters: PasswordHasher.Parameters
    /// The largest number of login passwords that are hashed at the same time. New passwords are hashed on other
    /// threads and do not count.
    package var maxConcurrentHashes: Int
    /// The largest number of password hashes that may wait in each lane of ``PasswordHasher``. Further passwords are
    /// refused with `.overloaded`.
    package var maxWaitingHashes: Int
    /// The largest number of password hashes that may wait for one account or one address.
    package var maxWaitingHashesOfOne: Int
    /// The limits on failed logins. Beyond these limits, logins are delayed.
    package var loginLimits: LoginThrottle.Limits
    /// The largest number of devices that an account may have. A further device is refused.
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
