// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOConcurrencyHelpers
import NIOSSL

@testable import Hermes

typealias FakeHermesServer = FakeServer<DelimitedFrameDecoder>

extension FakeServer.Connection where Decoder == DelimitedFrameDecoder {
    func send(_ body: Hermes_V1_Packet.OneOf_Body, id: UInt64 = 0) {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.body = body
        guard let frame = try? DelimitedFrame(packet) else { return }
        send(frame)
    }

    func refuse(_ code: UInt32, _ message: String, retryAfter: UInt32 = 0, id: UInt64) {
        var result = Hermes_V1_Result()
        result.error.code = code
        result.error.message = message
        result.error.retryAfterMs = retryAfter
        send(.result(result), id: id)
    }

    /// Accepts the login with a new token. The uid is 7 by default.
    func accept(
        id: UInt64,
        epoch: UInt64 = 1,
        head: UInt64 = 0,
        acknowledged: UInt64 = 0,
        token: String = "token-1",
        uid: UInt32 = 7,
        maxFrameBytes: UInt32 = 0,
        inboxReset: Bool = false
    ) {
        var result = Hermes_V1_Result()
        result.session.uid = uid
        result.session.nickName = "ann"
        result.session.maxFrameBytes = maxFrameBytes
        result.session.token = token
        result.session.epoch = epoch
        result.session.headSeq = head
        result.session.acknowledgedSeq = acknowledged
        result.session.inboxReset = inboxReset
        send(.result(result), id: id)
    }

    func receipt(for send: Hermes_V1_Send, id: UInt64, seq: UInt64 = 0, duplicate: Bool = false) {
        var result = Hermes_V1_Result()
        result.receipt.messageID = "M-" + send.clientID
        result.receipt.clientID = send.clientID
        result.receipt.conversationSeq = seq
        result.receipt.inboxSeq = seq
        result.receipt.duplicate = duplicate
        self.send(.result(result), id: id)
    }

    /// Ends the connection because a request breaks the protocol. Older servers send no code.
    func endForBreach(_ message: String = "", _ code: WireError.Code? = nil) {
        var kicked = Hermes_V1_Kicked()
        kicked.reason = .protocol
        kicked.message = message
        if let code { kicked.code = code.rawValue }
        send(.kicked(kicked))
        close()
    }

    /// Sends an inbox entry: a text from uid 8.
    func event(_ seq: UInt64, _ text: String, own clientID: String? = nil, id: String? = nil) {
        var event = Hermes_V1_Event()
        event.seq = seq
        event.message.id = id ?? "M\(seq)"
        event.message.conversation.uid = 8
        event.message.conversationSeq = seq
        event.message.fromUid = clientID == nil ? 8 : 7
        event.message.fromNickName = clientID == nil ? "bob" : "ann"
        event.message.content.text = text
        event.message.own = clientID != nil
        event.message.clientID = clientID ?? ""
        send(.event(event))
    }
}

extension FakeServer where Decoder == DelimitedFrameDecoder {
    /// Creates a server whose script gets packets.
    static func scripted(
        port: Int = 0,
        tls: NIOSSLContext? = nil,
        _ script: @escaping @Sendable (Hermes_V1_Packet, Connection) -> Void
    ) async throws -> FakeServer {
        try await FakeServer(port: port, tls: tls) { frame, connection in
            guard let packet = try? frame.packet() else { return connection.close() }
            script(packet, connection)
        }
    }

    /// Waits for a packet.
    func firstPacket(where isWanted: (Int, Hermes_V1_Packet) -> Bool) async -> Hermes_V1_Packet? {
        for await (number, frame) in received {
            guard let packet = try? frame.packet() else { continue }
            if isWanted(number, packet) { return packet }
        }
        return nil
    }
}

extension HermesClient.Configuration {
    /// A configuration for a fake server. The client reconnects at once.
    static func fake(_ server: FakeHermesServer) -> Self { fake(port: server.port) }

    static func fake(port: Int) -> Self {
        var configuration = Self(
            server: ServerAddress(port: port),
            device: DeviceDescription(id: "test-device", name: "Test")
        )
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(5)], jitter: 0)
        return configuration
    }
}

/// The records of a script.
struct Log<Element: Sendable>: Sendable {
    private let box = NIOLockedValueBox<[Element]>([])

    func append(_ element: Element) { box.withLockedValue { $0.append(element) } }
    var all: [Element] { box.withLockedValue { $0 } }
    /// Adds an element, and returns the new number of elements.
    func count(adding element: Element) -> Int {
        box.withLockedValue {
            $0.append(element)
            return $0.count
        }
    }
}

extension Hermes_V1_Authenticate {
    /// Returns the seq up to which the client has the entries of this account; 0 if it names another account's place.
    func acknowledged(by account: UInt32) -> UInt64 { uid == 0 || uid == account ? acknowledgedSeq : 0 }
}
