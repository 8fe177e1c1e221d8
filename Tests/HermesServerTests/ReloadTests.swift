// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways
import HermesTestKit
import Logging
import Synchronization
import Testing

@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct ReloadTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])

        var all: [String] { lines.withLock { $0 } }

        func logger() -> Logger {
            Logger(label: "test") { _ in
                LineLogHandler(level: .info, format: .logfmt) { line in self.lines.withLock { $0.append(line) } }
            }
        }
    }

    @Test func `on SIGHUP the log says what was read, and that changed settings need a restart`() async throws {
        let path = NSTemporaryDirectory() + "/hermes-settings-\(UUID()).yaml"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try Data("log.level: info\n".utf8).write(to: URL(fileURLWithPath: path))
        let settingsFile = SettingsFile(path)
        func reload() async throws -> [String] {
            let lines = Lines()
            let (hangups, hangup) = AsyncStream<Void>.makeStream()
            hangup.yield()
            hangup.finish()
            let logger = lines.logger()
            let service = ReloadService(
                certificates: ServerCertificates(listeners: [], http: nil, console: nil, logger: logger),
                files: try AccessFiles(AccessSettings(), logger: logger),
                pushKeys: {},
                settingsFile: settingsFile,
                hangups: hangups
            )
            try await service.run()
            return lines.all
        }
        let unchanged = try await reload()
        #expect(unchanged.count == 1 && unchanged.first?.contains("push keys; settings need a restart") == true)
        try Data("log.level: debug\n".utf8).write(to: URL(fileURLWithPath: path))
        let changed = try await reload()
        #expect(changed.count == 2)
        #expect(changed.last?.contains("level=warning") == true, "\(changed)")
        #expect(changed.last?.contains("the settings file has changed") == true, "\(changed)")
        #expect(changed.last?.contains(path) == true, "\(changed)")
    }

    @Test(.enabled(if: TestCertificate.canBeMade))
    func `a certificate's end is a metric, its expiry a warning, and an unusable file is named`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        let now = Int(Date().timeIntervalSince1970)
        func encrypted(_ settings: inout ServerSettings) {
            settings.gateways[listener: "mqtt"]?.tls = files.settings
        }
        try await withServer(configure: encrypted) { server in
            let assembly = try server.assembly()
            let tail = try #require(assembly.tail)
            #expect(assembly.certificates.expiries.map { $0.name } == ["mqtt"])
            let metric = "hermes_certificate_expiry_timestamp_seconds{gateway=\"mqtt\"} "
            let text = try await HTTPProbe.get("/metrics", port: server.port("http")).text
            let line = text.split(separator: "\n").first { $0.hasPrefix(metric) }
            let end = try #require(line.flatMap { Int($0.dropFirst(metric.count)) })
            #expect((now + 86_400...now + 3 * 86_400).contains(end))

            assembly.certificates.warn()
            #expect(tail.lines(containing: "the certificate", limit: 10).isEmpty)
            assembly.certificates.warn(now: end)
            let expired = tail.lines(containing: "the certificate has expired", limit: 10)
            #expect(expired.map(\.label) == ["mqtt"])
            #expect(expired.first?.fields.contains(files.certificate) == true)

            try Data("nonsense".utf8).write(to: URL(fileURLWithPath: files.certificate))
            assembly.certificates.reload()
            let unusable = tail.lines(containing: "certificate is unusable", limit: 10)
            #expect(unusable.count == 1)
            let fields = unusable.first?.fields ?? ""
            #expect(fields.contains(files.certificate) && !fields.contains("failedToLoad"), "\(fields)")
        }
    }
}
