// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import NIOCore

/// A range of IP addresses: `10.0.0.0/8`, `2001:db8::/32`, or one address.
package struct IPNetwork: Sendable, Hashable {
    /// The 16 bytes of the address. An IPv4 address has the form `::ffff:a.b.c.d`.
    private let bytes: [UInt8]
    /// The number of significant bits.
    private let bits: Int

    /// - Returns: nil if the text is not a network, or if the address has set bits beyond the length of the network.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard let address = try? SocketAddress(ipAddress: String(parts[0]), port: 0),
            let bytes = Self.bytes(of: address),
            parts.count <= 2
        else { return nil }
        let width = parts[0].contains(":") ? 128 : 32
        var length = width
        if parts.count == 2 {
            guard let number = UInt8(parts[1]), number <= width, parts[1].allSatisfy(\.isNumber) else { return nil }
            length = Int(number)
        }
        self.bytes = bytes
        bits = length + 128 - width
        guard (bits..<128).allSatisfy({ bytes[$0 / 8] & (0x80 >> UInt8($0 % 8)) == 0 }) else { return nil }
    }

    /// Whether the network contains an address.
    package func contains(_ address: SocketAddress) -> Bool {
        guard let other = Self.bytes(of: address) else { return false }
        let whole = bits / 8
        guard bytes[..<whole] == other[..<whole] else { return false }
        let rest = bits % 8
        return rest == 0 || (bytes[whole] ^ other[whole]) >> UInt8(8 - rest) == 0
    }

    /// Returns an address as text, so that equal addresses have equal texts. An address `::ffff:a.b.c.d` is returned as
    /// the IPv4 address. The result is nil if the address is not an IP address.
    static func text(of address: SocketAddress) -> String? {
        guard case .v6 = address, let bytes = Self.bytes(of: address), bytes[..<10].allSatisfy({ $0 == 0 }),
            bytes[10] == 0xFF, bytes[11] == 0xFF
        else { return address.ipAddress }
        return bytes[12...].map { "\($0)" }.joined(separator: ".")
    }

    // On every system, sockaddr_in has the address at byte 4, and sockaddr_in6 at byte 8.
    private static func bytes(of address: SocketAddress) -> [UInt8]? {
        switch address {
        case .v4:
            address.withSockAddr { pointer, count in
                let all = UnsafeRawBufferPointer(start: pointer, count: count)
                return [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + all[4..<8]
            }
        case .v6:
            address.withSockAddr { pointer, count in Array(UnsafeRawBufferPointer(start: pointer, count: count)[8..<24])
            }
        case .unixDomainSocket: nil
        }
    }
}

extension Setting where Value == [IPNetwork] {
    /// Creates a setting for a list of networks, separated by commas. An empty text is an empty list.
    package static func networks(_ key: String, maxCount: Int, _ summary: String) -> Self {
        let allowed = "up to \(maxCount) addresses or networks such as 10.0.0.0/8, separated by commas"
        return Setting(key, kind: "list", allowed: allowed, default: "", summary) { text in
            if text.isEmpty { return [] }
            let words = text.split(separator: ",", omittingEmptySubsequences: false)
            let networks = words.compactMap { word in IPNetwork(String(word.filter { $0 != " " })) }
            return networks.count == words.count && words.count <= maxCount ? networks : nil
        }
    }
}

extension SettingField {
    /// Creates a field for a list of networks. The default of the setting is the empty list.
    package static func networks(
        _ property: any WritableKeyPath<Group, [IPNetwork]> & Sendable,
        _ key: String,
        maxCount: Int,
        _ summary: String
    ) -> Self {
        Self(property) { _ in .networks(key, maxCount: maxCount, summary) }
    }
}
