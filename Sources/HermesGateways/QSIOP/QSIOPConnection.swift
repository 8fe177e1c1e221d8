// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import HermesCore
package import HermesWire
package import NIOCore

/// The rules of a QSIOP listener.
package struct QSIOPRules: Sendable, Hashable {
    /// Whether a report needs an access token; otherwise the userid alone is accepted.
    package var requiresToken: Bool
    /// The largest number of requests that may wait for the answer to an earlier request.
    package var maxWaitingRequests: Int
    /// The maximum total size of the waiting requests, in bytes.
    package var maxWaitingBytes: Int

    package init(requiresToken: Bool = true, maxWaitingRequests: Int = 64, maxWaitingBytes: Int = 128 * 1024) {
        self.requiresToken = requiresToken
        self.maxWaitingRequests = maxWaitingRequests
        self.maxWaitingBytes = maxWaitingBytes
    }
}

/// The state of one device's connection: its account, its pushes, and the order of its answers.
///
/// This type does no I/O. The functions in `QSIOPConnection+StateMachine.swift` handle events and return actions.
/// Owner: the connection's event loop.
package struct QSIOPConnection: Sendable {
    /// The phase of a connection.
    package enum State: Hashable, Sendable {
        /// No account was reported yet.
        case anonymous
        /// A report is being checked. Later requests wait for the answer to the report.
        case checking(QSIOPReport)
        /// The connection is bound to an account.
        case bound(Principal)
        /// Ended; input is ignored.
        case ended
    }

    /// The action for an event.
    package enum Action: Hashable, Sendable {
        /// Do nothing.
        case ignore(Ignored)
        /// Answer a ping, ahead of queued requests.
        case pong
        /// Answer a request.
        case respond(QSIOPAnswer)
        /// Answer an acknowledgement, and move the device's cursor.
        case acknowledge(QSIOPAnswer, upTo: UInt64)
        /// Check the report, then call `reportAccepted` or `reportRefused`.
        case check(QSIOPReport)
        /// Answer the report, begin to push from the inbox, then handle queued requests (`waitingTaken()`).
        case bind(Principal, QSIOPAnswer)
        /// Answer the report, then handle queued requests.
        case refuse(QSIOPAnswer)
        /// Publish the application's operation. If it has to be stored, call `storing`, and after the commit call
        /// `published` with the answer. Otherwise, answer at once.
        case publish(QSIOPOperation, ByteBuffer)
        /// Answer the operation that was stored, then handle queued requests.
        case published(QSIOPAnswer)
        /// Send the answer, if there is one, then close the connection.
        case close(QSIOPAnswer?)
    }

    /// The reason why there is no action.
    package enum Ignored: Hashable, Sendable {
        /// The request waits until a report is checked, or until an operation is stored.
        case waiting
        /// The device sent an operation that only the server sends (1, 3, 4). It gets no answer, because two peers that
        /// answer each other's answers would never stop.
        case serverOperation
        /// The connection has ended.
        case ended
    }

    package let rules: QSIOPRules
    package internal(set) var state: State = .anonymous
    /// The pushes that the device has not acknowledged yet.
    package internal(set) var window = QSIOPWindow()
    /// Whether an operation of the application is being stored. Later requests wait for the answer to this operation.
    var isStoring = false
    /// The requests that arrived while a report was being checked, or while an operation was being stored.
    var waiting = Deque<QSIOPFrame>()
    var waitingBytes = 0

    package init(rules: QSIOPRules) { self.rules = rules }
}

/// The contents of a report (op 2).
package struct QSIOPReport: Hashable, Sendable {
    /// The reported account; nil if no account can have the number.
    package let user: UserID?
    /// The access token; nil if the device gave none, which is allowed only if the listener accepts the userid alone.
    package let token: String?
    package let device: DeviceID

    package init(user: UserID?, token: String?, device: DeviceID) {
        self.user = user
        self.token = token
        self.device = device
    }
}

/// The answer to a request (op 3).
package struct QSIOPAnswer: Hashable, Sendable {
    /// 0 for success; 404 if the operation is unknown, or if nobody is subscribed to it; otherwise a number of the
    /// error catalogue.
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
    /// The answer if nobody is subscribed to the application's operation.
    package static let nobody = QSIOPAnswer(code: 404, message: "nobody is subscribed to this operation")
    package static func unknownOperation(_ operation: QSIOPOperation) -> QSIOPAnswer {
        QSIOPAnswer(code: 404, message: "there is no operation \(operation.rawValue)")
    }
}
