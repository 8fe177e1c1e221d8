// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
package import HermesCore
package import HermesWire
import NIOCore

extension QSIOPConnection {
    // MARK: Frames

    /// A complete frame arrived.
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

    /// Queues a request behind the one before.
    private mutating func requestHeld(_ frame: QSIOPFrame) -> Action {
        let bytes = waitingBytes + frame.encodedBytes
        guard waiting.count < rules.maxWaitingRequests, bytes <= rules.maxWaitingBytes else {
            end()
            return .close(QSIOPAnswer(.overloaded, "too many requests wait for the answer to an earlier one"))
        }
        waitingBytes = bytes
        // A copy, so that waiting reports do not keep the connection's read buffers alive.
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

    /// An operation is being stored for subscribers that are away.
    package mutating func storing() {
        guard case .bound = state else { return }
        isStoring = true
    }

    /// It is stored and published, or was refused.
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
            // A device may report itself again; its identity stays.
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

    /// The report is valid.
    package mutating func reportAccepted(_ principal: Principal) -> Action {
        guard case .checking = state else { return .ignore(.ended) }
        state = .bound(principal)
        return .bind(principal, .done)
    }

    /// The report is invalid, or could not be checked. The device may try again.
    package mutating func reportRefused(_ answer: QSIOPAnswer) -> Action {
        guard case .checking = state else { return .ignore(.ended) }
        state = .anonymous
        return .refuse(answer)
    }

    /// The next queued request, to be received again; nil if there is none, or it has to wait again.
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

    /// An entry is about to be pushed under this id.
    package mutating func pushed(_ seq: UInt64, id: String) {
        guard case .bound = state else { return }
        window.pushed(seq, id: id)
    }

    /// An entry is not pushed in this protocol.
    ///
    /// - Returns: the cursor's new place; nil if it stays.
    package mutating func skipped(_ seq: UInt64) -> UInt64? {
        guard case .bound = state else { return nil }
        return window.skipped(seq)
    }

    // MARK: The end

    /// The server ends the connection, for its own reasons or because the bytes are not QSIOP version 1.
    package mutating func removalDecided(_ answer: QSIOPAnswer) -> Action {
        guard state != .ended else { return .ignore(.ended) }
        end()
        return .close(answer)
    }

    /// The connection is closed.
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
