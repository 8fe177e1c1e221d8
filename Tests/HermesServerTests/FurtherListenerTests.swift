// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Hermes
import HermesCore
import HermesGateways
import HermesServer
import HermesTestKit
import NIOCore
import Testing

/// Several listeners for one protocol.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct FurtherListenerTests {
    private func load(
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        yaml: String? = nil
    ) throws
        -> GatewaySettings
    {
        let path = NSTemporaryDirectory() + "/hermes-\(UUID().uuidString).yaml"
        if let yaml { try yaml.write(toFile: path, atomically: true, encoding: .utf8) }
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = yaml == nil ? nil : path
        return try ServerSettings.load(
            SettingSources(arguments: arguments, environment: environment, file: file)
        ).gateways
    }

    @Test func `a name with a protocol is a listener, wherever it is given`() throws {
        let expected = FurtherListener(
            name: "factory",
            gateway: "mqtt",
            settings: ListenerSettings(host: "127.0.0.2", port: 1884)
        )
        let arguments = ["--listeners.factory.protocol", "mqtt", "--listeners.factory.port=1884"]
        #expect(try load(arguments + ["--listeners.factory.host", "127.0.0.2"]).further == [expected])
        let environment = [
            "HERMES_LISTENERS_FACTORY_PROTOCOL": "mqtt", "HERMES_LISTENERS_FACTORY_PORT": "1884",
            "HERMES_LISTENERS_FACTORY_HOST": "127.0.0.2",
        ]
        #expect(try load(environment: environment).further == [expected])
        let yaml = "listeners:\n  factory:\n    protocol: mqtt\n    host: 127.0.0.2\n    port: 1884\n"
        #expect(try load(yaml: yaml).further == [expected])
        #expect(try load().further.isEmpty)
        let mixed = try load(
            ["--listeners.factory.port", "9"],
            environment: [
                "HERMES_LISTENERS_B2_PROTOCOL": "delimited",
                "HERMES_LISTENERS_B2_PORT": "0",
            ],
            yaml: yaml
        )
        #expect(mixed.further.map(\.name) == ["b2", "factory"])
        #expect(mixed.further.last?.settings.port == 9)
    }

    @Test(arguments: [
        (["--listeners.factory.protocol", "mqtt"], "listeners.factory.port"),
        (["--listeners.factory.port", "1"], "unknown setting --listeners.factory.port"),
        (
            ["--listeners.factory.protocol", "smtp", "--listeners.factory.port", "1"],
            "impb, liveroom, qsiop, delimited, mqtt"
        ),
        (["--listeners.Fac-tory.protocol", "mqtt"], "unknown setting"),
        (["--listeners.mqtt.protocol", "mqtt"], "unknown setting"),
        (
            ["--listeners.factory.protocol", "mqtt", "--listeners.factory.port", "1", "--listeners.factory.hots", "x"],
            "did you mean --listeners.factory.host?"
        ),
        (
            [
                "--listeners.factory.protocol", "mqtt", "--listeners.factory.port", "1", "--listeners.factory.host",
                "::",
            ],
            "access.anonymousOnPublic"
        ),
        (
            [
                "--listeners.factory.protocol", "mqtt", "--listeners.factory.port", "1",
                "--listeners.factory.tls.certificate", "x",
            ], "listeners.factory.tls.privateKey"
        ),
    ])
    func `what is not allowed is told by its name`(_ arguments: [String], _ expected: String) {
        let error = #expect(throws: SettingsError.self) { try load(arguments) }
        #expect(error?.description.contains(expected) == true, "\(error?.description ?? "")")
    }

    @Test func `a strict listener on a public address is allowed`() throws {
        let arguments = ["--listeners.factory.protocol", "mqtt", "--listeners.factory.port", "1"]
        let settings = try load(
            arguments + ["--listeners.factory.host", "::", "--listeners.factory.anonymous", "false"]
        )
        #expect(settings.further.first?.settings.isAnonymousAllowed == false)
    }

    /// A CONNECT of 3.1.1 without a user name.
    private static let connect: [UInt8] = [0x10, 13, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 60, 0, 1, 0x61]
    private static let subscribe: [UInt8] = [0x82, 6, 0, 1, 0, 1, 0x74, 0]
    private static let publish: [UInt8] = [0x30, 4, 0, 1, 0x74, 0x78]

    @Test func `listeners of one protocol share their topics, and each has its own access`() async throws {
        func configure(_ settings: inout ServerSettings) {
            var strict = ListenerSettings(port: 0)
            strict.isAnonymousAllowed = false
            settings.gateways.further = [
                FurtherListener(name: "second", gateway: "mqtt", settings: ListenerSettings(port: 0)),
                FurtherListener(name: "strict", gateway: "mqtt", settings: strict),
            ]
        }
        try await withServer(configure: configure) { server in
            #expect(server.port("second") > 0)
            #expect(server.port("second") != server.port("mqtt"))
            let first = try await WebSocketClient.connect(port: server.port("mqtt"))
            try await first.send(Self.connect + Self.subscribe)
            let second = try await WebSocketClient.connect(port: server.port("second"))
            try await second.send([0x10, 13, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 60, 0, 1, 0x62])
            #expect(try await first.next() == (0x20, [0, 0]))
            #expect(try await first.next() == (0x90, [0, 1, 0]))
            try await second.send(Self.publish)
            #expect(try await first.next() == (0x30, [0, 1, 0x74, 0x78]))
            let strict = try await WebSocketClient.connect(port: server.port("strict"))
            try await strict.send(Self.connect)
            #expect(try await strict.next() == (0x20, [0, 5]))
            let metrics = try await HTTPProbe.get("/metrics", port: server.port("http")).text
            #expect(metrics.contains("hermes_connections_open{gateway=\"second\"} 1"))
        }
    }
}
