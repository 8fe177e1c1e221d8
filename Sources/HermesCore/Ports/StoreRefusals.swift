// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The errors with which stores refuse operations. All stores use them, so that the texts do not depend on the store.
package enum StoreRefusals {
    package static let noSuchAccount = HermesError(.notFound, "There is no such account.")
    package static let nameTaken = HermesError(.nameTaken, "This nick name is taken. Choose another.")
    package static let passwordChanged = HermesError(
        .wrongCredentials,
        "The password was changed meanwhile. Try again with the present password."
    )
    /// The refusal of a message with ``MessageAppend/mustBeRepetition`` that the sender has not sent before. In place
    /// of this error, the sender gets the reason why only a repetition was allowed.
    package static let notARepetition = HermesError(.rateLimited, "The message is not stored yet.")
    package static let tokenRevoked = HermesError(.invalidToken, "The token was revoked meanwhile. Log in again.")
    package static let noSuchDevice = HermesError(.notFound, "There is no such device.")
    package static let noSuchSession = HermesError(.notFound, "There is no such session.")
    package static let removedNode = HermesError(
        .storageUnavailable,
        "The other nodes have removed this node. Connect to another node, or start this node again."
    )
    package static let openedElsewhere = HermesError(.replaced, "The session was opened by another node.")

    package static let noSuchMessage = HermesError(.notFound, "There is no such message any more.")
    package static let notTheSender = HermesError(.forbidden, "Only its sender can recall a message.")
    package static let tooLate = HermesError(.forbidden, "It is too late to recall this message.")
    package static let clientIDConflict = HermesError(
        .clientIDConflict,
        "This client id was used for another message. Give each message an id of its own."
    )
    package static let messageIDTaken = HermesError(.internalError, "A message with this id exists already.")
    package static let repeatedRecipients = HermesError(.invalidArgument, "Each recipient must be named once.")
    package static let notAnEvent = HermesError(
        .invalidArgument,
        "Only events can be appended here, not messages or pushes."
    )

    package static let ownContact = HermesError(.invalidArgument, "You cannot be your own contact.")

    package static let noSuchKey = HermesError(.notFound, "There is no key of this name.")
    package static let keyNameTaken = HermesError(
        .nameTaken,
        "There is a key of this name already. Choose another, or revoke that one."
    )
    package static let noSuchInvitation = HermesError(.notFound, "There is no invitation of this name.")
    package static let invitationNameTaken = HermesError(
        .nameTaken,
        "There is an invitation of this name already. Choose another, or revoke that one."
    )
    package static let noSuchAdministrator = HermesError(.notFound, "There is no administrator of this name.")
    package static let administratorNameTaken = HermesError(
        .nameTaken,
        "There is an administrator of this name already. Choose another."
    )

    /// Checks a list of recipients. Returns nil if the list is not empty and names each recipient once.
    package static func recipients(_ recipients: [UserID]) -> HermesError? {
        let areDistinct =
            switch recipients.count {
            case 0: false
            case 1: true
            case 2: recipients[0] != recipients[1]
            default: Set(recipients).count == recipients.count
            }
        return areDistinct ? nil : repeatedRecipients
    }
}
