// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import Hermes
@testable import HermesProtocols

/// A text that the server would not accept, but sends. The client accepts it, because it would get the same text after
/// each new login.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct UncheckedTextTests {
    private static let marks = String(repeating: "\u{301}", count: StreamSafeText.maxRun + 1)

    private static func login() throws -> IMPBFrame {
        var login = IMPB_login_response()
        login.uid = 7
        login.token = "t"
        login.epoch = 1
        login.headSeq = 1
        var reply = IMPB_CommonRespon()
        reply.isSuc = true
        reply.respon = try login.wireBytes()
        return IMPBFrame(seq: 1, type: .request, body: try reply.wireBuffer())
    }

    private static func message() throws -> IMPBFrame {
        var content = IMPB_msg_cumstom_content()
        content.info.key = "x"
        content.info.value = marks
        var message = IMPB_C2C_msg()
        message.seq = 1
        message.type = .custom
        message.content = try content.wireBytes()
        var base = IMPB_base_msg()
        base.type = .c2C
        base.body = try message.wireBytes()
        return IMPBFrame(seq: 1, type: .message, body: try base.wireBuffer())
    }

    @Test func `over IMPB`() async throws {
        let server = try await FakeServer<IMPBFrameDecoder> { frame, connection in
            // Answer only the login, not the acknowledgements.
            guard frame.type == .request, frame.seq == 1 else { return }
            do {
                connection.send(try Self.login(), try Self.message())
            } catch {
                Issue.record(error)
            }
        }
        var configuration = IMPBClient.Configuration(
            server: ServerAddress(port: server.port),
            device: DeviceDescription(id: "phone")
        )
        configuration.conditions = DeviceConditions()
        let client = try IMPBClient(configuration)
        _ = try await client.logIn(.token("t"))
        for await event in client.events {
            guard case .message(let message) = event else { continue }
            #expect(message.content == .custom(type: "x", data: Array(Self.marks.utf8)))
            break
        }
        #expect(server.connectionCount == 1)
        await client.close()
        try await server.stop()
    }

    @Test func `over QSIOP`() async throws {
        let server = try await FakeServer<QSIOPFrameDecoder> { frame, connection in
            guard frame.operation == .report else { return }
            connection.send(QSIOPFrame(.response, ["code": "0"]))
            connection.send(QSIOPFrame(.push, ["id": "1", "body": Self.marks]))
        }
        var configuration = QSIOPClient.Configuration(
            server: ServerAddress(port: server.port),
            identity: QSIOPClient.Identity(uid: 7)
        )
        configuration.conditions = DeviceConditions()
        let client = try QSIOPClient(configuration)
        try await client.connect()
        for await push in client.pushes {
            #expect(push.body.utf8.count == Self.marks.utf8.count)
            break
        }
        #expect(server.connectionCount == 1)
        await client.close()
        try await server.stop()
    }
}
