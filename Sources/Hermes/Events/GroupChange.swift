// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// A change of a group. Newer versions add kinds, so a `switch` over them needs a `default`.
#if hasAttribute(nonexhaustive)
@nonexhaustive
#endif
public enum GroupChange: Hashable, Sendable {
    /// The group was created, with these members in addition to the owner.
    case created([UserID])
    /// The group's name, picture or rules changed.
    case changed
    /// Members were added.
    case membersAdded([UserID])
    /// Members left or were removed.
    case membersRemoved([UserID])
    /// The group was dissolved.
    case dissolved
}

extension GroupChange {
    init?(_ event: Hermes_V1_GroupEvent) {
        let uids = event.uids.map { UserID(rawValue: $0) }
        switch event.kind {
        case .created: self = .created(uids)
        case .changed: self = .changed
        case .membersAdded: self = .membersAdded(uids)
        case .membersRemoved: self = .membersRemoved(uids)
        case .dissolved: self = .dissolved
        case .unspecified, .UNRECOGNIZED: return nil
        }
    }
}
