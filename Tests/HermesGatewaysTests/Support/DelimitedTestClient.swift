// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// A test client of the native protocol, without the SDK.
final class DelimitedTestClient: Sendable {
    let wire: WireClient<DelimitedFrameDecoder>

    private init(_ wire: WireClient<DelimitedFrameDecoder>) { self.wire = wire }

    static func connect(port: Int, authority: String? = nil) async throws -> DelimitedTestClient {
        DelimitedTestClient(try await .connect(port: port, authority: authority))
    }

    func write(_ id: UInt64, _ body: Hermes_V1_Packet.OneOf_Body) async throws {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.body = body
        try await wire.send(try DelimitedFrame(packet))
    }

    func next() async throws -> Hermes_V1_Packet {
        guard let frame = try await wire.next() else { throw Unexpected("the server closed the connection") }
        return try frame.packet()
    }

    /// Returns the result with this id. Skips all packets before it.
    func result(_ id: UInt64) async throws -> Hermes_V1_Result {
        while true {
            let packet = try await next()
            if case .result(let result) = packet.body, packet.id == id { return result }
        }
    }

    /// Returns the next inbox entry. Skips all packets before it.
    func event() async throws -> Hermes_V1_Event {
        while true {
            if case .event(let event) = try await next().body { return event }
        }
    }

    func ephemeral() async throws -> Hermes_V1_Ephemeral {
        while true {
            if case .ephemeral(let event) = try await next().body { return event }
        }
    }

    func kicked() async throws -> Hermes_V1_Kicked {
        while true {
            if case .kicked(let kicked) = try await next().body { return kicked }
        }
    }

    /// Writes a request and waits for its result.
    @discardableResult
    func ask(_ id: UInt64, _ body: Hermes_V1_Packet.OneOf_Body) async throws -> Hermes_V1_Result {
        try await write(id, body)
        return try await result(id)
    }

    // MARK: Requests

    func register(_ name: String, device: String = "one") async throws -> Hermes_V1_Session {
        var request = Hermes_V1_Register()
        request.nickName = name
        request.password = "password of \(name)"
        request.device.id = device
        return try session(await ask(1, .register(request)))
    }

    func authenticate(
        _ name: String,
        device: String,
        epoch: UInt64 = 0,
        acknowledged: UInt64 = 0,
        newest: Hermes_V1_KnownEntry? = nil,
        uid: UInt32 = 0
    ) async throws -> Hermes_V1_Session {
        var request = Hermes_V1_Authenticate()
        request.password.nickName = name
        request.password.password = "password of \(name)"
        request.device.id = device
        request.epoch = epoch
        request.acknowledgedSeq = acknowledged
        if let newest { request.newest = newest }
        request.uid = uid
        return try session(await ask(1, .authenticate(request)))
    }

    func authenticate(token: String, device: String) async throws -> Hermes_V1_Session {
        var request = Hermes_V1_Authenticate()
        request.token = token
        request.device.id = device
        return try session(await ask(1, .authenticate(request)))
    }

    private func session(_ result: Hermes_V1_Result) throws -> Hermes_V1_Session {
        guard case .session(let session) = result.value else { throw Unexpected("\(result.error)") }
        return session
    }

    func send(_ text: String, to uid: UInt32, id: UInt64, clientID: String = "") async throws {
        var request = Hermes_V1_Send()
        request.to.uid = uid
        request.clientID = clientID
        request.content.text = text
        try await write(id, .send(request))
    }

    func receipt(_ id: UInt64) async throws -> Hermes_V1_Receipt {
        let result = try await result(id)
        guard case .receipt(let receipt) = result.value else { throw Unexpected("\(result.error)") }
        return receipt
    }

    func acknowledge(_ seq: UInt64) async throws {
        var request = Hermes_V1_Acknowledge()
        request.upToSeq = seq
        try await ask(99, .acknowledge(request))
    }
}

extension Hermes_V1_KnownEntry {
    /// Creates the record of an event as a client keeps it.
    init(_ event: Hermes_V1_Event) {
        self.init()
        seq = event.seq
        if case .message(let message) = event.event { id = message.id }
        serverTimeMs = event.serverTimeMs
    }
}
