// Hermes
// SPDX-License-Identifier: Apache-2.0

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
        maxConcurrentHashes: Int = 2,
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

extension AccountSettings {
    private static let defaults = AccountSettings()

    private static let registration = Setting<RegistrationRule>.choice(
        "accounts.registration",
        default: defaults.registration,
        "Who may create an account. With 'open', everybody may. With 'invitation', everybody who has an invitation "
            + "code may ('hermes invitation create'). With 'closed', only the operator may ('hermes user add')."
    )
    private static let maxDevices = Setting.number(
        "accounts.devices",
        default: defaults.maxDevices,
        in: 1...1000,
        "The largest number of devices of an account. At this limit, a new device is refused until another device is "
            + "removed."
    )
    private static let maxConcurrentHashes = Setting.number(
        "accounts.passwordHashesAtOnce",
        default: defaults.maxConcurrentHashes,
        in: 1...64,
        "The largest number of login passwords that are hashed at once. In addition, half as many new passwords, but "
            + "at least one, may be hashed at the same time. Each hash takes 16 MiB of memory."
    )

    /// The settings of accounts and logins.
    package static let settings: [SettingDescriptor] =
        [registration.descriptor, maxDevices.descriptor, maxConcurrentHashes.descriptor]
        + RegistrationLimit.Limits.settings + LoginThrottle.Limits.settings

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            registration: try values.value(of: Self.registration),
            registrationLimits: try RegistrationLimit.Limits(values),
            maxConcurrentHashes: try values.value(of: Self.maxConcurrentHashes),
            loginLimits: try LoginThrottle.Limits(values),
            maxDevices: try values.value(of: Self.maxDevices)
        )
    }
}
