// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto

/// Normalizes addresses for limits per address.
package enum NetworkAddress {
    /// Returns the key under which the limits count an address. All addresses of a 64-bit IPv6 network have the same
    /// key, because such a network belongs to one customer. An IPv4-mapped IPv6 address counts as its IPv4 address.
    ///
    /// - Parameter address: the address in the system's text form, without port.
    package static func key(of address: String) -> String {
        guard address.utf8.count <= 64 else { return String(address.prefix(64)) }
        guard address.utf8.contains(UInt8(ascii: ":")) else { return address }
        let bare = address.prefix { $0 != "%" }
        if bare.contains("."), let mapped = bare.split(separator: ":").last { return String(mapped) }
        let (head, tail) = halves(of: bare)
        let zeros = max(0, 8 - head.count - tail.count)
        let groups = head + Array(repeating: "", count: zeros) + tail
        let network = groups.prefix(4).map { $0.drop { $0 == "0" }.lowercased() }
        return network.joined(separator: ":") + "::/64"
    }

    /// Returns the groups before and after "::".
    private static func halves(of address: Substring) -> (head: [Substring], tail: [Substring]) {
        let parts = address.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
        let groups = parts.map { $0.split(separator: ":") }
        return (groups.first ?? [], groups.count > 1 ? groups[1] : [])
    }
}

/// The stored form of a network from which an account has logged in: the first 8 bytes of a hash of the account and the
/// network's key. So a known network is recognized, although its address is not stored. However, somebody who tries all
/// IPv4 addresses can find the address.
package struct NetworkMark: RawRepresentable, Sendable, Hashable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// - Parameter key: the key from ``NetworkAddress/key(of:)``; nil for a local caller.
    package init(of user: UserID, at key: String?) {
        let hash = SHA256.hash(data: Array("hermes network \(user.rawValue) \(key ?? "local")".utf8))
        rawValue = hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
