// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesGateways
import HermesTestKit
import Testing

@testable import HermesServer

/// `hermes check-config` reads the files that the configuration names.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ConfigurationFilesTests {
    private func check(_ arguments: [String]) async -> String {
        do throws(ServerFailure) {
            return try await HermesServer.checkConfiguration(arguments: arguments, environment: [:], file: nil)
        } catch {
            return error.exitCode == .badConfiguration ? error.message : "another exit code"
        }
    }

    @Test func `rules, token keys, push keys and webhook secrets are read`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let issuer = try TokenIssuer()
        let good = try files.write("good.rules", "allow all read a\n")
        let bad = try files.write("bad.rules", "\nallow all read a\npermit all read b\n")
        let keys = try files.write("keys", issuer.secret)
        let pem = issuer.ecdsa.publicKey.pemRepresentation
        let badKeys = try files.write("bad.pem", pem + "\n-----BEGIN PUBLIC KEY-----\nQUJD\n-----END PUBLIC KEY-----\n")
        let closed = ["--accounts.registration", "closed"]
        #expect(await check(["--access.rules", good, "--access.jwt.keys", keys] + closed).contains("access.rules"))
        // All errors are reported together.
        let said = await check(["--access.rules", bad, "--access.jwt.keys", badKeys] + closed)
        #expect(said.contains("\"\(bad)\"") && said.contains("line 3: a rule begins with allow or deny"), "\(said)")
        let line = pem.split(separator: "\n", omittingEmptySubsequences: false).count + 1
        #expect(said.contains("\"\(badKeys)\"") && said.contains("line \(line)"), "\(said)")
        #expect(await check(["--access.rules", "/nowhere/rules"]).contains("\"/nowhere/rules\""))
        let hook = ["--webhooks.url", "http://127.0.0.1:1/", "--webhooks.secretFile"]
        #expect(await check(hook + [try files.write("short", "x")]).contains("webhooks.secretFile"))
        #expect(await check(hook + [try files.write("long", issuer.secret)]).contains("webhooks.url"))
        #expect(await check(["--push.fcm.serviceAccountFile", keys]).contains("push.fcm.serviceAccountFile: "))
        #expect(
            await check(["--push.certificateAuthority", "/nowhere/ca", "--push.fcm.serviceAccountFile", keys])
                .contains("push.certificateAuthority: \"/nowhere/ca\"")
        )
    }

    @Test func `token keys of which none has an accepted algorithm are refused`() async throws {
        let files = try TemporaryFiles()
        defer { files.remove() }
        let issuer = try TokenIssuer()
        let secret = try files.write("secret", issuer.secret)
        let set = try files.write("set", issuer.keySet())
        func said(_ keys: String, _ algorithms: String) async -> String {
            await check([
                "--accounts.registration", "closed", "--access.jwt.keys", keys, "--access.jwt.algorithms", algorithms,
            ])
        }
        let one = await said(secret, "RS256")
        #expect(one.contains("access.jwt.keys: \"\(secret)\" cannot be used: it holds no key for RS256, "), "\(one)")
        #expect(one.contains("the only algorithm of access.jwt.algorithms"), "\(one)")
        #expect(await said(secret, "RS256,ES256").contains("no key for ES256 or RS256, the algorithms of"))
        for good in [await said(secret, "RS256,HS256"), await said(set, "RS256")] {
            #expect(!good.contains("cannot be used") && good.contains("access.jwt.algorithms"), "\(good)")
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade)) func `certificates and their keys are read`() async throws {
        let made = try TestCertificate()
        let other = try TestCertificate()
        let files = try TemporaryFiles()
        defer {
            made.remove()
            other.remove()
            files.remove()
        }
        func tls(_ certificate: String, _ key: String, _ listener: String = "mqtts") -> [String] {
            let prefix = "--listeners.\(listener)."
            return [
                "\(prefix)enabled", "true", "\(prefix)tls.certificate", certificate, "\(prefix)tls.privateKey", key,
            ]
        }
        #expect(await check(tls(made.certificate, made.key)).contains("listeners.mqtts.tls.certificate"))
        let mismatch = await check(tls(made.certificate, other.key))
        #expect(mismatch.contains("cannot be used together; probably the key does not belong to the certificate"))
        let empty = try files.write("empty", "")
        #expect(await check(tls(empty, made.key)).contains("listeners.mqtts.tls.certificate: \"\(empty)\" is empty"))
        #expect(await check(tls(made.certificate, "/tmp")).contains("tls.privateKey: \"/tmp\" is a directory"))
        let place = FileManager.default.currentDirectoryPath
        #expect(await check(tls("missing.pem", made.key)).contains("\"\(place)/missing.pem\" does not exist"))
        #expect(await check(tls("/nowhere/c", made.key)).contains("listeners.mqtts.tls.certificate: \"/nowhere/c\""))
        let noKey = await check(tls(made.certificate, made.certificate))
        #expect(noKey.contains("holds no \"-----BEGIN PRIVATE KEY-----\""))
        let text = try String(contentsOfFile: made.certificate, encoding: .utf8)
        let lines = text.split(separator: "\n").count
        // The middle of the second certificate is missing.
        var cut = text.split(separator: "\n")
        cut.remove(at: 2)
        let damaged = try files.write("chain.pem", "# ours\n\n" + text + "\n" + cut.joined(separator: "\n") + "\n")
        let said = await check(tls(damaged, made.key, "http"))
        #expect(said.contains("listeners.http.tls.certificate: \"\(damaged)\", line \(lines + 4): "), "\(said)")
        let long = try files.write("long.pem", String(repeating: text, count: 33))
        #expect(await check(tls(long, made.key)).contains("\"\(long)\" holds 33 certificates; a chain has at most 32"))
        let pipe = files.directory.appending(path: "pipe").path
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(await check(tls(made.certificate, pipe)).contains("\"\(pipe)\" cannot be read: it is a pipe"))
        #expect(
            await check(["--push.certificateAuthority", pipe, "--push.fcm.serviceAccountFile", pipe])
                .contains("push.certificateAuthority: \"\(pipe)\" cannot be used: it is a pipe")
        )
        let lists = try files.write("lists", "nonsense")
        let client = [
            "--listeners.mqtts.tls.clientCertificates", "required", "--listeners.mqtts.tls.clientAuthority",
            made.certificate, "--listeners.mqtts.tls.revocationLists", lists,
        ]
        #expect(await check(tls(made.certificate, made.key) + client).contains("tls.revocationLists: \"\(lists)\""))
    }

    @Test(.enabled(if: TestCertificate.canBeMade)) func `certificates outside their dates are warned of`() throws {
        let made = try TestCertificate()
        defer { made.remove() }
        var settings = try ServerSettings.defaults()
        settings.http.listener.tls = made.settings
        let now = Int(Date().timeIntervalSince1970)
        #expect(ConfigurationFiles.warnings(of: settings).isEmpty)
        let late = ConfigurationFiles.warnings(of: settings, now: now + 3 * 86_400)
        #expect(late.count == 1 && late.first?.contains("the certificate has expired") == true, "\(late)")
        #expect(late.first?.hasPrefix("listeners.http.tls.certificate: \"\(made.certificate)\"") == true, "\(late)")
        let early = ConfigurationFiles.warnings(of: settings, now: now - 3_600)
        #expect(early.first?.contains("not valid yet") == true, "\(early)")
    }

    @Test func `blocks of a PEM file know their lines`() {
        let text = "x\n-----BEGIN A-----\r\n1\r\n-----END A-----\n\n  -----BEGIN B C-----\n2\n-----BEGIN D-----\n3"
        #expect(PEMBlock.blocks(in: text).map(\.label) == ["A", "B C", "D"])
        #expect(PEMBlock.blocks(in: text).map(\.line) == [2, 6, 8])
        #expect(PEMBlock.blocks(in: text).last?.text == "-----BEGIN D-----\n3\n")
        #expect(PEMBlock.blocks(in: "").isEmpty)
    }
}
