// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesProtocols
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite("Invitations to register", .inTurns, .timeLimit(.minutes(1)))
struct APIInvitationTests {
    /// The protocols for registering.
    enum Way: CaseIterable, Sendable { case delimited, webSocket, impb }

    private static func register(
        _ name: String,
        _ invitation: String,
        _ way: Way,
        at server: TestServer
    ) async throws -> HermesClientError.Code? {
        let credential = ClientCredential.register(nickName: name, password: "secret1", invitation: invitation)
        let device = ClientDevice(id: "phone")
        do {
            switch way {
            case .delimited:
                let address = ServerAddress(port: server.port("delimited"))
                let client = try HermesClient(HermesClient.Configuration(server: address, device: device))
                _ = try await client.logIn(credential)
                await client.close()
            case .webSocket:
                let address = try #require(ServerAddress("ws://127.0.0.1:\(server.port("http"))"))
                let client = try HermesClient(HermesClient.Configuration(server: address, device: device))
                _ = try await client.logIn(credential)
                await client.close()
            case .impb:
                let address = ServerAddress(port: server.port("impb"))
                let client = try IMPBClient(IMPBClient.Configuration(server: address, device: device))
                _ = try await client.logIn(credential)
                await client.close()
            }
            return nil
        } catch let error as HermesClientError {
            return error.code
        }
    }

    private static func invited(_ settings: inout ServerSettings) { settings.accounts.registration = .invitation }

    @Test(arguments: Way.allCases)
    func `a code made by the API lets one in over every protocol; nobody comes in without`(_ way: Way) async throws {
        try await withServer(configure: Self.invited) { server in
            let api = try await APIClient(server)
            let made = try await api.send("POST", "/v1/invitations", #"{"name":"friends","uses":1,"days":7}"#)
            #expect(made.status == 201)
            let code = try #require(made.body["code"]?.string)
            #expect(try await Self.register("ann", "", way, at: server) == .invitationRequired)
            #expect(try await Self.register("ann", "AAAAA-AAAAA-AAAAA-AAAAA", way, at: server) == .invitationRequired)
            #expect(try await Self.register("ann", code.lowercased(), way, at: server) == nil)
            #expect(try await Self.register("bob", code, way, at: server) == .invitationRequired)
            let list = try await api.send("GET", "/v1/invitations").body["invitations"]?.array
            #expect(list?.map { $0["used"]?.integer } == [1])
        }
    }

    @Test(arguments: TestStore.allCases)
    func `invitations are made, listed and revoked`(_ store: TestStore) async throws {
        try await withServer(store: store, configure: Self.invited) { server in
            let api = try await APIClient(server)
            let made = try await api.send("POST", "/v1/invitations", #"{"name":"ever","days":0}"#)
            #expect(made.status == 201)
            #expect(made.body["invitation"]?["uses"]?.integer == 1)
            #expect(made.body["invitation"]?["expires_at_ms"] == nil)
            #expect(try await api.send("POST", "/v1/invitations", #"{"name":"ever"}"#).status == 409)
            for body in [#"{"name":"a b"}"#, #"{"name":"x","uses":0}"#, #"{"name":"x","days":99999}"#, "{}"] {
                #expect(try await api.send("POST", "/v1/invitations", body).status == 422)
            }
            #expect(try await api.send("DELETE", "/v1/invitations/ever").status == 204)
            #expect(try await api.send("DELETE", "/v1/invitations/ever").status == 404)
            #expect(try await api.send("GET", "/v1/invitations").body["invitations"]?.array == [])
            let code = try #require(made.body["code"]?.string)
            #expect(try await Self.register("ann", code, .delimited, at: server) == .invitationRequired)
            let reader = try await APIClient(server, scopes: [.usersRead])
            #expect(try await reader.send("GET", "/v1/invitations").status == 200)
            #expect(try await reader.send("POST", "/v1/invitations", #"{"name":"x"}"#).status == 403)
        }
    }
}
