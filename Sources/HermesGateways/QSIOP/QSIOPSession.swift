// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import HermesCore
package import HermesWire

/// What a QSIOP listener allows.
package struct QSIOPRules: Sendable, Hashable {
    /// Whether a report needs an access token; if not, the userid alone is believed.
    package var requiresToken: Bool
    /// How many requests may wait for the answer to a report.
    package var maxWaitingRequests: Int
    /// How many bytes they may take.
    package var maxWaitingBytes: Int

    package init(requiresToken: Bool = true, maxWaitingRequests: Int = 64, maxWaitingBytes: Int = 128 * 1024) {
        self.requiresToken = requiresToken
        self.maxWaitingRequests = maxWaitingRequests
        self.maxWaitingBytes = maxWaitingBytes
    }
}

/// One device's session: whom it reported, what it was pushed, in which order it is answered.
///
/// Pure: `QSIOPSession+StateMachine.swift` takes events and returns what is to be done. Owner: the connection's event
/// loop.
package struct QSIOPSession: Sendable {
    /// Where a session stands.
    package enum State: Hashable, Sendable {
        /// Nobody was reported yet.
        case anonymous
        /// A report is being checked; later requests wait for its answer.
        case checking(QSIOPReport)
        /// The connection is bound to an account.
        case bound(Principal)
        /// Over; nothing that comes counts any more.
        case ended
    }

    /// What is to be done after an event.
    package enum Action: Hashable, Sendable {
        /// Nothing.
        case ignore(Ignored)
        /// Answer a ping, before anything that waits.
        case pong
        /// Answer a request.
        case respond(QSIOPAnswer)
        /// Answer an acknowledgement, and move the device's cursor.
        case acknowledge(QSIOPAnswer, upTo: UInt64)
        /// Find out whether the report is true; then report `reportAccepted` or `reportRefused`.
        case check(QSIOPReport)
        /// Answer the report, begin to push from the inbox, then take up what waits (`waitingTaken()`).
        case bind(Principal, QSIOPAnswer)
        /// Answer the report, then take up what waits.
        case refuse(QSIOPAnswer)
        /// Answer, then close.
        case close(QSIOPAnswer?)
    }

    /// Why nothing is done.
    package enum Ignored: Hashable, Sendable {
        /// The request waits for the answer to a report.
        case waiting
        /// Operations that the server sends (1, 3, 4) ask for nothing, so they get no answer: an answer to an answer
        /// could go on for ever.
        case serverOperation
        /// The session has ended.
        case ended
    }

    package let rules: QSIOPRules
    package internal(set) var state: State = .anonymous
    /// What was pushed and not acknowledged.
    package internal(set) var window = QSIOPWindow()
    /// Requests that came while a report was being checked.
    var waiting = Deque<QSIOPFrame>()
    var waitingBytes = 0

    package init(rules: QSIOPRules) { self.rules = rules }
}

/// What a report (op 2) says.
package struct QSIOPReport: Hashable, Sendable {
    package let user: UserID
    /// Nil where the listener believes the userid alone and none was given.
    package let token: String?
    package let device: DeviceID

    package init(user: UserID, token: String?, device: DeviceID) {
        self.user = user
        self.token = token
        self.device = device
    }
}

/// The answer to a request (op 3).
package struct QSIOPAnswer: Hashable, Sendable {
    /// 0: done; 404: there is no such operation; otherwise a number of the error catalogue.
    package let code: UInt32
    package let message: String

    package init(code: UInt32, message: String) {
        self.code = code
        self.message = message
    }

    package init(_ code: HermesError.Code, _ message: String) {
        self.init(code: code.rawValue, message: message)
    }

    package static let done = QSIOPAnswer(code: 0, message: "ok")
    package static func unknownOperation(_ operation: QSIOPOperation) -> QSIOPAnswer {
        QSIOPAnswer(code: 404, message: "operation \(operation.rawValue) is not known")
    }
}
