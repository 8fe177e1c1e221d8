// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways

/// A certificate for `localhost`, made by openssl in a directory of its own.
struct TestCertificate {
    static let openssl = "/usr/bin/openssl"
    static let canBeMade = FileManager.default.isExecutableFile(atPath: openssl)

    let directory: URL
    private let subject: String

    init(subject: String = "/CN=localhost") throws {
        self.subject = subject
        directory = FileManager.default.temporaryDirectory.appending(path: "hermes-tls-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try renew()
    }

    var certificate: String { directory.appending(path: "certificate.pem").path }
    var key: String { directory.appending(path: "key.pem").path }
    var settings: TLSSettings { TLSSettings(certificatePath: certificate, privateKeyPath: key) }

    /// Puts a new certificate in the place of the old one.
    func renew() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.openssl)
        process.arguments =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
            + [
                "-subj", subject, "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out",
                certificate,
            ]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Unexpected("openssl failed") }
    }

    /// A copy of the certificate that stays when it is renewed.
    func copy() throws -> String {
        let path = directory.appending(path: "\(UUID()).pem").path
        try FileManager.default.copyItem(atPath: certificate, toPath: path)
        return path
    }

    func remove() { try? FileManager.default.removeItem(at: directory) }
}
