// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import Synchronization

/// Verifies JSON Web Tokens with the keys of a file.
///
/// State: one `Mutex` around the keys. When the file is read again, all keys are replaced at once.
final class JWTVerifier: TokenVerifier {
    private let settings: AccessSettings.Tokens
    private let keys: Mutex<TokenKeys>

    /// Reads the keys. Throws if no key fits an allowed algorithm, because then no token could be valid.
    init(_ settings: AccessSettings.Tokens) throws {
        self.settings = settings
        keys = Mutex(try Self.load(settings))
    }

    /// Reads the keys again. If that fails, the old keys stay in use.
    func reload() throws {
        let fresh = try Self.load(settings)
        keys.withLock { $0 = fresh }
    }

    private static func load(_ settings: AccessSettings.Tokens) throws -> TokenKeys {
        let keys = try TokenKeys.load(settings.keysPath)
        guard keys.keys.contains(where: { settings.algorithms.contains($0.key.algorithm) }) else {
            let allowed = settings.algorithms.map(\.rawValue).sorted()
            let names = allowed.joined(separator: " or ")
            let role = allowed.count == 1 ? "the only algorithm" : "the algorithms"
            throw TokenKeys.Refusal(description: "it holds no key for \(names), \(role) of access.jwt.algorithms")
        }
        return keys
    }

    func isToken(_ text: String) -> Bool { JSONWebToken.hasForm(text) }

    func verify(_ text: String, now: Timestamp) async throws(HermesError) -> VerifiedToken {
        guard let token = JSONWebToken(text), token.header.crit == nil,
            let algorithm = AccessSettings.TokenAlgorithm(rawValue: token.header.alg),
            settings.algorithms.contains(algorithm)
        else { throw Self.invalid("its format or its algorithm is not accepted") }
        let candidates = keys.withLock { $0.candidates(algorithm, identifier: token.header.kid) }
        guard candidates.contains(where: { $0.key.isValid(token.signature, for: token.signed) }) else {
            throw Self.invalid("its signature is wrong")
        }
        guard let payload = TokenPayload(json: token.payload) else {
            throw Self.invalid("it has no valid payload")
        }
        if let problem = payload.problem(audience: settings.audience, issuer: settings.issuer, now: now) {
            throw Self.invalid(problem)
        }
        guard let claims = payload.claims() else { throw Self.invalid("its topics are not topic filters") }
        return VerifiedToken(subject: payload.subject, claims: claims, expiresAt: payload.expiry)
    }

    private static func invalid(_ reason: String) -> HermesError {
        HermesError(.invalidToken, "the token cannot be used: \(reason)")
    }
}
