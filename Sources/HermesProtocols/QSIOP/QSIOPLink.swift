// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Hermes
import HermesWire
import NIOCore

/// The QSIOP protocol. The server answers requests one by one, in their order. It answers pings at once, before earlier
/// requests.
struct QSIOPLink: ConnectionLink {
    typealias Decoder = QSIOPFrameDecoder
    typealias Request = QSIOPFrame
    typealias Answer = QSIOPFrame
    typealias Event = QSIOPPush
    typealias Login = Void

    /// The ids of frames that the link itself sends.
    private enum ID {
        static let report: UInt64 = 1
        static let heartbeat: UInt64 = 2
        static let acknowledgement: UInt64 = 3
    }

    let maxFrameBytes = QSIOPFrame.maxBodyBytes
    let identity: QSIOPClient.Identity?
    /// The requests that wait for a response (op 3), oldest first.
    private var responsesDue = Deque<UInt64>()
    /// The requests that wait for a pong (op 1), oldest first.
    private var pongsDue = Deque<UInt64>()
    /// The ids of pushes that have arrived but are not taken yet. If such a push arrives again, it is ignored.
    private var untaken: Set<String> = []
    /// The ids of taken pushes. If such a push arrives again, it is acknowledged again, but not delivered.
    private var taken = Deque<String>()

    private var strayLogins = StrayLogins()

    private static let maxRemembered = 1024

    init(identity: QSIOPClient.Identity?) { self.identity = identity }

    mutating func connected(effects: inout Effects) throws {
        responsesDue = []
        pongsDue = []
        guard let identity else { return effects.append(.authenticated(())) }
        strayLogins.began()
        effects.append(.send(Self.report(identity), id: ID.report))
    }

    mutating func lost() { strayLogins.connectionLost() }

    static func report(_ identity: QSIOPClient.Identity) -> QSIOPFrame {
        var properties = QSIOPProperties()
        properties.append("userid", String(identity.uid.rawValue))
        if let token = identity.token { properties.append("token", token) }
        if let device = identity.device { properties.append("device", device) }
        return QSIOPFrame(.report, properties)
    }

    mutating func received(_ frame: QSIOPFrame, now: NIODeadline, effects: inout Effects) throws {
        switch frame.operation {
        case .pong:
            guard let id = pongsDue.popFirst() else { return }
            if id >= 16 { effects.append(.answer(id: id, .success(frame))) }
        case .response:
            try responded(frame, effects: &effects)
        case .push:
            let push = QSIOPPush(try frame.properties())
            if taken.contains(push.id) {
                effects.append(.send(Self.acknowledgement(push.id), id: ID.acknowledgement))
            } else if untaken.count < Self.maxRemembered, untaken.insert(push.id).inserted {
                effects.append(.event(push))
            }
        default:
            // This is a frame of a newer version, so it is ignored.
            return
        }
    }

    private mutating func responded(_ frame: QSIOPFrame, effects: inout Effects) throws {
        let properties = try frame.properties()
        let code = UInt32(properties["code"] ?? "") ?? 9001
        // This code is not the answer to a request: the server is ending the connection.
        if code == HermesClientError.replacedOnServer {
            let error = HermesClientError(ending: code, properties["msg"] ?? "")
            return effects.append(.kicked(error, mayReturn: strayLogins.blame(), advice: nil))
        }
        guard let id = responsesDue.popFirst() else { return }
        let error = HermesClientError(
            HermesClientError.Code(rawValue: code),
            properties["msg"].flatMap { $0.isEmpty ? nil : $0 } ?? "the server answered code \(code)",
            retryAfter: (3000..<4000).contains(code) ? .seconds(5) : nil
        )
        switch id {
        case ID.report:
            strayLogins.answered()
            effects.append(code == 0 ? .authenticated(()) : .refused(error))
        case 16...:
            effects.append(.answer(id: id, code == 0 ? .success(frame) : .failure(error)))
        default:
            return
        }
    }

    mutating func write(_ request: QSIOPFrame, id: UInt64, into buffer: inout ByteBuffer) throws {
        try request.write(into: &buffer)
        if request.operation == .ping { pongsDue.append(id) } else { responsesDue.append(id) }
    }

    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws {
        try write(QSIOPFrame(.ping), id: ID.heartbeat, into: &buffer)
    }

    mutating func taken(_ event: QSIOPPush, now: NIODeadline, effects: inout Effects) {
        untaken.remove(event.id)
        taken.append(event.id)
        if taken.count > Self.maxRemembered { taken.removeFirst() }
        effects.append(.send(Self.acknowledgement(event.id), id: ID.acknowledgement))
    }

    private static func acknowledgement(_ id: String) -> QSIOPFrame { QSIOPFrame(.pushAcknowledge, ["id": id]) }
}

extension QSIOPPush {
    init(_ properties: QSIOPProperties) {
        var values: [String: String] = [:]
        for pair in properties.pairs { values[pair.key] = pair.value }
        self.init(
            id: values["id"] ?? "",
            title: values["title"] ?? "",
            body: values["body"] ?? "",
            values: values
        )
    }
}
