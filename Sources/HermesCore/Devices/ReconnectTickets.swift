// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation

/// Creates and checks the tickets that a stopping server gives to its clients. With a ticket, a client is recognized
/// when it returns.
///
/// A ticket contains its expiry, its account, and an HMAC-SHA-256 of these two values, cut to 16 bytes. Nothing is
/// stored. Any server with the same key can check the ticket: the same server after a restart, or another node.
package struct ReconnectTickets: Sendable {
    /// The size of a key, in bytes. If ``init(key:)`` generates the key, its tickets are valid only until the process
    /// ends.
    package static let keyBytes = 32
    /// The time for which a ticket is valid.
    package static let lifetime = Duration.seconds(3600)
    /// The size of a ticket, in bytes.
    package static let bytes = 8 + 4 + 16

    private let key: SymmetricKey

    /// - Parameter key: the secret key, 32 bytes; nil for a random key.
    package init(key: [UInt8]? = nil) {
        self.key = key.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256)
    }

    /// Creates an instance whose tickets are valid on all nodes that share a store. The key is a secret in that store.
    package init(sharedIn store: any PlaceStore) async throws(HermesError) {
        self.init(key: try await store.secret("reconnect tickets", proposal: Self.randomKey()))
    }

    /// Creates a new key from the system's random numbers.
    package static func randomKey() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<keyBytes).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
    }

    /// Creates a ticket for an account.
    package func issue(to user: UserID, now: Timestamp) -> [UInt8] {
        let end = UInt64(clamping: now.advanced(by: Self.lifetime).rawValue)
        let claims = Self.bytes(of: end) + Self.bytes(of: UInt32(user.rawValue))
        return claims + Array(HMAC<SHA256>.authenticationCode(for: claims, using: key)).prefix(16)
    }

    /// Whether a server with this key recently gave the ticket to this account.
    package func isValid(_ ticket: [UInt8], of user: UserID, now: Timestamp) -> Bool {
        guard ticket.count == Self.bytes else { return false }
        let claims = Array(ticket[..<12])
        let code = Array(HMAC<SHA256>.authenticationCode(for: claims, using: key)).prefix(16)
        // Compares all bytes, so that the time reveals nothing.
        var difference: UInt8 = 0
        for (mine, theirs) in zip(code, ticket[12...]) { difference |= mine ^ theirs }
        let end = claims[..<8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return difference == 0 && claims[8...] == Self.bytes(of: UInt32(user.rawValue))[...]
            && end >= UInt64(clamping: now.rawValue)
    }

    private static func bytes(of number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}
