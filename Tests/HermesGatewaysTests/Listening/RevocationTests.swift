// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesTestKit
import HermesWire
import Logging
import NIOCore
import NIOSSL
import Testing

@testable import HermesGateways

/// Revoked client certificates, with revocation lists from openssl.
@Suite(.inTurns, .timeLimit(.minutes(1)), .enabled(if: TestCertificate.canBeMade)) struct RevocationTests {
    /// A certificate authority with its clients, in its own directory.
    private struct Authority {
        let directory: URL

        init(key: [String]) throws {
            directory = FileManager.default.temporaryDirectory.appending(path: "hermes-ca-\(UUID())")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            try Data().write(to: directory.appending(path: "index.txt"))
            let configuration = """
                [ca]
                default_ca = d
                [d]
                database = \(directory.path)/index.txt
                new_certs_dir = \(directory.path)
                rand_serial = yes
                policy = p
                certificate = \(directory.path)/ca.pem
                private_key = \(directory.path)/ca.key
                default_md = sha256
                default_crl_days = 1
                [p]
                commonName = supplied
                """
            try Data(configuration.utf8).write(to: directory.appending(path: "ca.cnf"))
            try openssl(
                ["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=devices \(UUID())", "-newkey"] + key
                    + ["-keyout", path("ca.key"), "-out", path("ca.pem")]
            )
            try writeList()
        }

        func path(_ name: String) -> String { directory.appending(path: name).path }

        func openssl(_ arguments: [String]) throws { try ChildProcess.run(TestCertificate.openssl, arguments) }

        /// - Parameters:
        ///   - issuer: the name of the authority that signs the certificate.
        ///   - isAuthority: whether the certificate may sign other certificates.
        func issue(_ name: String, by issuer: String = "ca", isAuthority: Bool = false) throws {
            try openssl(
                ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)"]
                    + ["-keyout", path("\(name).key"), "-out", path("\(name).csr")]
            )
            try Data("basicConstraints=critical,CA:\(isAuthority ? "TRUE" : "FALSE")\n".utf8)
                .write(to: directory.appending(path: "\(name).ext"))
            try openssl(
                ["x509", "-req", "-in", path("\(name).csr"), "-CA", path("\(issuer).pem"), "-CAkey"]
                    + [path("\(issuer).key"), "-CAcreateserial", "-days", "2", "-extfile", path("\(name).ext")]
                    + ["-out", path("\(name).pem")]
            )
        }

        /// Replaces a certificate with one that expires after `seconds` seconds.
        func shorten(_ name: String, to seconds: Double) throws {
            let end = DateFormatter()
            end.locale = Locale(identifier: "en_US_POSIX")
            end.timeZone = TimeZone(secondsFromGMT: 0)
            end.dateFormat = "yyyyMMddHHmmss'Z'"
            let date = end.string(from: Date(timeIntervalSinceNow: seconds))
            try openssl(
                ["ca", "-batch", "-notext", "-config", path("ca.cnf"), "-in", path("\(name).csr"), "-enddate", date]
                    + ["-extfile", path("\(name).ext"), "-out", path("\(name).pem")]
            )
        }

        func revoke(_ name: String) throws {
            try openssl(["ca", "-config", path("ca.cnf"), "-revoke", path("\(name).pem")])
            try writeList()
        }

        func writeList() throws {
            try openssl(["ca", "-config", path("ca.cnf"), "-gencrl", "-out", path("crl.pem")])
        }

        /// - Parameter authorities: the authorities' certificates that the client presents in addition to its own.
        func client(_ name: String, _ authorities: [String] = [], of server: TestCertificate) throws -> TLSConfiguration
        {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(server.certificate)
            tls.certificateChain = try ([name] + authorities).flatMap { name in
                try NIOSSLCertificate.fromPEMFile(path("\(name).pem")).map { .certificate($0) }
            }
            tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: path("\(name).key"), format: .pem))
            return tls
        }

        func remove() { try? FileManager.default.removeItem(at: directory) }
    }

    /// Runs a body with a listener that accepts the clients of an authority, except those on its revocation list.
    private func with(
        _ authority: Authority,
        _ files: TestCertificate,
        _ body: (Listener) async throws -> Void
    ) async throws {
        var tls = files.settings
        tls.clientCertificates = .required
        tls.clientAuthorityPath = authority.path("ca.pem")
        tls.revocationListPath = authority.path("crl.pem")
        try await GatewayHarness.with(LineGateway.self, on: ListenerSettings(port: 0, tls: tls)) { harness in
            try await body(harness.listener)
        }
    }

    private static let keys: [[String]] = [
        ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"], ["rsa:2048"],
    ]

    @Test(arguments: keys) func `who was revoked is refused, and closed when the list is read again`(
        _ key: [String]
    )
        async throws
    {
        let files = try TestCertificate()
        let authority = try Authority(key: key)
        let other = try Authority(key: key)
        defer {
            files.remove()
            authority.remove()
            other.remove()
        }
        for name in ["ann", "bob"] { try authority.issue(name) }
        try await with(authority, files) { listener in
            let ann = try await LineClient.connect(to: listener, tls: authority.client("ann", of: files))
            #expect(await ann.next() == "hello")
            let bob = try await LineClient.connect(to: listener, tls: authority.client("bob", of: files))
            #expect(await bob.next() == "hello")
            try authority.revoke("bob")
            try listener.reloadCertificate()
            while await bob.next() != nil {}
            let again = try await LineClient.connect(to: listener, tls: authority.client("bob", of: files))
            #expect(await again.next() == nil)
            try await ann.send("there\n")
            #expect(await ann.next() == "there")
            // A list of another authority and a file that is not a list cause errors. The list in use stays.
            for bad in [try Data(contentsOf: URL(fileURLWithPath: other.path("crl.pem"))), Data("nonsense".utf8)] {
                try bad.write(to: URL(fileURLWithPath: authority.path("crl.pem")))
                #expect(throws: RevokedCertificates.Unusable.self) { try listener.reloadCertificate() }
                let still = try await LineClient.connect(to: listener, tls: authority.client("bob", of: files))
                #expect(await still.next() == nil)
            }
            #expect(!listener.isRevocationOutdated(now: Int(Date().timeIntervalSince1970)))
            #expect(listener.isRevocationOutdated(now: Int(Date().timeIntervalSince1970) + 3 * 86_400))
        }
    }

    @Test func `the line about a revoked certificate has the client's address`() async throws {
        let files = try TestCertificate()
        let authority = try Authority(key: Self.keys[0])
        defer {
            files.remove()
            authority.remove()
        }
        try authority.issue("bob")
        try authority.revoke("bob")
        var tls = files.settings
        tls.clientCertificates = .required
        tls.clientAuthorityPath = authority.path("ca.pem")
        tls.revocationListPath = authority.path("crl.pem")
        let lines = LogRecorder()
        let settings = ListenerSettings(port: 0, tls: tls)
        try await GatewayHarness.with(LineGateway.self, on: settings, logger: lines.logger(.notice)) { harness in
            let bob = try await LineClient.connect(to: harness.listener, tls: authority.client("bob", of: files))
            #expect(await bob.next() == nil)
            #expect(lines.all.contains { $0["address"] == "127.0.0.1" }, "\(lines.all)")
        }
    }

    @Test func `a connection ends with its certificate, and none begins after it`() async throws {
        let files = try TestCertificate()
        let authority = try Authority(key: Self.keys[0])
        defer {
            files.remove()
            authority.remove()
        }
        for name in ["ann", "bob"] { try authority.issue(name) }
        try authority.shorten("bob", to: 4)
        try await with(authority, files) { listener in
            let ann = try await LineClient.connect(to: listener, tls: authority.client("ann", of: files))
            let bob = try await LineClient.connect(to: listener, tls: authority.client("bob", of: files))
            for client in [ann, bob] { #expect(await client.next() == "hello") }
            while await bob.next() != nil {}
            let again = try await LineClient.connect(to: listener, tls: authority.client("bob", of: files))
            #expect(await again.next() == nil)
            try await ann.send("there\n")
            #expect(await ann.next() == "there")
        }
    }

    @Test func `who was revoked is closed even if the server's key cannot be read`() async throws {
        let files = try TestCertificate()
        let authority = try Authority(key: Self.keys[0])
        defer {
            files.remove()
            authority.remove()
        }
        for name in ["ann", "bob"] { try authority.issue(name) }
        try await with(authority, files) { listener in
            let bob = try await LineClient.connect(to: listener, tls: authority.client("bob", of: files))
            #expect(await bob.next() == "hello")
            try authority.revoke("bob")
            try Data("nonsense".utf8).write(to: URL(fileURLWithPath: files.settings.privateKeyPath))
            #expect(throws: (any Error).self) { try listener.reloadCertificate() }
            while await bob.next() != nil {}
            let again = try await LineClient.connect(to: listener, tls: authority.client("bob", of: files))
            #expect(await again.next() == nil)
            // Other clients still use the old certificate.
            let ann = try await LineClient.connect(to: listener, tls: authority.client("ann", of: files))
            #expect(await ann.next() == "hello")
        }
    }

    @Test func `who depends on a revoked authority is refused, and closed when the list is read again`() async throws {
        let files = try TestCertificate()
        let authority = try Authority(key: Self.keys[0])
        defer {
            files.remove()
            authority.remove()
        }
        for name in ["good", "bad"] { try authority.issue(name, isAuthority: true) }
        try authority.issue("ann", by: "good")
        try authority.issue("bob", by: "bad")
        try authority.issue("carl")
        try await with(authority, files) { listener in
            func connect(_ name: String, _ authorities: [String]) async throws -> LineClient {
                try await LineClient.connect(to: listener, tls: authority.client(name, authorities, of: files))
            }
            let ann = try await connect("ann", ["good"])
            let bob = try await connect("bob", ["bad"])
            let carl = try await connect("carl", [])
            for client in [ann, bob, carl] { #expect(await client.next() == "hello") }
            try authority.revoke("bad")
            try listener.reloadCertificate()
            while await bob.next() != nil {}
            // Bob is refused, regardless of the other certificates that he presents.
            for authorities in [["bad"], ["good", "bad"], ["bad", "good"]] {
                #expect(await (try connect("bob", authorities)).next() == nil)
            }
            #expect(await (try connect("ann", ["good"])).next() == "hello")
            for client in [ann, carl] {
                try await client.send("there\n")
                #expect(await client.next() == "there")
            }
        }
    }

    /// A client that resumes TLS sessions: `openssl s_client`.
    private final class ResumingClient {
        private let process: ChildProcess
        private let input = Pipe()
        private let output = Pipe()
        /// The complete output so far, after each new part.
        private let texts: AsyncStream<String>

        /// - Parameter resuming: whether the client offers the session of the last run.
        init(_ version: String, port: Int, _ name: String, of authority: Authority, resuming: Bool) throws {
            let session = authority.path("session.\(version)")
            let (texts, continuation) = AsyncStream.makeStream(of: String.self)
            self.texts = texts
            process = try ChildProcess(
                TestCertificate.openssl,
                ["s_client", "-connect", "127.0.0.1:\(port)", "-\(version)", "-sess_out", session]
                    + ["-cert", authority.path("\(name).pem"), "-key", authority.path("\(name).key")]
                    + (resuming ? ["-sess_in", session] : []),
                input: input.fileHandleForReading.fileDescriptor,
                output: output.fileHandleForWriting.fileDescriptor
            )
            // Only the program may keep the writing end open. So its end is the end of the pipe.
            try output.fileHandleForWriting.close()
            let handle = output.fileHandleForReading
            // A thread reads the output, because a handle's `readabilityHandler` may not report the end.
            Thread.detachNewThread {
                var all = ""
                while true {
                    let part = handle.availableData
                    guard !part.isEmpty else { return continuation.finish() }
                    all += String(decoding: part, as: UTF8.self)
                    continuation.yield(all)
                }
            }
        }

        /// Returns the output when it contains a text, or when the server has closed the connection.
        func printed(until text: String) async -> String {
            var last = ""
            for await all in texts {
                last = all
                if all.contains(text) { break }
            }
            return last
        }

        func end() {
            try? input.fileHandleForWriting.close()
            process.terminate()
            process.waitUntilExit()
        }
    }

    @Test(arguments: ["tls1_2", "tls1_3"]) func `a resumed session ends and is refused, too, once it is revoked`(
        _ version: String
    ) async throws {
        let files = try TestCertificate()
        let authority = try Authority(key: Self.keys[0])
        defer {
            files.remove()
            authority.remove()
        }
        try authority.issue("bob")
        try await with(authority, files) { listener in
            func connect(resuming: Bool) throws -> ResumingClient {
                try ResumingClient(version, port: listener.port, "bob", of: authority, resuming: resuming)
            }
            let first = try connect(resuming: false)
            #expect(await first.printed(until: "hello").contains("New, "))
            first.end()
            let resumed = try connect(resuming: true)
            let greeting = await resumed.printed(until: "hello")
            #expect(greeting.contains("Reused, ") && greeting.contains("hello"))
            try authority.revoke("bob")
            try listener.reloadCertificate()
            // This ends when the server closes the connection.
            _ = await resumed.printed(until: "never printed")
            resumed.end()
            let again = try connect(resuming: true)
            #expect(await !again.printed(until: "hello").contains("hello"))
            again.end()
        }
    }

    @Test func `no session from before a list is resumed, however it was read and whatever context it began with`()
        async throws
    {
        let files = try TestCertificate()
        let authority = try Authority(key: Self.keys[0])
        defer {
            files.remove()
            authority.remove()
        }
        for name in ["bob", "carl"] { try authority.issue(name) }
        var settings = files.settings
        settings.clientCertificates = .required
        settings.clientAuthorityPath = authority.path("ca.pem")
        settings.revocationListPath = authority.path("crl.pem")
        let box = try TLSContextBox(settings)
        let old = VerifiedChain(box.current())
        #expect(old.isFresh(in: box))
        try authority.revoke("carl")
        try box.reload()
        // A connection whose handshake waits would resume with the old list.
        #expect(!old.isFresh(in: box) && VerifiedChain(box.current()).isFresh(in: box))
        try await with(authority, files) { listener in
            func connect(resuming: Bool) throws -> ResumingClient {
                try ResumingClient("tls1_3", port: listener.port, "bob", of: authority, resuming: resuming)
            }
            let first = try connect(resuming: false)
            #expect(await first.printed(until: "hello").contains("New, "))
            first.end()
            let resumed = try connect(resuming: true)
            #expect(await resumed.printed(until: "hello").contains("Reused, "))
            resumed.end()
            // The key cannot be read, but the revocation list can.
            try authority.writeList()
            try Data().write(to: URL(fileURLWithPath: files.settings.privateKeyPath))
            #expect(throws: (any Error).self) { try listener.reloadCertificate() }
            let whole = try connect(resuming: true)
            let greeting = await whole.printed(until: "hello")
            #expect(greeting.contains("New, ") && greeting.contains("hello"))
            whole.end()
        }
    }

    @Test func `a list is read as openssl wrote it, and no byte of it traps`() throws {
        let authority = try Authority(key: Self.keys[0])
        defer { authority.remove() }
        try authority.issue("ann")
        try authority.revoke("ann")
        func der(_ name: String) throws -> [UInt8] {
            let text = try String(contentsOfFile: authority.path(name), encoding: .utf8)
            let body = text.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
            return Array(try #require(Data(base64Encoded: body)))
        }
        let bytes = try der("crl.pem")
        let list = try RevocationList(der: bytes)
        let names = try CertificateNames(der: der("ann.pem"))
        #expect(list.serials == [names.serial])
        #expect(list.issuer == names.issuer)
        #expect(try CertificateNames(der: der("ca.pem")).subject == list.issuer)
        let day = try #require(list.nextUpdate) - Int(Date().timeIntervalSince1970)
        #expect((86_000...86_401).contains(day))
        for index in bytes.indices {
            #expect(throws: X509Malformation.self) { try RevocationList(der: Array(bytes[..<index])) }
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << UInt8(bit)
                _ = try? RevocationList(der: changed)
                _ = try? CertificateNames(der: changed)
            }
        }
    }
}
