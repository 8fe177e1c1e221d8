// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import HermesCore
package import HermesWire
import NIOCore

extension QSIOPConnection {
    // MARK: Frames

    /// Handles a complete frame.
    package mutating func frameReceived(_ frame: QSIOPFrame) -> Action {
        guard state != .ended else { return .ignore(.ended) }
        switch frame.operation {
        case .ping: return .pong
        case .pong, .response, .push: return .ignore(.serverOperation)
        default: break
        }
        if case .checking = state { return requestHeld(frame) }
        return isStoring ? requestHeld(frame) : requestReceived(frame)
    }

    /// Queues a request until an earlier request is answered.
    private mutating func requestHeld(_ frame: QSIOPFrame) -> Action {
        let bytes = waitingBytes + frame.encodedBytes
        guard waiting.count < rules.maxWaitingRequests, bytes <= rules.maxWaitingBytes else {
            end()
            return .close(QSIOPAnswer(.overloaded, "too many requests wait for the answer to an earlier one"))
        }
        waitingBytes = bytes
        // The body is copied, so that waiting requests do not keep the connection's read buffers alive.
        waiting.append(QSIOPFrame(frame.operation, body: ByteBuffer(bytes: frame.body.readableBytesView)))
        return .ignore(.waiting)
    }

    private mutating func requestReceived(_ frame: QSIOPFrame) -> Action {
        switch frame.operation {
        case .report: return reportReceived(frame)
        case .pushAcknowledge: return acknowledgementReceived(frame)
        default:
            guard frame.operation.isApplicationDefined else { return .respond(.unknownOperation(frame.operation)) }
            return applicationReceived(frame)
        }
    }

    private func applicationReceived(_ frame: QSIOPFrame) -> Action {
        guard case .bound = state else {
            return .respond(QSIOPAnswer(.notAuthenticated, "report a userid first (op 2)"))
        }
        do throws(WireError) {
            return .publish(frame.operation, QSIOPApplication.payload(of: try frame.deviceProperties()))
        } catch {
            return .respond(QSIOPAnswer(.invalidArgument, error.message))
        }
    }

    // MARK: The application's operations

    /// Records that an operation is being stored for subscribers that are not connected.
    package mutating func storing() {
        guard case .bound = state else { return }
        isStoring = true
    }

    /// Records that the operation is stored and published, or was refused.
    package mutating func published(_ answer: QSIOPAnswer) -> Action {
        guard isStoring else { return .ignore(.ended) }
        isStoring = false
        return .published(answer)
    }

    private mutating func reportReceived(_ frame: QSIOPFrame) -> Action {
        switch QSIOPTranslation.report(from: frame, requiresToken: rules.requiresToken) {
        case .failure(let refusal):
            return .respond(refusal.answer)
        case .success(let report):
            guard case .bound(let principal) = state else {
                state = .checking(report)
                return .check(report)
            }
            // A device may report itself again, but with the same identity.
            guard principal.user == report.user, principal.device == report.device else {
                return .respond(
                    QSIOPAnswer(.alreadyAuthenticated, "this connection is bound to another userid or device")
                )
            }
            return .respond(.done)
        }
    }

    private mutating func acknowledgementReceived(_ frame: QSIOPFrame) -> Action {
        guard case .bound = state else {
            return .respond(QSIOPAnswer(.notAuthenticated, "report a userid first (op 2)"))
        }
        switch QSIOPTranslation.acknowledgedID(from: frame) {
        case .failure(let refusal):
            return .respond(refusal.answer)
        case .success(let id):
            switch window.acknowledged(id) {
            case .unknown: return .respond(QSIOPAnswer(.notFound, "no push with this id waits for an acknowledgement"))
            case .waiting: return .respond(.done)
            case .advanced(let seq): return .acknowledge(.done, upTo: seq)
            }
        }
    }

    // MARK: The report's check

    /// Binds the connection to the account of a valid report.
    package mutating func reportAccepted(_ principal: Principal) -> Action {
        guard case .checking = state else { return .ignore(.ended) }
        state = .bound(principal)
        return .bind(principal, .done)
    }

    /// Refuses a report that is invalid or could not be checked. The device may try again.
    package mutating func reportRefused(_ answer: QSIOPAnswer) -> Action {
        guard case .checking = state else { return .ignore(.ended) }
        state = .anonymous
        return .refuse(answer)
    }

    /// Removes and returns the next queued request, which the caller passes to ``frameReceived(_:)`` again; nil if
    /// there is no request, or if it must continue to wait.
    package mutating func waitingTaken() -> QSIOPFrame? {
        switch state {
        case .checking, .ended:
            return nil
        case .anonymous, .bound:
            guard !isStoring else { return nil }
            guard let frame = waiting.popFirst() else { return nil }
            waitingBytes -= frame.encodedBytes
            return frame
        }
    }

    // MARK: The inbox

    /// Records that an entry is about to be pushed under this id.
    package mutating func pushed(_ seq: UInt64, id: String) {
        guard case .bound = state else { return }
        window.pushed(seq, id: id)
    }

    /// Records that an entry is not pushed to this device.
    ///
    /// - Returns: the new cursor; nil if the cursor does not move.
    package mutating func skipped(_ seq: UInt64) -> UInt64? {
        guard case .bound = state else { return nil }
        return window.skipped(seq)
    }

    // MARK: The end

    /// Ends the session because the server has decided to end it, or because the bytes are not QSIOP version 1.
    package mutating func removalDecided(_ answer: QSIOPAnswer) -> Action {
        guard state != .ended else { return .ignore(.ended) }
        end()
        return .close(answer)
    }

    /// Ends the session because the connection is closed.
    package mutating func connectionClosed() -> Action {
        guard state != .ended else { return .ignore(.ended) }
        end()
        return .close(nil)
    }

    private mutating func end() {
        state = .ended
        isStoring = false
        waiting.removeAll()
        waitingBytes = 0
        window = QSIOPWindow()
    }
}
