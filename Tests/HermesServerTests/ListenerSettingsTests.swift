// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesTestKit
import NIOCore
import Testing

@testable import HermesServer

@Suite("Listeners of a configuration") struct ListenerSettingsTests {
    private static let names = ["impb", "liveroom", "qsiop", "delimited", "mqtt", "http", "console"]

    private static func load(_ arguments: [String]) throws -> ServerSettings {
        try ServerSettings.load(SettingSources(arguments: arguments))
    }

    private static func problems(_ arguments: [String]) -> String {
        let error = #expect(throws: SettingsError.self) { try load(arguments) }
        return error?.description ?? ""
    }

    private static func off(_ names: [String]) -> [String] {
        names.flatMap { ["--listeners.\($0).enabled", "false"] }
    }

    @Test func `a configuration without a listener is refused, also by check-config`() async throws {
        #expect(Self.problems(Self.off(Self.names)).contains("no listener is enabled"))
        for name in Self.names where name != "console" {
            _ = try Self.load(Self.off(Self.names.filter { $0 != name }))
        }
        // A Unix socket counts as a listener. STUN alone does not count.
        _ = try Self.load(Self.off(Self.names) + ["--listeners.mqtt.unixSocket", "/run/mqtt.sock"])
        #expect(Self.problems(Self.off(Self.names) + ["--listeners.stun.enabled", "true"]).contains("no listener"))
        let failure = await #expect(throws: ServerFailure.self) {
            try await HermesServer.checkConfiguration(
                arguments: Self.off(Self.names),
                environment: [:],
                file: nil
            )
        }
        #expect(failure?.exitCode == .badConfiguration)
    }

    @Test(arguments: [
        (["--listeners.impb.port", "7979"], "listeners.impb.port", "listeners.qsiop.port"),
        (["--listeners.mqtt.port", "8080"], "listeners.mqtt.port", "listeners.http.port"),
        (
            ["--listeners.delimited.port", "7000", "--listeners.delimited.host", "0.0.0.0"]
                + ["--listeners.impb.port", "7000", "--listeners.impb.host", "127.0.0.2"],
            "listeners.impb.port", "listeners.delimited.port"
        ),
        (
            ["--listeners.delimited.port", "7000", "--listeners.delimited.host", "::"]
                + ["--listeners.impb.port", "7000", "--listeners.impb.host", "::1"],
            "listeners.impb.port", "listeners.delimited.port"
        ),
        (
            ["--listeners.hall.protocol", "mqtt", "--listeners.hall.port", "1883"],
            "listeners.mqtt.port", "listeners.hall.port"
        ),
    ])
    func `two listeners on one address are refused`(_ arguments: [String], _ first: String, _ second: String) {
        let said = Self.problems(arguments)
        #expect(said.contains("\(first) and \(second) need the same address"), "\(said)")
    }

    @Test(.enabled(if: WebPages.areBuiltIn)) func `the console is a listener like others`() throws {
        #expect(Self.problems(["--listeners.http.port", "8090"]).contains("listeners.console.port"))
        _ = try Self.load(Self.off(Self.names.filter { $0 != "console" }))
    }

    @Test func `free ports, other addresses and listeners that are off do not collide`() throws {
        let ports = Self.names.flatMap { ["--listeners.\($0).port", "0"] }
        _ = try Self.load(ports)
        _ = try Self.load(["--listeners.impb.port", "7979", "--listeners.impb.host", "127.0.0.2"])
        _ = try Self.load(["--listeners.impb.port", "7979", "--listeners.qsiop.enabled", "false"])
        // STUN uses UDP, so the same number is not a conflict.
        _ = try Self.load(["--listeners.stun.enabled", "true", "--listeners.stun.port", "8080"])
        let (six, four) = (ListenerSettings(host: "::", port: 1), ListenerSettings(host: "127.0.0.1", port: 1))
        #expect(!six.collides(with: four))
    }

    @Test func `a port without TLS on a public address is warned of`() throws {
        let wide = ["--listeners.delimited.host", "0.0.0.0"]
        let warnings = try Self.load(wide).warnings
        #expect(warnings.count == 1)
        #expect(warnings.first?.contains("clear text on listeners.delimited (0.0.0.0:9000)") == true)
        #expect(warnings.first?.contains("(listeners.delimited.tls)") == true)
        #expect(try Self.load([]).warnings.isEmpty)
        #expect(try Self.load(wide + ["--listeners.delimited.proxyProtocol", "v2"]).warnings.isEmpty)
        let files = ["--listeners.delimited.tls.certificate", "a.pem", "--listeners.delimited.tls.privateKey", "b.pem"]
        #expect(try Self.load(wide + files).warnings.isEmpty)
        let http = ["--listeners.http.host", "192.0.2.1", "--listeners.http.anonymous", "false"]
        #expect(try Self.load(http).warnings.count == 1)
        #expect(try Self.load(http + ["--http.trustedProxies", "192.0.2.2"]).warnings.isEmpty)
    }

    @Test func `an authority without client certificates is warned of`() throws {
        let prefix = "--listeners.mqtts.tls."
        let files = [("certificate", "a.pem"), ("privateKey", "b.pem"), ("clientAuthority", "ca.pem")]
        let tls = files.flatMap { ["\(prefix)\($0.0)", $0.1] }
        let warnings = try Self.load(tls).warnings
        #expect(warnings.count == 1)
        #expect(warnings.first?.hasPrefix("listeners.mqtts.tls.clientAuthority has no effect") == true)
        #expect(try Self.load(tls + ["\(prefix)clientCertificates", "optional"]).warnings.isEmpty)
    }

    @Test func `an unknown host of a listener is told in plain words`() throws {
        // A part of a name cannot be this long, so no DNS server is asked.
        let host = String(repeating: "x", count: 64) + ".invalid"
        let thrown = #expect(throws: SocketAddressError.UnknownHost.self) {
            try SocketAddress.makeAddressResolvingHost(host, port: 1)
        }
        let error = try #require(thrown)
        let message = ServerFailure.cannotListen("mqtt", ListenerSettings(host: host, port: 1), error).message
        #expect(message.contains("\(host) is not known: ") && message.hasSuffix("; check listeners.mqtt.host"))
        #expect(!message.contains("SocketAddressError"))
    }

    @Test func `a data directory without room for the control socket is warned of`() throws {
        let room = ControlClient.maxPathBytes - ControlSocket.fileName.utf8.count
        let long = "/" + String(repeating: "d", count: room - 1)
        #expect(ControlSocket.path(in: long).utf8.count == ControlClient.maxPathBytes + 1)
        let warnings = try Self.load(["--data.directory", long]).warnings
        #expect(warnings.count == 1 && warnings[0].contains("data.directory is too long"))
        #expect(try Self.load(["--data.directory", String(long.dropLast())]).warnings.isEmpty)
        #expect(try Self.load(["--data.directory", long, "--store.kind", "memory"]).warnings.isEmpty)
    }
}
