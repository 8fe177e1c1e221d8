// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The refusals of operations.
enum Refusals {
    static let noSuchAccount = HermesError(.notFound, "There is no such account.")
    static let noSuchDevice = HermesError(.notFound, "There is no such device.")
    static let noSuchMessage = HermesError(.notFound, "There is no such message any more.")
    static let notTheSender = HermesError(.forbidden, "Only its sender can recall a message.")
    static let tooLate = HermesError(.forbidden, "It is too late to recall this message.")
    static let noSuchKey = HermesError(.notFound, "There is no key of this name.")
    static let keyNameTaken = HermesError(
        .nameTaken,
        "There is a key of this name already. Choose another, or revoke that one."
    )
    static let noSuchInvitationName = HermesError(.notFound, "There is no invitation of this name.")
    static let invitationNameTaken = HermesError(
        .nameTaken,
        "There is an invitation of this name already. Choose another, or revoke that one."
    )
    static let noSuchAdministrator = HermesError(.notFound, "There is no administrator of this name.")
    static let administratorNameTaken = HermesError(
        .nameTaken,
        "There is an administrator of this name already. Choose another."
    )
    static let nameTaken = HermesError(.nameTaken, "This nick name is taken. Choose another.")
    static let clientIDConflict = HermesError(
        .clientIDConflict,
        "This client id was used for another message. Give each message an id of its own."
    )
    static let messageIDTaken = HermesError(.internalError, "A message with this id exists already.")
    static let notAnEvent = HermesError(
        .invalidArgument,
        "Only events that are neither messages nor pushes nor holes can be appended."
    )

    /// Nil if the list is not empty and names everybody once.
    static func recipients(_ recipients: [UserID]) -> HermesError? {
        let areDistinct =
            switch recipients.count {
            case 0: false
            case 1: true
            case 2: recipients[0] != recipients[1]
            default: Set(recipients).count == recipients.count
            }
        return areDistinct ? nil : HermesError(.invalidArgument, "Each recipient must be named once.")
    }
}
