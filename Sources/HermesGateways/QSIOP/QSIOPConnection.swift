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
    /// The number of requests that may wait behind a report.
    package var maxWaitingRequests: Int
    /// Their bytes.
    package var maxWaitingBytes: Int

    package init(requiresToken: Bool = true, maxWaitingRequests: Int = 64, maxWaitingBytes: Int = 128 * 1024) {
        self.requiresToken = requiresToken
        self.maxWaitingRequests = maxWaitingRequests
        self.maxWaitingBytes = maxWaitingBytes
    }
}

/// The state of one device's connection: its account, its pushes, and the order of its answers.
///
/// Pure: `QSIOPConnection+StateMachine.swift` takes events and returns actions. Owner: the connection's event loop.
package struct QSIOPConnection: Sendable {
    /// The phase of a connection.
    package enum State: Hashable, Sendable {
        /// No account was reported yet.
        case anonymous
        /// A report is being checked; later requests wait for its answer.
        case checking(QSIOPReport)
        /// The connection is bound to an account.
        case bound(Principal)
        /// Ended; input is ignored.
        case ended
    }

    /// The action for an event.
    package enum Action: Hashable, Sendable {
        /// Nothing.
        case ignore(Ignored)
        /// Answer a ping, ahead of queued requests.
        case pong
        /// Answer a request.
        case respond(QSIOPAnswer)
        /// Answer an acknowledgement, and move the device's cursor.
        case acknowledge(QSIOPAnswer, upTo: UInt64)
        /// Check the report; then report `reportAccepted` or `reportRefused`.
        case check(QSIOPReport)
        /// Answer the report, begin to push from the inbox, then handle queued requests (`waitingTaken()`).
        case bind(Principal, QSIOPAnswer)
        /// Answer the report, then handle queued requests.
        case refuse(QSIOPAnswer)
        /// Publish the application's operation; then report `stored` and `published`, or `published` alone, and answer.
        case publish(QSIOPOperation, ByteBuffer)
        /// Answer the operation that was stored, then handle queued requests.
        case published(QSIOPAnswer)
        /// Answer, then close.
        case close(QSIOPAnswer?)
    }

    /// The reason why there is no action.
    package enum Ignored: Hashable, Sendable {
        /// The request waits behind a report, or behind an operation that is being stored.
        case waiting
        /// A server's operation (1, 3, 4) gets no answer: answering answers could go on forever.
        case serverOperation
        /// The connection has ended.
        case ended
    }

    package let rules: QSIOPRules
    package internal(set) var state: State = .anonymous
    /// Unacknowledged pushes.
    package internal(set) var window = QSIOPWindow()
    /// Whether an operation of the application is being stored; later requests wait for its answer.
    var isStoring = false
    /// Requests that arrived while a report was being checked, or an operation stored.
    var waiting = Deque<QSIOPFrame>()
    var waitingBytes = 0

    package init(rules: QSIOPRules) { self.rules = rules }
}

/// The contents of a report (op 2).
package struct QSIOPReport: Hashable, Sendable {
    package let user: UserID
    /// Nil if none was given, where the listener accepts the userid alone.
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
    /// 0: done; 404: unknown operation, or nobody to get it; otherwise a number of the error catalogue.
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
    /// Nobody gets the application's operation.
    package static let nobody = QSIOPAnswer(code: 404, message: "nobody is subscribed to this operation")
    package static func unknownOperation(_ operation: QSIOPOperation) -> QSIOPAnswer {
        QSIOPAnswer(code: 404, message: "operation \(operation.rawValue) is not known")
    }
}
