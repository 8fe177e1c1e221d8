// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite("Deleting accounts", .inTurns, .timeLimit(.minutes(2)))
struct APIDeletionTests {
    private static func mqtt(
        _ server: TestServer,
        as name: String = "ann",
        password: String
    ) -> MQTTClient.Configuration {
        var configuration = MQTTClient.Configuration(
            server: ServerAddress(port: server.port("mqtt")),
            clientID: "phone"
        )
        configuration.userName = name
        configuration.password = password
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(600)
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], jitter: 0)
        return configuration
    }

    /// Returns the state in which a client has stopped by itself.
    private static func end(of states: AsyncStream<ConnectionState>) async -> ConnectionState? {
        for await state in states {
            if case .stopped = state { return state }
        }
        return nil
    }

    @Test(arguments: TestStore.allCases)
    func `a deleted account's connections end, and the next of its name finds nothing`(_ store: TestStore) async throws
    {
        try await withServer(store: store) { server in
            let api = try await APIClient(server)
            let account = #"{"nick_name":"ann","password":"secret1"}"#
            let uid = try #require(try await api.send("POST", "/v1/users", account).body["uid"]?.integer)

            let kept = try MQTTClient(Self.mqtt(server, password: "secret1"))
            #expect(try await !kept.connect().sessionPresent)
            try await kept.subscribe(to: "secrets/#", qos: .atLeastOnce)
            let states = kept.states
            var configuration = HermesClient.Configuration(
                server: ServerAddress(port: server.port("delimited")),
                device: DeviceDescription(id: "tablet")
            )
            configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], jitter: 0)
            let native = try HermesClient(configuration)
            _ = try await native.logIn(.password(nickName: "ann", password: "secret1"))
            let nativeStates = native.states

            #expect(try await api.send("DELETE", "/v1/users/ann").status == 204)
            guard case .stopped(let error?) = await Self.end(of: nativeStates) else {
                Issue.record("the native client goes on")
                return
            }
            #expect(error.code == .accountDisabled && error.message == "the account was deleted")
            _ = await Self.end(of: states)
            await kept.close()
            await native.close()

            #expect(try await api.send("DELETE", "/v1/users/ann").status == 404)
            #expect(try await api.send("GET", "/v1/users/\(uid)").status == 404)
            let next = try await api.send("POST", "/v1/users", account)
            #expect(next.status == 201)
            #expect(next.body["uid"]?.integer != uid)
            let heir = try MQTTClient(Self.mqtt(server, password: "secret1"))
            #expect(try await !heir.connect().sessionPresent)
            await heir.close()
        }
    }

    @Test
    func `a session without a connection goes with its account, from memory and from the store`() async throws {
        try await withServer(store: .sqlite) { server in
            let api = try await APIClient(server)
            let account = #"{"nick_name":"ann","password":"secret1"}"#
            for restarts in [false, true] {
                #expect(try await api.send("POST", "/v1/users", account).status == 201)
                let away = try MQTTClient(Self.mqtt(server, password: "secret1"))
                try await away.connect()
                try await away.subscribe(to: "secrets/#", qos: .atLeastOnce)
                await away.close()
                let messenger = try server.messenger()
                while messenger.durable.statistics.online > 0 { await Task.yield() }
                #expect(try await api.send("DELETE", "/v1/users/ann").status == 204)
                #expect(messenger.durable.statistics.sessions == 0)
                if restarts {
                    try await server.restart()
                    #expect(try server.messenger().durable.statistics.sessions == 0)
                }
                #expect(try await api.send("POST", "/v1/users", account).status == 201)
                let heir = try MQTTClient(Self.mqtt(server, password: "secret1"))
                #expect(try await !heir.connect().sessionPresent)
                await heir.close()
                #expect(try await api.send("DELETE", "/v1/users/ann").status == 204)
            }
        }
    }

    @Test(arguments: [false, true])
    func `who takes the name that another gave up gets none of its sessions; they stay with who had it`(
        isConnected: Bool
    ) async throws {
        try await withServer(store: .sqlite) { server in
            let api = try await APIClient(server)
            let account = #"{"nick_name":"ann","password":"secret1"}"#
            #expect(try await api.send("POST", "/v1/users", account).status == 201)
            let old = try MQTTClient(Self.mqtt(server, password: "secret1"))
            try await old.connect()
            try await old.subscribe(to: "secrets/#", qos: .atLeastOnce)
            let states = old.states
            let messenger = try server.messenger()
            if !isConnected {
                await old.close()
                while messenger.durable.statistics.online > 0 { await Task.yield() }
            }
            // A change of case alone does not make another name.
            #expect(try await api.send("PATCH", "/v1/users/ann", #"{"nick_name":"Ann"}"#).status == 200)
            #expect(messenger.durable.statistics.sessions == 1)
            #expect(try await api.send("PATCH", "/v1/users/ann", #"{"nick_name":"anna"}"#).status == 200)
            if isConnected { _ = await Self.end(of: states) }
            // The name is free after its last connection has ended.
            var status = try await api.send("POST", "/v1/users", account).status
            while isConnected, status == 409 {
                try await Task.sleep(for: .milliseconds(100))
                status = try await api.send("POST", "/v1/users", account).status
            }
            #expect(status == 201)
            let heir = try MQTTClient(Self.mqtt(server, password: "secret1"))
            #expect(try await !heir.connect().sessionPresent)
            await heir.close()
            await old.close()
            try await server.restart()
            let anna = try MQTTClient(Self.mqtt(server, as: "anna", password: "secret1"))
            #expect(try await anna.connect().sessionPresent)
            await anna.close()
        }
    }

    @Test
    func `an account that is disabled loses its MQTT connections, too`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            _ = try await api.send("POST", "/v1/users", #"{"nick_name":"ann","password":"secret1"}"#)
            let client = try MQTTClient(Self.mqtt(server, password: "secret1"))
            try await client.connect()
            let states = client.states
            #expect(try await api.send("PATCH", "/v1/users/ann", #"{"disabled":true}"#).status == 200)
            _ = await Self.end(of: states)
            await client.close()
        }
    }
}
