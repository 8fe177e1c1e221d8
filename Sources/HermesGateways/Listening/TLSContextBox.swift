// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
package import NIOSSL
import Synchronization

/// The TLS context of a listener, replaced when its certificate is reloaded. Connections keep the one they began with.
///
/// State: one `Mutex`, taken once per accept.
package final class TLSContextBox: Sendable {
    private let settings: TLSSettings
    private let context: Mutex<NIOSSLContext>

    /// Reads certificate and key.
    ///
    /// - Throws: NIOSSL's errors if the files cannot be read or do not belong together.
    package init(_ settings: TLSSettings) throws {
        self.settings = settings
        context = Mutex(try Self.load(settings))
    }

    /// Reads the files again; if that fails the old certificate stays in use.
    package func reload() throws {
        let fresh = try Self.load(settings)
        context.withLock { $0 = fresh }
    }

    /// What new connections use.
    package func current() -> NIOSSLContext { context.withLock { $0 } }

    private static func load(_ settings: TLSSettings) throws -> NIOSSLContext {
        let chain = try NIOSSLCertificate.fromPEMFile(settings.certificatePath).map(NIOSSLCertificateSource.certificate)
        let key = try NIOSSLPrivateKey(file: settings.privateKeyPath, format: .pem)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain,
            privateKey: .privateKey(key)
        )
        configuration.minimumTLSVersion = .tlsv12
        switch settings.clientCertificates {
        case .none: break
        case .optional: configuration.certificateVerification = .optionalVerification
        case .required: configuration.certificateVerification = .noHostnameVerification
        }
        if let authority = settings.clientAuthorityPath {
            configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(authority))
        }
        return try NIOSSLContext(configuration: configuration)
    }
}

extension NIOSSLCertificate {
    /// The common name of the subject; nil if there is none, or more than one.
    var onlyCommonName: String? {
        let names = subjectName.filter { $0.type == .commonName }
        guard names.count == 1, let name = names.first?.value, !name.isEmpty else { return nil }
        return name
    }
}
