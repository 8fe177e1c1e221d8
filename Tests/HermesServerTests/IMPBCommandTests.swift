// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesProtocols
import HermesTestKit
import Testing

/// A back end's commands to IMPB devices.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct IMPBCommandTests {
    private static func phone(_ server: TestServer, _ device: String) throws -> IMPBClient {
        let address = ServerAddress(port: server.port("impb"))
        return try IMPBClient(IMPBClient.Configuration(server: address, device: ClientDevice(id: device)))
    }

    @Test func `a command reaches every connected device with its own bytes, and is not stored`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let phone = try Self.phone(server, "phone")
            let login = try await phone.logIn(.register(nickName: "ann", password: "secret1"))
            let tablet = try Self.phone(server, "tablet")
            _ = try await tablet.logIn(.password(nickName: "ann", password: "secret1"))
            let longest = String(repeating: "x", count: 32_768)
            let commands: [(payload: String, body: [UInt8])] = [
                (#"{"base64":"AP8H"}"#, [0, 255, 7]),
                (#"{"text":"go"}"#, Array("go".utf8)),
                (#"{"json":{"reload":"config"}}"#, Array(#"{"reload":"config"}"#.utf8)),
                (#"{"text":"\#(longest)"}"#, Array(longest.utf8)),
            ]
            for (payload, _) in commands {
                #expect(
                    try await api.send("POST", "/v1/users/ann/commands", #"{"payload":\#(payload)}"#).status == 202
                )
            }
            for device in [phone, tablet] {
                var left = commands.map(\.body)[...]
                for await event in device.events {
                    #expect(event == .notification(type: 3, body: left.first ?? []))
                    left.removeFirst()
                    if left.isEmpty { break }
                }
            }
            let uid = HermesCore.UserID(login.uid.rawValue)
            let user = try #require(uid)
            #expect(try await server.messenger().messageStore.position(of: user).head == 0)
            for device in [phone, tablet] { await device.close() }
        }
    }

    @Test func `a command that is too long, for nobody, without payload or scope is refused`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            _ = try await server.messenger().accounts.createAccount(nickName: "ann", password: "secret1")
            let path = "/v1/users/ann/commands"
            let long = String(repeating: "x", count: 32_769)
            #expect(try await api.send("POST", path, #"{"payload":{"text":"\#(long)"}}"#).status == 413)
            #expect(try await api.send("POST", path, #"{"payload":{"text":"a","base64":"AA=="}}"#).status == 422)
            #expect(try await api.send("POST", path, "{}").status == 422)
            #expect(try await api.send("POST", "/v1/users/eve/commands", #"{"payload":{"text":"a"}}"#).status == 404)
            let weak = try await APIClient(server, scopes: Set(APIScope.allCases).subtracting([.push]))
            #expect(try await weak.send("POST", path, #"{"payload":{"text":"a"}}"#).status == 403)
        }
    }
}
