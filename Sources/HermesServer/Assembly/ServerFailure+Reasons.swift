// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesSQLite
import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

extension ServerFailure {
    /// An invalid configuration.
    init(_ error: SettingsError) {
        self.init(.badConfiguration, "the configuration is not usable:\n\(error)")
    }

    /// An address that cannot be opened.
    static func cannotListen(_ name: String, _ listener: ListenerSettings, _ error: any Error) -> ServerFailure {
        if let path = listener.unixSocketPath {
            let detail =
                (error as? IOError)?.errnoCode == EADDRINUSE ? "another program listens there" : Self.words(error)
            return ServerFailure(.addressUnavailable, "cannot listen on \(path) (\(name)): \(detail)")
        }
        let place = "\(listener.host):\(listener.port)"
        let detail =
            if let error = error as? IOError, error.errnoCode == EADDRINUSE {
                "another program listens there; stop it, or choose another port with listeners.\(name).port"
            } else if let error = error as? IOError, error.errnoCode == EACCES {
                "permission denied; choose a port above 1023 with listeners.\(name).port"
            } else if let error = error as? IOError, error.errnoCode == EADDRNOTAVAIL {
                "this machine does not have the address; correct listeners.\(name).host"
            } else if let error = error as? IOError, [EMFILE, ENFILE].contains(error.errnoCode) {
                "too many files are open; raise the hard limit (ulimit -Hn)"
            } else {
                "\(words(error)); check listeners.\(name).host"
            }
        return ServerFailure(.addressUnavailable, "cannot listen on \(place) for \(name): \(detail)")
    }

    /// Returns a short text for a socket error, because the descriptions that NIO and the system give are long.
    private static func words(_ error: any Error) -> String {
        switch error {
        case let error as IOError: String(cString: strerror(error.errnoCode))
        case let error as SocketAddressError.UnknownHost: "\(error.host) is not known: \(error.errorDescription)"
        case SocketAddressError.unixDomainSocketPathTooLong: "the path is too long for a socket; choose a shorter one"
        default: "\(error)"
        }
    }

    /// Certificate files that cannot be used.
    static func badCertificate(_ name: String, _ tls: TLSSettings, _ error: any Error) -> ServerFailure {
        let problems = ConfigurationFiles.fileProblems(of: tls, name)
        guard problems.isEmpty else { return ServerFailure(.badConfiguration, problems.joined(separator: "\n")) }
        if let error = error as? RevokedCertificates.Unusable {
            return ServerFailure(.badConfiguration, "listeners.\(name).tls.revocationLists: \(error)")
        }
        if let error = error as? TLSFile.Unusable {
            return ServerFailure(.badConfiguration, "listeners.\(name).tls: \(error)")
        }
        return ServerFailure(
            .badConfiguration,
            "listeners.\(name).tls: \"\(tls.certificatePath)\" and \"\(tls.privateKeyPath)\" cannot be used together; "
                + "probably the key does not belong to the certificate (\(error))"
        )
    }

    /// A data directory that cannot be used.
    init(_ error: StoreOpenError) {
        let code: ExitCode =
            switch error.reason {
            case .damaged: .damagedData
            case .newer, .notHermes: .foreignData
            case .unwritable: .dataNotWritable
            case .locked: .dataInUse
            case .diskFull, .failed: .diskFailed
            }
        self.init(code, "\(error)")
    }
}
