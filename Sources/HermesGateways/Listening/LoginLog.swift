// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import Logging
import Synchronization

/// Logs failed logins, failed TLS handshakes and refused client certificates, for operators and for programs that
/// block addresses. Strangers can cause any number of such failures. So the log gets at most ``linesPerSecond`` lines
/// about logins, ``handshakeLinesPerSecond`` lines about handshakes and ``certificateLinesPerSecond`` lines about
/// certificates. If lines were left out, the next line of the same kind states how many. Thread-safe.
///
/// State: one `Mutex`.
package final class LoginLog: Sendable {
    /// The allowance of one kind of line.
    private struct Allowance {
        let linesPerSecond: Int
        var secondEnds = Duration.zero
        var lines = 0
        var skipped = 0

        init(linesPerSecond: Int) { self.linesPerSecond = linesPerSecond }

        /// Returns the number of lines that were left out since the last line; nil if this line must also be left
        /// out.
        mutating func takeLine(now: Duration) -> Int? {
            if now >= secondEnds {
                secondEnds = now + .seconds(1)
                lines = 0
            }
            guard lines < linesPerSecond else {
                skipped += 1
                return nil
            }
            lines += 1
            defer { skipped = 0 }
            return skipped
        }
    }

    /// Handshakes and certificates have separate allowances, so that they cannot use up the lines of failed logins.
    private struct State {
        var logins = Allowance(linesPerSecond: LoginLog.linesPerSecond)
        var handshakes = Allowance(linesPerSecond: LoginLog.handshakeLinesPerSecond)
        var certificates = Allowance(linesPerSecond: LoginLog.certificateLinesPerSecond)
    }

    /// The largest number of lines about failed logins per second, over all listeners.
    package static let linesPerSecond = 10
    /// The largest number of lines about failed TLS handshakes per second, over all listeners.
    package static let handshakeLinesPerSecond = 1
    /// The largest number of lines about refused client certificates per second, over all listeners.
    package static let certificateLinesPerSecond = 1
    /// The largest number of characters of a client's text in a line.
    private static let maxCharacters = 64

    private let time: any TimeSource
    private let state = Mutex(State())

    package init(time: any TimeSource = SystemTime()) { self.time = time }

    /// Logs a line, unless it must be left out.
    ///
    /// - Parameters:
    ///   - allowance: the allowance of lines of this kind.
    ///   - fields: the fields of the line, without secrets. Fields without a value are left out. Values may come from
    ///     strangers.
    private func log(
        _ message: Logger.Message,
        _ allowance: WritableKeyPath<State, Allowance>,
        _ fields: [(key: String, value: String?)],
        to logger: Logger
    ) {
        let now = time.uptime()
        guard let skipped = state.withLock({ $0[keyPath: allowance].takeLine(now: now) }) else { return }
        var metadata = Logger.Metadata()
        for (key, value) in fields {
            if let value, !value.isEmpty { metadata[key] = "\(Self.shown(value))" }
        }
        if skipped > 0 { metadata["skipped"] = "\(skipped)" }
        logger.notice(message, metadata: metadata)
    }

    /// Logs a failed login. Texts of the client that may be secrets are hidden.
    ///
    /// - Parameters:
    ///   - address: the peer's address without port.
    ///   - user: the name that the client gave, or the number of its account; nil if it gave neither.
    ///   - client: the client's or device's identifier; nil if it gave none.
    package func failed(
        _ failure: LoginFailure,
        address: String?,
        user: String? = nil,
        client: String? = nil,
        to logger: Logger
    ) {
        let fields: [(key: String, value: String?)] = [
            ("reason", failure.rawValue), ("address", address),
            ("user", user.map(Self.claimed)), ("client", client.map(Self.claimed)),
        ]
        log("login failed", \.logins, fields, to: logger)
    }

    /// Logs a failed TLS handshake.
    ///
    /// - Parameters:
    ///   - reason: the reason, for people.
    ///   - address: the peer's address without port.
    package func handshakeFailed(_ reason: String, address: String?, to logger: Logger) {
        log("TLS handshake failed", \.handshakes, [("reason", reason), ("address", address)], to: logger)
    }

    /// Logs that a client was refused because its certificate is revoked or has expired.
    ///
    /// - Parameters:
    ///   - reason: the reason, for people.
    ///   - address: the peer's address without port.
    func certificateRefused(_ reason: String, address: String?, to logger: Logger) {
        log("client certificate refused", \.certificates, [("reason", reason), ("address", address)], to: logger)
    }

    /// Returns a name that a client gave; "(hidden)" if it has the form of an API key, a JSON Web Token or an access
    /// token. Some clients send their token as the user name.
    static func claimed(_ text: String) -> String {
        let isToken =
            text.hasPrefix(APIKeyService.prefix) || text.hasPrefix("eyJ")
            || text.utf8.count == AccessToken.bytes && text.utf8.allSatisfy(isBase64URL)
        return isToken ? "(hidden)" : text
    }

    private static func isBase64URL(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Returns a stranger's text in a form that is safe in a line: shortened, and without characters that are
    /// invisible or that change how the rest of the line looks.
    static func shown(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars.prefix(Self.maxCharacters) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return text.unicodeScalars.dropFirst(Self.maxCharacters).isEmpty ? shown : shown + "…"
    }
}

extension Connection {
    /// Counts and logs a failed login, unless the error has nothing to do with the client's credentials.
    ///
    /// - Parameters:
    ///   - user: the name that the client gave, or the number of its account; nil if it gave neither.
    ///   - client: the client's or device's identifier; nil if it gave none.
    func loginFailed(_ code: HermesError.Code, user: String? = nil, client: String? = nil) {
        guard let failure = LoginFailure(code) else { return }
        listener.metrics.logins.failed(failure)
        listener.logins.failed(failure, address: remoteHost, user: user, client: client, to: listener.logger)
    }

    /// Counts and logs a failed TLS handshake.
    func handshakeFailed(_ reason: String) {
        listener.metrics.logins.handshakeFailed()
        listener.logins.handshakeFailed(reason, address: remoteHost, to: listener.logger)
    }
}
