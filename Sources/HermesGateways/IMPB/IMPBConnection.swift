// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesWire
import NIOCore
import SwiftProtobuf

/// One connection of IMPB. It is used only on its event loop.
package final class IMPBConnection: GatewayConnection {
    package typealias Decoder = IMPBFrameDecoder

    let connection: Connection
    let environment: GatewayEnvironment
    private(set) var link: InboxLink?
    private(set) var login: Login?
    /// The login of the account that was registered on this connection; nil after an account has logged in.
    var registration: Login?
    /// Whether the client has ever acknowledged or pulled entries. If so, its other frames acknowledge nothing.
    private(set) var isAcknowledgingItself = false
    private var nextSeq: UInt32 = 1
    /// The subscription to broadcasts; nil before the login and after the end.
    var broadcasts: TopicSubscription?
    var access = ClientAccess()

    init(connection: Connection, environment: GatewayEnvironment) {
        self.connection = connection
        self.environment = environment
    }

    var messenger: Messenger { environment.messenger }

    /// The authenticated origin of a request.
    struct Sender {
        let principal: Principal
        let login: Login
        let link: InboxLink
    }

    var sender: Sender? {
        guard let link, let login else { return nil }
        return Sender(principal: link.principal, login: login, link: link)
    }

    // MARK: Frames

    package func received(_ frame: IMPBFrame) {
        switch frame.type {
        case .ping:
            acknowledgeImplicitly()
            connection.write { try frame.write(into: &$0) }
        case .request:
            request(frame)
        case .message:
            acknowledgeImplicitly()
            guard let sender else { return refuseStranger(frame.seq) }
            message(frame, from: sender)
        case .notification:
            // The frame is the client's receipt for a notification. The receipt for `offline_msg` acknowledges
            // nothing, because the client sends this receipt before it has the entries that wait.
            guard link != nil else { return refuseStranger(frame.seq) }
            let notification = try? IMPB_Notification_msg(wire: frame.body) { connection.charge(.parts($0)) }
            if notification?.type != .offlineMsg { acknowledgeImplicitly() }
        default:
            acknowledgeImplicitly()
            fail(frame.seq, HermesError(.invalidArgument, "a frame of type \(frame.type.rawValue) has no meaning"))
        }
    }

    private func request(_ frame: IMPBFrame) {
        guard let common: IMPB_Common = parse(frame.body, frame.seq) else { return acknowledgeImplicitly() }
        if common.method != .message { acknowledgeImplicitly() }
        switch common.method {
        case .user:
            guard let message: IMPB_User_msg = parse(common.body, frame.seq) else { return }
            user(message, seq: frame.seq)
        case .message:
            guard let message: IMPB_Message_msg = parse(common.body, frame.seq) else { return acknowledgeImplicitly() }
            switch message.cmd {
            case .ack, .pull: isAcknowledgingItself = true
            case .history, .recall, .read, .UNRECOGNIZED: acknowledgeImplicitly()
            }
            guard let sender else { return refuseStranger(frame.seq) }
            inbox(message, seq: frame.seq, from: sender)
        case .p2PConnect:
            guard let sender else { return refuseStranger(frame.seq) }
            guard let message: IMPB_p2p_connect = parse(common.body, frame.seq) else { return }
            connect(message, seq: frame.seq, from: sender)
        case .friend:
            guard let sender else { return refuseStranger(frame.seq) }
            guard let message: IMPB_Friend_msg = parse(common.body, frame.seq) else { return }
            friend(message, seq: frame.seq, from: sender)
        case .group:
            guard let sender else { return refuseStranger(frame.seq) }
            guard let message: IMPB_Group_cmd = parse(common.body, frame.seq) else { return }
            group(message, seq: frame.seq, from: sender)
        case .respond, .UNRECOGNIZED:
            fail(frame.seq, HermesError(.invalidArgument, "method \(common.method.rawValue) has no meaning"))
        }
    }

    /// Acknowledges all entries that were written before the present frame, if the client never acknowledges entries
    /// itself.
    private func acknowledgeImplicitly() {
        if !isAcknowledgingItself { link?.peerSpoke() }
    }

    private func refuseStranger(_ seq: UInt32) {
        fail(seq, HermesError(.notAuthenticated, "log in first"))
    }

    // MARK: Bodies

    /// Parses a frame's body. If it cannot be parsed, this function writes an error and returns nil.
    func parse<Body: WireMessage>(_ body: ByteBuffer, _ seq: UInt32) -> Body? {
        do {
            return try Body(wire: body) { connection.charge(.parts($0)) }
        } catch {
            fail(seq, HermesError(.invalidArgument, error.message))
            return nil
        }
    }

    /// Parses a nested message. If it cannot be parsed, this function writes an error and returns nil.
    func parse<Body: WireMessage>(_ body: some SwiftProtobufContiguousBytes, _ seq: UInt32) -> Body? {
        do {
            return try Body(wire: body) { connection.charge(.parts($0)) }
        } catch {
            fail(seq, HermesError(.invalidArgument, error.message))
            return nil
        }
    }

    // MARK: Answers

    func succeed(_ seq: UInt32) {
        var answer = IMPB_CommonRespon()
        answer.isSuc = true
        write(answer, seq: seq, type: .request)
    }

    func succeed(_ seq: UInt32, _ value: some WireMessage) {
        var answer = IMPB_CommonRespon()
        answer.isSuc = true
        do {
            answer.respon = try value.wireBytes()
            write(answer, seq: seq, type: .request)
        } catch {
            fail(seq, HermesError(.internalError, "the answer could not be written", cause: error))
        }
    }

    func fail(_ seq: UInt32, _ error: HermesError) {
        var answer = IMPB_CommonRespon()
        answer.error = IMPBTranslation.error(error)
        write(answer, seq: seq, type: .request)
    }

    func notify(_ notification: IMPB_Notification_msg) {
        write(notification, seq: takeSeq(), type: .notification)
    }

    func write(_ message: some WireMessage, seq: UInt32, type: IMPBFrameType) {
        connection.write { try IMPBFrame.write(message, seq: seq, type: type, into: &$0) }
    }

    /// Returns the number of the server's next frame that is not an answer.
    func takeSeq() -> UInt32 {
        defer { nextSeq &+= 1 }
        return nextSeq
    }

    // MARK: Life

    /// Binds the connection to an account.
    func authenticated(_ login: Login, at address: DirectAddress) {
        self.login = login
        connection.authenticated()
        connection.account = login.principal.user
        let link = InboxLink(
            principal: login.principal,
            connection: connection,
            messenger: messenger,
            directAddress: address,
            write: { [unowned self] entry in write(entry) }
        )
        self.link = link
        subscribeToBroadcasts()
        link.open(after: login.device.cursor, head: login.position.head)
    }

    package func farewell(_ reason: CloseReason) {
        if case .malformed(let error) = reason {
            fail(0, HermesError(.invalidArgument, error.message))
        } else if let user = link?.principal.user, let error = IMPBTranslation.farewell(reason) {
            notify(IMPBTranslation.kicked(error, user: user))
        }
        letGo()
    }

    package func closed() { letGo() }

    private func letGo() {
        unsubscribeFromBroadcasts()
        link?.close()
        link = nil
    }

    package func becameWritable() { link?.becameWritable() }

    package func accessChanged() { access.forget() }

    package func written(_ mark: UInt64) { link?.written(upTo: mark) }

    package func inboxAdvanced(_ entries: [InboxEntry]) { link?.advanced(entries) }
}
