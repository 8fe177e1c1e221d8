// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct FailedLoginTests {
    /// Returns a metric; 0 if there is none.
    private func value(_ metric: String) -> Int {
        let beginning = "\(metric) "
        let lines = MetricsRegistry.shared.text().split(separator: "\n")
        return lines.first { $0.hasPrefix(beginning) }.flatMap { Int($0.dropFirst(beginning.count)) } ?? 0
    }

    /// Returns the fields of the lines about failures at a listener. The server may log a line a moment after the client
    /// has the answer.
    private func lines(
        of server: TestServer,
        label: String,
        message: String = "login failed"
    ) async throws -> [String] {
        let tail = try #require(try server.assembly().tail)
        let deadline = ContinuousClock.now + .seconds(20)
        var found = tail.lines(label: label, containing: message, limit: 10)
        while found.isEmpty, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(10))
            found = tail.lines(label: label, containing: message, limit: 10)
        }
        return found.map(\.fields)
    }

    @Test(arguments: MQTTClient.Version.allCases)
    func `a wrong MQTT password is counted as such and logged without the password`(
        version: MQTTClient.Version
    ) async throws {
        try await withServer { server in
            let counted = "{gateway=\"mqtt\",reason=\"bad_credentials\"}"
            let malformed = "hermes_connections_ended_total{gateway=\"mqtt\",reason=\"malformed\"}"
            // Other servers in this process count with the same counters.
            let before = (
                failed: value("hermes_logins_failed_total\(counted)"),
                ended: value("hermes_connections_ended_total\(counted)"), malformed: value(malformed)
            )
            var configuration = MQTTClient.Configuration(
                server: ServerAddress(port: server.port("mqtt")),
                clientID: "lamp-1"
            )
            configuration.userName = "ann"
            configuration.password = "opensesame"
            configuration.version = version
            configuration.reconnect = .never
            let client = try MQTTClient(configuration)
            await #expect(throws: HermesClientError.self) { try await client.connect() }
            let lines = try await lines(of: server, label: "mqtt")
            #expect(lines.count == 1)
            let line = lines.first ?? ""
            for field in ["reason=bad_credentials", "address=127.0.0.1", "user=ann", "client=lamp-1"] {
                #expect(line.contains(field), "\(field): \(line)")
            }
            #expect(!line.contains("opensesame"))
            #expect(value("hermes_logins_failed_total\(counted)") > before.failed)
            #expect(value("hermes_connections_ended_total\(counted)") > before.ended)
            #expect(value(malformed) == before.malformed)
            await client.close()
        }
    }

    @Test(arguments: MQTTClient.Version.allCases)
    func `a refused will is counted and logged as a failed login`(version: MQTTClient.Version) async throws {
        try await withServer { server in
            let metric = "hermes_logins_failed_total{gateway=\"mqtt\",reason=\"not_authorized\"}"
            let before = value(metric)
            var configuration = MQTTClient.Configuration(
                server: ServerAddress(port: server.port("mqtt")),
                clientID: "lamp-1"
            )
            configuration.will = MQTTMessage(topic: "hermes/v1/up", text: "gone")
            configuration.version = version
            configuration.reconnect = .never
            let client = try MQTTClient(configuration)
            await #expect(throws: HermesClientError.self) { try await client.connect() }
            await client.close()
            let line = try await lines(of: server, label: "mqtt").first ?? ""
            for field in ["reason=not_authorized", "address=127.0.0.1", "client=lamp-1"] {
                #expect(line.contains(field), "\(field): \(line)")
            }
            #expect(value(metric) > before)
        }
    }

    @Test func `a CONNECT whose packet of the native protocol is no login is counted and logged`() async throws {
        try await withServer { server in
            let metric = "hermes_logins_failed_total{gateway=\"mqtt\",reason=\"not_authorized\"}"
            let before = value(metric)
            var packet = Hermes_V1_Packet()
            packet.typing.stopped = true
            var connect = MQTTConnect(version: .v5, clientID: "tablet-1")
            connect.properties = [.authenticationMethod("hermes.v1"), .authenticationData(try packet.wireBuffer())]
            var bytes = ByteBuffer()
            try MQTTPacket.connect(connect).write(into: &bytes, version: .v5)
            let client = try await WebSocketClient.connect(port: server.port("mqtt"))
            try await client.send([UInt8](buffer: bytes))
            _ = await client.rest()
            let line = try await lines(of: server, label: "mqtt").first ?? ""
            for field in ["reason=not_authorized", "address=127.0.0.1", "client=tablet-1"] {
                #expect(line.contains(field), "\(field): \(line)")
            }
            #expect(value(metric) > before)
        }
    }

    @Test func `a wrong password of the native protocol is counted and logged`() async throws {
        try await withServer { server in
            let metric = "hermes_logins_failed_total{gateway=\"delimited\",reason=\"bad_credentials\"}"
            let before = value(metric)
            let client = try HermesClient(
                HermesClient.Configuration(
                    server: ServerAddress(port: server.port("delimited")),
                    device: DeviceDescription(id: "phone")
                )
            )
            await #expect(throws: HermesClientError.self) {
                _ = try await client.logIn(.password(nickName: "nobody", password: "opensesame"))
            }
            await client.close()
            let line = try await lines(of: server, label: "delimited").first ?? ""
            for field in ["reason=bad_credentials", "address=127.0.0.1", "user=nobody", "client=phone"] {
                #expect(line.contains(field), "\(field): \(line)")
            }
            #expect(!line.contains("opensesame"))
            #expect(value(metric) > before)
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade))
    func `a client that does not speak TLS is counted and logged`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        func encrypted(_ settings: inout ServerSettings) {
            settings.gateways[listener: "mqtt"]?.tls = files.settings
        }
        try await withServer(configure: encrypted) { server in
            let metric = "hermes_tls_handshakes_failed_total{gateway=\"mqtt\"}"
            let before = value(metric)
            await #expect(throws: HermesClientError.self) { try await server.mqtt(as: nil, id: "plain").connect() }
            let line = try await lines(of: server, label: "mqtt", message: "TLS handshake failed").first ?? ""
            #expect(line.contains("address=127.0.0.1"), "\(line)")
            #expect(line.contains("reason=") && !line.contains(".cc"), "\(line)")
            #expect(value(metric) > before)
        }
    }

    #if Pages
    @Test func `a wrong password of an administrator is counted and logged`() async throws {
        try await withServer(store: .sqlite) { server in
            let metric = "hermes_logins_failed_total{gateway=\"console\",reason=\"bad_credentials\"}"
            let before = value(metric)
            #expect(try await ConsoleProbe(server).logIn("boss", "opensesame").status == 403)
            let line = try await lines(of: server, label: "console").first ?? ""
            for field in ["reason=bad_credentials", "address=127.0.0.1", "user=boss"] {
                #expect(line.contains(field), "\(field): \(line)")
            }
            #expect(!line.contains("opensesame"))
            #expect(value(metric) > before)
        }
    }
    #endif

    /// The failed handshakes of both ports are counted in the metric of the HTTP port.
    @Test(.enabled(if: TestCertificate.canBeMade), arguments: WebPages.areBuiltIn ? ["http", "console"] : ["http"])
    func `a client that does not speak TLS to the HTTP port or the console is counted and logged`(
        name: String
    ) async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        func encrypted(_ settings: inout ServerSettings) {
            if name == "http" {
                settings.http.listener.tls = files.settings
            } else {
                settings.console.listener.tls = files.settings
            }
        }
        try await withServer(store: .sqlite, configure: encrypted) { server in
            let metric = "hermes_tls_handshakes_failed_total{gateway=\"http\"}"
            let before = value(metric)
            _ = try? await HTTPProbe.get("/healthz", port: server.port(name))
            let line = try await lines(of: server, label: name, message: "TLS handshake failed").first ?? ""
            #expect(line.contains("address=127.0.0.1"), "\(line)")
            #expect(line.contains("reason=") && !line.contains(".cc"), "\(line)")
            #expect(value(metric) > before)
        }
    }

    @Test func `a bad API key is counted and logged without the key`() async throws {
        try await withServer { server in
            let metric = "hermes_logins_failed_total{gateway=\"http\",reason=\"bad_credentials\"}"
            let before = value(metric)
            let answer = try await HTTPProbe.send(
                "GET",
                "/v1/users",
                headers: [("Authorization", "Bearer hk_opensesame")],
                port: server.port("http")
            )
            #expect(answer.status == 401)
            let line = try await lines(of: server, label: "http").first ?? ""
            for field in ["reason=bad_credentials", "address=127.0.0.1"] {
                #expect(line.contains(field), "\(field): \(line)")
            }
            #expect(!line.contains("opensesame"))
            #expect(value(metric) > before)
        }
    }
}
