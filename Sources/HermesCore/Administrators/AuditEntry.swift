// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An action of an administrator, or an attempt at an action.
package struct AuditEntry: Sendable, Hashable {
    /// The entry's number. Later entries have higher numbers.
    package let id: Int64
    package let time: Timestamp
    package let event: AuditEvent

    package init(id: Int64, time: Timestamp, event: AuditEvent) {
        self.id = id
        self.time = time
        self.event = event
    }
}

/// The contents of an ``AuditEntry``. Texts may come from the network, so they are cut to ``maxCharacters``, and each
/// control character is replaced by a question mark.
package struct AuditEvent: Sendable, Hashable {
    /// The maximum length of a text, in Unicode scalars.
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
    /// The code of the error; nil if there was no error, and in entries that older versions of the server wrote.
    package let code: HermesError.Code?
    /// Whether the operation was refused before anything was done. Entries about refused operations have a separate
    /// limit, so that a flood of such entries does not displace the other entries.
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
        // The text is cut by scalars, because a character may have any number of scalars.
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
    /// The maximum number of entries about operations that were carried out.
    package var maxDone: Int
    /// The maximum number of entries about refused operations.
    package var maxRefused: Int
    /// The maximum age of an entry; older entries are deleted. If it is nil, no entry is deleted because of its age.
    package var age: Duration?

    package init(maxDone: Int = 20_000, maxRefused: Int = 2_000, age: Duration? = .seconds(366 * 86_400)) {
        self.maxDone = maxDone
        self.maxRefused = maxRefused
        self.age = age
    }
}
