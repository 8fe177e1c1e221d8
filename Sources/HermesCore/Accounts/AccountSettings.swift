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
    package var registration = RegistrationRule.open
    /// The rate limits of registrations without an invitation.
    package var registrationLimits = RegistrationLimit.Limits()
    /// The shortest password, in bytes.
    package var minPasswordBytes = 6
    /// The longest password, in bytes.
    package var maxPasswordBytes = 256
    /// The cost of a new password hash.
    package var passwordParameters = PasswordHasher.Parameters.standard
    /// The largest number of login passwords that are hashed at the same time. New passwords are hashed on other
    /// threads and do not count.
    package var maxConcurrentHashes = 2
    /// The largest number of password hashes that may wait in each lane of ``PasswordHasher``. Further passwords are
    /// refused with `.overloaded`.
    package var maxWaitingHashes = 1000
    /// The largest number of password hashes that may wait for one account or one address.
    package var maxWaitingHashesOfOne = 200
    /// The limits on failed logins. Beyond these limits, logins are delayed.
    package var loginLimits = LoginThrottle.Limits()
    /// The largest number of devices that an account may have. A further device is refused.
    package var maxDevices = 50

    package init() {}

    package init(passwordParameters: PasswordHasher.Parameters) { self.passwordParameters = passwordParameters }
}

extension AccountSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .choice(
            \.registration,
            "accounts.registration",
            "Who may create an account. With 'open', everybody may. With 'invitation', everybody who has an invitation "
                + "code may ('hermes invitation create'). With 'closed', only the operator may ('hermes user add')."
        ),
        .number(
            \.maxDevices,
            "accounts.devices",
            in: 1...1000,
            "The largest number of devices of an account. At this limit, a new device is refused until another device "
                + "is removed."
        ),
        .number(
            \.maxConcurrentHashes,
            "accounts.passwordHashesAtOnce",
            in: 1...64,
            "The largest number of login passwords that are hashed at once. In addition, half as many new passwords, "
                + "but at least one, may be hashed at the same time. Each hash takes 16 MiB of memory."
        ),
        .group(\.registrationLimits),
        .group(\.loginLimits),
    ]
}
