// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
package import NIOSSL
import Synchronization

/// The TLS context of a listener, and its revocation lists. The context and the lists are replaced when they are
/// reloaded. A connection keeps the context with which it began.
///
/// State: one `Mutex`, taken once per accept.
package final class TLSContextBox: Sendable {
    package let settings: TLSSettings
    private let loaded: Mutex<Loaded>

    private struct Loaded {
        let configuration: TLSConfiguration
        let context: NIOSSLContext
        let revoked: RevokedCertificates?
        /// The server's own certificate; nil if the configuration has none.
        let own: NIOSSLCertificate?

        init(_ configuration: TLSConfiguration, _ revoked: RevokedCertificates?) throws {
            self.configuration = configuration
            self.revoked = revoked
            own = configuration.certificateChain.lazy.compactMap { $0.certificate }.first
            context = try NIOSSLContext(configuration: configuration)
        }
    }

    /// Reads the certificate, the key and the revocation lists.
    ///
    /// - Throws: ``TLSFile/Unusable`` if a file cannot be read; NIOSSL's errors if the files do not match.
    package init(_ settings: TLSSettings) throws {
        self.settings = settings
        loaded = Mutex(try Self.load(settings))
    }

    /// Reads the files again. If that fails, the old certificate stays in use. Even then, revocation lists that can
    /// be read are added, so that a revoked certificate is refused although the key cannot be read. New lists always
    /// come with a new context, which does not resume earlier sessions.
    package func reload() throws {
        let authorities = try Self.authorities(settings)
        let revoked = try Self.revocations(settings, authorities)
        do {
            let fresh = try Loaded(Self.configuration(settings, authorities), revoked)
            loaded.withLock { $0 = fresh }
        } catch {
            if let revoked {
                let old = loaded.withLock { $0 }
                // The old lists stay, because the old configuration may trust authorities whose lists are no longer in
                // the file.
                let next = try Loaded(old.configuration, old.revoked?.union(revoked) ?? revoked)
                loaded.withLock { $0 = next }
            }
            throw error
        }
    }

    /// The context for new connections.
    package func current() -> NIOSSLContext { loaded.withLock { $0.context } }

    /// Whether new connections get this context.
    func isCurrent(_ context: NIOSSLContext) -> Bool { loaded.withLock { $0.context === context } }

    /// Whether revocation lists are configured.
    var hasRevocations: Bool { settings.revocationListPath != nil }

    /// Whether each client must present a certificate.
    var requiresCertificates: Bool { settings.clientCertificates == .required }

    /// Whether a client's certificate, or the certificate of an authority above it, is revoked.
    func isRevoked(_ certificates: PeerCertificates) -> Bool {
        guard let revoked = loaded.withLock({ $0.revoked }) else { return false }
        return certificates.all.contains(where: revoked.contains)
    }

    /// Whether a newer revocation list is overdue; `now` is in seconds since 1970.
    package func isRevocationOutdated(now: Int) -> Bool {
        loaded.withLock { $0.revoked?.nextUpdate }.map { $0 < now } ?? false
    }

    /// The end of the validity of the server's own certificate, in seconds since 1970; nil if it is unknown.
    package var certificateExpiry: Int? { loaded.withLock { $0.own }.map { Int($0.notValidAfter) } }

    /// Returns the reason why clients refuse the server's own certificate because of its dates; nil if there is none.
    ///
    /// - Parameter now: the present time in seconds since 1970.
    package func certificateProblem(now: Int) -> String? {
        guard let own = loaded.withLock({ $0.own }) else { return nil }
        if now >= Int(own.notValidAfter) { return "the certificate has expired; clients refuse it" }
        return now < Int(own.notValidBefore) ? "the certificate is not valid yet; clients refuse it" : nil
    }

    private static func load(_ settings: TLSSettings) throws -> Loaded {
        let authorities = try authorities(settings)
        return try Loaded(configuration(settings, authorities), revocations(settings, authorities))
    }

    private static func authorities(_ settings: TLSSettings) throws -> [NIOSSLCertificate] {
        try settings.clientAuthorityPath.map(TLSFile.certificates) ?? []
    }

    private static func revocations(
        _ settings: TLSSettings,
        _ authorities: [NIOSSLCertificate]
    ) throws -> RevokedCertificates? {
        try settings.revocationListPath.map { try RevokedCertificates(path: $0, authorities: authorities) }
    }

    private static func configuration(
        _ settings: TLSSettings,
        _ authorities: [NIOSSLCertificate]
    ) throws -> TLSConfiguration {
        let chain = try TLSFile.chain(settings.certificatePath).map(NIOSSLCertificateSource.certificate)
        let key = try TLSFile.key(settings.privateKeyPath)
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain,
            privateKey: .privateKey(key)
        )
        configuration.minimumTLSVersion = .tlsv12
        // A peer that sleeps does not confirm the end of TLS, and a server that stops would wait for the confirmation.
        configuration.shutdownTimeout = .seconds(1)
        switch settings.clientCertificates {
        case .none: break
        case .optional: configuration.certificateVerification = .optionalVerification
        case .required: configuration.certificateVerification = .noHostnameVerification
        }
        if settings.clientAuthorityPath != nil { configuration.trustRoots = .certificates(authorities) }
        return configuration
    }
}

/// A client's certificate, and the certificates of the authorities above it.
struct PeerCertificates: Sendable {
    let all: [CertificateNames]
    /// Whether the authorities are known. In a resumed TLS session, only the client's own certificate is known; the
    /// authorities were checked against the revocation lists of the same context when the original session began.
    let isChainKnown: Bool

    init(_ own: CertificateNames, chain: [CertificateNames]) {
        isChainKnown = !chain.isEmpty
        all = chain.contains(own) ? chain : chain + [own]
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

extension NIOSSLCertificateSource {
    /// The certificate; nil if the source is a file.
    fileprivate var certificate: NIOSSLCertificate? {
        guard case .certificate(let certificate) = self else { return nil }
        return certificate
    }
}
