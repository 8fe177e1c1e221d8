// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import HermesGateways

/// A certificate for `localhost`, which openssl creates in a separate directory.
package struct TestCertificate {
    package static let openssl = "/usr/bin/openssl"
    package static let canBeMade = FileManager.default.isExecutableFile(atPath: openssl)

    package let directory: URL
    private let subject: String

    package init(subject: String = "/CN=localhost") throws {
        self.subject = subject
        directory = FileManager.default.temporaryDirectory.appending(path: "hermes-tls-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try renew()
    }

    package var certificate: String { directory.appending(path: "certificate.pem").path }
    package var key: String { directory.appending(path: "key.pem").path }
    package var settings: TLSSettings { TLSSettings(certificatePath: certificate, privateKeyPath: key) }

    /// Replaces the certificate with a new one.
    package func renew() throws {
        try ChildProcess.run(
            Self.openssl,
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
                + ["-subj", subject, "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
        )
    }

    /// Copies the certificate, so that the copy stays when the certificate is renewed. Returns the path of the copy.
    package func copy() throws -> String {
        let path = directory.appending(path: "\(UUID()).pem").path
        try FileManager.default.copyItem(atPath: certificate, toPath: path)
        return path
    }

    package func remove() { try? FileManager.default.removeItem(at: directory) }
}
