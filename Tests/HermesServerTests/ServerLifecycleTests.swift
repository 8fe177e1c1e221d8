// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesServer
import HermesTestKit
import Logging
import NIOCore
import NIOPosix
import Testing

@Suite(.inTurns) struct ServerLifecycleTests {
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func body(_ path: String, of server: TestServer) async throws -> (status: Int, text: String) {
        try await HTTPProbe.get(path, port: server.port("http"))
    }

    /// Returns the error that keeps a server with these settings from starting.
    private func failure(_ settings: ServerSettings) async throws -> ServerFailure {
        do {
            let assembly = try await ServerAssembly.start(settings, logger: logger)
            // If the server starts unexpectedly, it stops at once. So the test fails instead of waiting forever.
            let stop: @Sendable (@escaping @Sendable () async -> Void) -> Void = { stop in
                Task.immediate { await stop() }
            }
            try await assembly.run(stop: stop, ready: { _ in })
        } catch let failure {
            return failure
        }
        throw NothingFailed()
    }

    private struct NothingFailed: Error {}

    @Test(arguments: TestStore.allCases)
    func `starts serves and stops`(_ store: TestStore) async throws {
        try await withServer(store: store) { server in
            for name in ["liveroom", "qsiop", "delimited", "mqtt", "http"] { #expect(server.port(name) > 0, "\(name)") }
            let health = try await body("/healthz", of: server)
            #expect(health == (200, "ok\n"))
            let ready = try await body("/readyz", of: server)
            #expect(ready == (200, "ready\n"))
            let metrics = try await body("/metrics", of: server)
            #expect(metrics.text.contains("process_cpu_seconds_total"))
            #expect(metrics.text.contains("\nhermes_mqtt_wills_waiting "))
            #expect(metrics.text.contains("\nhermes_mqtt_wills_waiting_bytes "))
            let nothing = try await body("/nothing", of: server)
            #expect(nothing.status == 404)
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade)) func `the HTTP port limits and counts TLS handshakes`() async throws
    {
        let files = try TestCertificate()
        defer { files.remove() }
        func encrypted(_ settings: inout ServerSettings) {
            settings.http.listener.tls = files.settings
            settings.gateways.limits.tlsHandshakesPerSecondPerAddress = 1
        }
        try await withServer(configure: encrypted) { server in
            func metrics() async -> String? {
                try? await HTTPProbe.get("/metrics", port: server.port("http"), trusting: files.certificate).text
            }
            var refused = 0
            for _ in 0..<60 where await metrics() == nil { refused += 1 }
            #expect(refused > 0)
            let name = "hermes_connections_refused_total{gateway=\"http\",reason=\"tls_handshakes\"} "
            var text: String?
            // The text of the metrics may be a second old.
            for _ in 0..<200 where text?.contains(name + "0\n") ?? true {
                text = await metrics()
                try await Task.sleep(for: .milliseconds(50))
            }
            #expect(text?.contains(name) == true && text?.contains(name + "0\n") == false)
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade)) func `the HTTP port takes a new certificate while it serves`()
        async throws
    {
        let files = try TestCertificate()
        defer { files.remove() }
        func encrypted(_ settings: inout ServerSettings) { settings.http.listener.tls = files.settings }
        try await withServer(configure: encrypted) { server in
            let port = server.port("http")
            let old = try files.copy()
            #expect(try await HTTPProbe.get("/healthz", port: port, trusting: old).status == 200)
            try files.renew()
            let certificates = try server.assembly().certificates
            certificates.reload()
            #expect(try await HTTPProbe.get("/healthz", port: port, trusting: files.certificate).status == 200)
            await #expect(throws: (any Error).self) {
                try await HTTPProbe.get("/healthz", port: port, trusting: old)
            }
            // An unusable certificate changes nothing.
            let new = try files.copy()
            try Data("nonsense".utf8).write(to: URL(fileURLWithPath: files.certificate))
            certificates.reload()
            #expect(try await HTTPProbe.get("/healthz", port: port, trusting: new).status == 200)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `a restart keeps data and ports`(_ store: TestStore) async throws {
        try await withServer(store: store) { server in
            let port = server.port("delimited")
            let account = try await server.messenger().accounts.createAccount(nickName: "anna", password: "secret12")
            try await server.restart()
            #expect(server.port("delimited") == port)
            let found = try await server.messenger().accounts.account(.id(account.id))
            #expect(found?.nickName == account.nickName)
        }
    }

    @Test func `a port in use is told`() async throws {
        try await withServer { other in
            for name in ["delimited", "http"] {
                var settings = try TestServer.settings(store: .memory, directory: "/nowhere")
                if name == "http" {
                    settings.http.listener.port = other.port("http")
                } else {
                    settings.gateways[listener: "delimited"]?.port = other.port("delimited")
                }
                let failure = try await failure(settings)
                #expect(failure.exitCode == .addressUnavailable)
                #expect(failure.message.contains("listeners.\(name).port"))
                #expect(failure.message.contains("127.0.0.1:\(other.port(name))"))
            }
        }
    }

    #if Pages
    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func `a server whose only listener is the console does not start without the console's port`(
        hasOthers: Bool
    ) async throws {
        try await withServer { other in
            try await withDirectory { directory in
                var settings = try TestServer.settings(store: .sqlite, directory: directory)
                settings.http.listener.isEnabled = hasOthers
                for (name, _, _) in settings.gateways.listeners {
                    settings.gateways[listener: name]?.isEnabled = false
                }
                settings.console.listener.port = other.port("delimited")
                if hasOthers {
                    // The server runs without the console.
                    do {
                        let unexpected = try await self.failure(settings)
                        Issue.record("\(unexpected)")
                    } catch is NothingFailed {}
                } else {
                    let failure = try await self.failure(settings)
                    #expect(failure.exitCode == .addressUnavailable)
                    #expect(failure.message.contains("listeners.console.port"))
                    #expect(failure.message.contains("127.0.0.1:\(other.port("delimited"))"))
                }
            }
        }
    }
    #endif

    @Test func `an address of another machine is told`() async throws {
        var settings = try TestServer.settings(store: .memory, directory: "/nowhere")
        settings.gateways[listener: "delimited"]?.host = "192.0.2.1"
        let failure = try await failure(settings)
        #expect(failure.exitCode == .addressUnavailable)
        #expect(failure.message.contains("listeners.delimited.host"))
    }

    @Test func `a certificate that is none is told`() async throws {
        var settings = try TestServer.settings(store: .memory, directory: "/nowhere")
        settings.gateways[listener: "delimited"]?.tls = TLSSettings(
            certificatePath: "/no/cert.pem",
            privateKeyPath: "/no/key.pem"
        )
        let failure = try await failure(settings)
        #expect(failure.exitCode == .badConfiguration)
        #expect(failure.message.contains("listeners.delimited.tls"))
    }

    @Test func `a directory that cannot be made is told`() async throws {
        let settings = try TestServer.settings(store: .sqlite, directory: "/dev/null/hermes")
        let failure = try await failure(settings)
        #expect(failure.exitCode == .dataNotWritable)
        #expect(failure.message.contains("/dev/null/hermes"))
    }

    @Test func `a damaged database is told and left as it is`() async throws {
        try await withDirectory { directory in
            let path = directory + "/hermes.db"
            let garbage = Data(repeating: 0x5A, count: 20_000)
            try garbage.write(to: URL(filePath: path))
            let failure = try await failure(TestServer.settings(store: .sqlite, directory: directory))
            #expect(failure.exitCode == .damagedData)
            #expect(failure.message.contains(path))
            #expect(try Data(contentsOf: URL(filePath: path)) == garbage)
        }
    }

    @Test func `a directory in use is told`() async throws {
        try await withServer(store: .sqlite) { server in
            let settings = try TestServer.settings(store: .sqlite, directory: server.dataDirectory)
            let failure = try await failure(settings)
            #expect(failure.exitCode == .dataInUse)
            // The first server still has its socket.
            let response = try await administer(.listUsers(after: 0), server.dataDirectory)
            #expect(response == .users([]))
        }
    }

    @Test func `a stopping server takes leave of its clients`() async throws {
        try await withServer { server in
            let client = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .connect(host: "127.0.0.1", port: server.port("liveroom")).get()
            let clock = ContinuousClock.now
            try await server.restart()
            try await client.closeFuture.get()
            #expect(ContinuousClock.now - clock < .seconds(30))
        }
    }

    @Test func `the ready line names every listener and a command`() {
        let line = HermesServer.readyLine([
            BoundAddress(name: "impb", host: "127.0.0.1", port: 6969),
            BoundAddress(name: "delimited", host: "::1", port: 9001),
        ])
        #expect(
            line.hasPrefix("hermes \(HermesVersion.current) ready: impb 127.0.0.1:6969, delimited [::1]:9001 - try: ")
        )
        #expect(line.hasSuffix(" chat ann --register --host ::1 --port 9001"))
        let http = HermesServer.readyLine([BoundAddress(name: "http", host: "::1", port: 8080)], hasHomePage: true)
        #expect(http.hasSuffix(" - open http://[::1]:8080 in a browser"))
        func command(at host: String, isEncrypted: Bool) -> String {
            let address = BoundAddress(name: "delimited", host: host, port: 9000)
            let line = HermesServer.readyLine([address], isEncrypted: isEncrypted)
            return String(line[(line.firstRange(of: "--register")?.upperBound ?? line.endIndex)...])
        }
        #expect(command(at: "0.0.0.0", isEncrypted: false) == "")
        #expect(command(at: "0.0.0.0", isEncrypted: true) == " --tls-insecure")
        #expect(command(at: "::", isEncrypted: false) == " --host ::1")
        #expect(command(at: "192.0.2.1", isEncrypted: false) == " --host 192.0.2.1 --no-tls")
        #expect(command(at: "192.0.2.1", isEncrypted: true) == " --host 192.0.2.1")
    }

    private func withDirectory<Result>(_ body: (String) async throws -> Result) async throws -> Result {
        let directory = NSTemporaryDirectory() + "/h-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        return try await body(directory)
    }
}

/// Sends a request in the same way as `hermes user`.
func administer(_ request: ControlRequest, _ directory: String) async throws(ServerFailure) -> ControlResponse {
    try await HermesServer.administer(
        request,
        arguments: ["--data.directory", directory],
        environment: [:],
        file: nil
    )
}
