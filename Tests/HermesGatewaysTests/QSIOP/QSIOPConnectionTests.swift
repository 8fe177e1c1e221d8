// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Tests every event in every state of a device's session.
@Suite struct QSIOPSessionTests {
    let principal: Principal
    let report: QSIOPReport
    let refusal = QSIOPAnswer(.invalidToken, "no")

    init() throws {
        let user = try #require(UserID(7))
        let device = try #require(DeviceID("qsiop"))
        principal = Principal(user: user, nickName: try NickName("ann"), device: device)
        report = QSIOPReport(user: user, token: "secret", device: device)
    }

    static let ping = QSIOPFrame(.ping)
    static let unknown = QSIOPFrame(QSIOPOperation(rawValue: 7))
    static let reportFrame = QSIOPFrame(.report, ["userid": "7", "token": "secret"])

    func acknowledgement(_ id: String) -> QSIOPFrame { QSIOPFrame(.pushAcknowledge, ["id": id]) }

    func anonymous(requiresToken: Bool = true) -> QSIOPConnection {
        QSIOPConnection(rules: QSIOPRules(requiresToken: requiresToken, maxWaitingRequests: 3, maxWaitingBytes: 200))
    }

    func checking() -> QSIOPConnection {
        var session = anonymous()
        #expect(session.frameReceived(Self.reportFrame) == .check(report))
        #expect(session.state == .checking(report))
        return session
    }

    func bound() -> QSIOPConnection {
        var session = checking()
        #expect(session.reportAccepted(principal) == .bind(principal, .done))
        #expect(session.state == .bound(principal))
        return session
    }

    func ended() -> QSIOPConnection {
        var session = anonymous()
        #expect(session.connectionClosed() == .close(nil))
        return session
    }

    func code(_ action: QSIOPConnection.Action) -> UInt32? {
        switch action {
        case .respond(let answer), .close(let answer?): answer.code
        default: nil
        }
    }

    // MARK: Frames in every state

    @Test func `a ping is answered at once in any state`() {
        for var session in [anonymous(), checking(), bound()] {
            #expect(session.frameReceived(Self.ping) == .pong)
        }
        var ended = ended()
        #expect(ended.frameReceived(Self.ping) == .ignore(.ended))
    }

    @Test(arguments: [QSIOPOperation.pong, .response, .push])
    func `what the server sends asks for nothing`(operation: QSIOPOperation) {
        for var session in [anonymous(), checking(), bound()] {
            #expect(session.frameReceived(QSIOPFrame(operation)) == .ignore(.serverOperation))
        }
    }

    @Test func `an unknown operation is answered with 404`() {
        for var session in [anonymous(), bound()] {
            #expect(code(session.frameReceived(Self.unknown)) == 404)
        }
        var checking = checking()
        #expect(checking.frameReceived(Self.unknown) == .ignore(.waiting))
    }

    @Test func `bad reports are answered and change nothing`() {
        let long = String(repeating: "d", count: 65)
        let bad: [(QSIOPFrame, HermesError.Code)] = [
            (QSIOPFrame(.report), .invalidArgument),
            (QSIOPFrame(.report, ["userid": "", "token": "t"]), .invalidArgument),
            (QSIOPFrame(.report, ["userid": "-7", "token": "t"]), .invalidArgument),
            (QSIOPFrame(.report, ["userid": "+7", "token": "t"]), .invalidArgument),
            (QSIOPFrame(.report, ["userid": "ann", "token": "t"]), .invalidArgument),
            (QSIOPFrame(.report, ["userid": "7", "token": "t", "device": "no spaces"]), .invalidArgument),
            (QSIOPFrame(.report, ["userid": "7", "token": "t", "device": long]), .tooLarge),
            (QSIOPFrame(.report, ["userid": "7"]), .notAuthenticated),
            (QSIOPFrame(.report, ["userid": "7", "token": ""]), .notAuthenticated),
            (QSIOPFrame(.report, ["userid": "7", "token": String(repeating: "t", count: 257)]), .invalidToken),
            (QSIOPFrame(.report, body: ByteBuffer(bytes: [0xFF, 0xFE, 0x3A, 0xC0])), .invalidArgument),
        ]
        for (frame, expected) in bad {
            var session = anonymous()
            #expect(code(session.frameReceived(frame)) == expected.rawValue, "\(frame.body)")
            #expect(session.state == .anonymous)
        }
    }

    @Test(arguments: ["0", "2147483648", "99999999999999999999"])
    func `a userid that no account can have is checked like any other`(userid: String) {
        var session = anonymous()
        let action = session.frameReceived(QSIOPFrame(.report, ["userid": userid, "token": "secret"]))
        #expect(action == .check(QSIOPReport(user: nil, token: "secret", device: principal.device)))
    }

    @Test func `without the need for a token the userid is believed`() throws {
        var session = anonymous(requiresToken: false)
        let phone = try #require(DeviceID("pager"))
        let action = session.frameReceived(QSIOPFrame(.report, ["userid": "7", "device": "pager"]))
        #expect(action == .check(QSIOPReport(user: principal.user, token: nil, device: phone)))
        // A token is checked even if none is required.
        var other = anonymous(requiresToken: false)
        #expect(other.frameReceived(Self.reportFrame) == .check(report))
    }

    @Test func `reporting again is harmless unless it is somebody else`() {
        var session = bound()
        #expect(session.frameReceived(Self.reportFrame) == .respond(.done))
        let other = QSIOPFrame(.report, ["userid": "8", "token": "secret"])
        #expect(code(session.frameReceived(other)) == HermesError.Code.alreadyAuthenticated.rawValue)
        let device = QSIOPFrame(.report, ["userid": "7", "token": "secret", "device": "pager"])
        #expect(code(session.frameReceived(device)) == HermesError.Code.alreadyAuthenticated.rawValue)
        #expect(session.state == .bound(principal))
    }

