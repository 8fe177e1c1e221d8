// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Metrics

/// The kinds of failed logins that metrics and logs distinguish, with their labels.
package enum LoginFailure: String, Sendable, CaseIterable {
    /// The name, the password or the token is wrong.
    case badCredentials = "bad_credentials"
    /// The client presents no credentials, its account is disabled, or the client may not do what it requests.
    case notAuthorized = "not_authorized"
    /// Too many logins have failed, so the client has to wait.
    case delayed = "login_delayed"

    /// Creates the kind for an error; nil if the client's credentials are not the reason for the error.
    package init?(_ code: HermesError.Code) {
        switch code {
        case .wrongCredentials, .invalidToken: self = .badCredentials
        case .notAuthenticated, .accountDisabled, .forbidden: self = .notAuthorized
        case .loginDelayed: self = .delayed
        default: return nil
        }
    }
}

/// Counts failed logins and failed TLS handshakes at one listener.
package struct LoginMetrics: Sendable {
    private let failed: [LoginFailure: Counter]
    private let failedHandshakes: Counter

    package init(gateway: String) {
        let dimensions = [("gateway", gateway)]
        failed = Dictionary(
            uniqueKeysWithValues: LoginFailure.allCases.map { failure in
                let dimensions = dimensions + [("reason", failure.rawValue)]
                return (failure, Counter(label: "hermes_logins_failed_total", dimensions: dimensions))
            }
        )
        failedHandshakes = Counter(label: "hermes_tls_handshakes_failed_total", dimensions: dimensions)
    }

    package func failed(_ failure: LoginFailure) { failed[failure]?.increment() }

    package func handshakeFailed() { failedHandshakes.increment() }
}
