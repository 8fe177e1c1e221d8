// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Something that an administrator did or tried.
package struct AuditEntry: Sendable, Hashable {
    /// Ascending.
    package let id: Int64
    package let time: Timestamp
    package let event: AuditEvent

    package init(id: Int64, time: Timestamp, event: AuditEvent) {
        self.id = id
        self.time = time
        self.event = event
    }
}

/// The contents of an ``AuditEntry``. Texts come from the network: they are cut, and hold no control characters.
package struct AuditEvent: Sendable, Hashable {
    /// The longest text, in characters.
    package static let maxCharacters = 128

    /// The administrator, or the name that a failed login gave.
    package let who: String
    /// The network address; "local" for the command line.
    package let address: String
    /// The operation, such as "deleteUser".
    package let action: String
    /// The object of the operation, such as an account.
    package let target: String
    /// "done", or the reason why nothing was done.
    package let result: String
    /// The error's code; nil for what was carried out, and for entries of older servers.
    package let code: HermesError.Code?
    /// Whether it was refused before anything was done. Refused operations have a bound of their own, so that a flood
    /// of them does not displace the other entries.
    package let isRefused: Bool

    package init(
        who: String,
        address: String,
        action: String,
        target: String = "",
        result: String,
        code: HermesError.Code? = nil,
        isRefused: Bool = false
    ) {
        self.who = Self.plain(who)
        self.address = Self.plain(address)
        self.action = Self.plain(action)
        self.target = Self.plain(target)
        self.result = Self.plain(result)
        self.code = code
        self.isRefused = isRefused
    }

    private static func plain(_ text: String) -> String {
        var plain = String.UnicodeScalarView()
        // A character may have any number of scalars.
        for scalar in text.unicodeScalars.prefix(maxCharacters) {
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator:
                plain.append("?")
            default: plain.append(scalar)
            }
        }
        return String(plain)
    }
}

/// The limits of the audit log.
package struct AuditLimits: Sendable, Hashable {
    /// The most entries about operations that were carried out.
    package var maxDone: Int
    /// The most entries about refused operations.
    package var maxRefused: Int
    package var age: Duration

    package init(maxDone: Int = 20_000, maxRefused: Int = 2_000, age: Duration = .seconds(366 * 86_400)) {
        self.maxDone = maxDone
        self.maxRefused = maxRefused
        self.age = age
    }
}