    // MARK: Order

    @Test func `later requests wait for the answer to a report`() {
        var session = checking()
        #expect(session.frameReceived(Self.unknown) == .ignore(.waiting))
        #expect(session.frameReceived(acknowledgement("m1")) == .ignore(.waiting))
        #expect(session.waitingTaken() == nil)
        _ = session.reportAccepted(principal)
        #expect(session.waitingTaken() == Self.unknown)
        #expect(session.waitingTaken() == acknowledgement("m1"))
        #expect(session.waitingTaken() == nil)
    }

    @Test func `a second report holds the rest back again`() {
        var session = checking()
        _ = session.frameReceived(Self.reportFrame)
        _ = session.frameReceived(Self.unknown)
        #expect(session.reportRefused(refusal) == .refuse(refusal))
        let second = session.waitingTaken()
        #expect(second == Self.reportFrame)
        #expect(session.frameReceived(Self.reportFrame) == .check(report))
        #expect(session.waitingTaken() == nil)
        _ = session.reportAccepted(principal)
        #expect(session.waitingTaken() == Self.unknown)
    }

    @Test func `the application's operations need an account`() {
        let operation = QSIOPOperation(rawValue: 16)
        let frame = QSIOPFrame(operation, ["t": "1"])
        var anonymous = anonymous()
        #expect(code(anonymous.frameReceived(frame)) == HermesError.Code.notAuthenticated.rawValue)
        var bound = bound()
        #expect(bound.frameReceived(frame) == .publish(operation, ByteBuffer(string: #"{"t":"1"}"#)))
        let badText = QSIOPFrame(operation, body: ByteBuffer(bytes: [0xFF]))
        #expect(code(bound.frameReceived(badText)) == HermesError.Code.invalidArgument.rawValue)
        var checking = checking()
        #expect(checking.frameReceived(frame) == .ignore(.waiting))
        var ended = ended()
        #expect(ended.frameReceived(frame) == .ignore(.ended))
    }

    @Test func `later requests wait for an operation that is stored`() {
        var session = bound()
        session.storing()
        #expect(session.frameReceived(Self.unknown) == .ignore(.waiting))
        #expect(session.frameReceived(QSIOPFrame(.ping)) == .pong)
        #expect(session.waitingTaken() == nil)
        #expect(session.published(.done) == .published(.done))
        #expect(session.published(.done) == .ignore(.ended))
        #expect(session.waitingTaken() == Self.unknown)
        session.storing()
        _ = session.connectionClosed()
        #expect(session.published(.done) == .ignore(.ended))
    }

    @Test func `what waits is bounded`() {
        var many = checking()
        for _ in 0..<3 { #expect(many.frameReceived(Self.unknown) == .ignore(.waiting)) }
        #expect(code(many.frameReceived(Self.unknown)) == HermesError.Code.overloaded.rawValue)
        #expect(many.state == .ended)
        #expect(many.waitingTaken() == nil)

        var large = checking()
        let frame = QSIOPFrame(QSIOPOperation(rawValue: 9), body: ByteBuffer(repeating: 0x61, count: 195))
        #expect(code(large.frameReceived(frame)) == HermesError.Code.overloaded.rawValue)
    }

    // MARK: Acknowledgements

    @Test func `pushes are acknowledged by id`() {
        var session = bound()
        session.pushed(5, id: "m5")
        session.pushed(6, id: "m6")
        #expect(session.frameReceived(acknowledgement("m6")) == .respond(.done))
        #expect(session.frameReceived(acknowledgement("m5")) == .acknowledge(.done, upTo: 6))
        #expect(code(session.frameReceived(acknowledgement("m5"))) == HermesError.Code.notFound.rawValue)
        #expect(code(session.frameReceived(QSIOPFrame(.pushAcknowledge))) == HermesError.Code.invalidArgument.rawValue)
        #expect(session.skipped(7) == 7)
    }

    @Test func `who is nobody has nothing to acknowledge`() {
        var session = anonymous()
        session.pushed(5, id: "m5")
        #expect(session.skipped(6) == nil)
        #expect(code(session.frameReceived(acknowledgement("m5"))) == HermesError.Code.notAuthenticated.rawValue)
        for var other in [checking(), ended()] {
            other.pushed(5, id: "m5")
            #expect(other.skipped(6) == nil)
            #expect(other.window.count == 0)
        }
    }

    // MARK: The check and the end

    @Test func `answers without a question do nothing`() {
        for var session in [anonymous(), bound(), ended()] {
            let state = session.state
            #expect(session.reportAccepted(principal) == .ignore(.ended))
            #expect(session.reportRefused(refusal) == .ignore(.ended))
            #expect(session.state == state)
        }
    }

    @Test func `a refused device may try again`() {
        var session = checking()
        #expect(session.reportRefused(refusal) == .refuse(refusal))
        #expect(session.state == .anonymous)
        #expect(session.frameReceived(Self.reportFrame) == .check(report))
    }

    @Test func `the end in every state`() {
        for var session in [anonymous(), checking(), bound()] {
            var other = session
            #expect(session.removalDecided(refusal) == .close(refusal))
            #expect(session.removalDecided(refusal) == .ignore(.ended))
            #expect(session.connectionClosed() == .ignore(.ended))
            #expect(other.connectionClosed() == .close(nil))
            #expect(other.frameReceived(Self.reportFrame) == .ignore(.ended))
            #expect(other.reportAccepted(principal) == .ignore(.ended))
        }
    }
}
