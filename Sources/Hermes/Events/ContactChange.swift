// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// A change of a contact, made by the other account. Newer versions add kinds, so a `switch` over them needs a
/// `default`.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum ContactChange: Hashable, Sendable {
    /// The account asked for contact.
    case requested
    /// The account accepted.
    case accepted
    /// The account declined.
    case declined
    /// The account ended the contact.
    case removed
}

extension ContactChange {
    init?(_ kind: Hermes_V1_ContactEvent.Kind) {
        switch kind {
        case .requested: self = .requested
        case .accepted: self = .accepted
        case .declined: self = .declined
        case .removed: self = .removed
        case .unspecified, .UNRECOGNIZED: return nil
        }
    }
}
