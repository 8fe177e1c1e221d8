// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Distinguishes addresses of the Internet from private addresses.
package enum PublicAddress {
    /// Returns all addresses of a host. Blocks the thread.
    static func resolve(_ host: String) -> PublicNames.Lookup {
        var found: UnsafeMutablePointer<addrinfo>?
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        let status = getaddrinfo(host, nil, &hints, &found)
        guard status == 0 else {
            return [EAI_AGAIN, EAI_SYSTEM, EAI_MEMORY, EAI_FAIL].contains(status) ? .failed : .none
        }
        defer { freeaddrinfo(found) }
        var addresses: [[UInt8]] = []
        var next = found
        while let entry = next {
            next = entry.pointee.ai_next
            guard let address = entry.pointee.ai_addr else { continue }
            switch entry.pointee.ai_family {
            case AF_INET:
                address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { pointer in
                    withUnsafeBytes(of: pointer.pointee.sin_addr) { addresses.append(Array($0)) }
                }
            case AF_INET6:
                address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { pointer in
                    withUnsafeBytes(of: pointer.pointee.sin6_addr) { addresses.append(Array($0)) }
                }
            default:
                break
            }
        }
        return .found(addresses)
    }

    /// Returns an address as text, in digits.
    static func text(of address: [UInt8]) -> String {
        if address.count == 4 { return address.map(String.init).joined(separator: ".") }
        return stride(from: 0, to: address.count - 1, by: 2)
            .map { String(UInt16(address[$0]) << 8 | UInt16(address[$0 + 1]), radix: 16) }
            .joined(separator: ":")
    }

    /// Whether an address can belong to the Internet (the registries of RFC 6890).
    package static func isPublic(_ address: [UInt8]) -> Bool {
        switch address.count {
        case 4: return isPublic4(address[...])
        case 16:
            // IPv4 in IPv6, and 64:ff9b::/96, which translates to IPv4.
            if address.prefix(10).allSatisfy({ $0 == 0 }), address[10] == 0xFF, address[11] == 0xFF {
                return isPublic4(address.suffix(4))
            }
            if address.prefix(12) == [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0] {
                return isPublic4(address.suffix(4))
            }
            // Only 2000::/3 is routed, except protocol assignments such as Teredo (2001::/23), documentation
            // (2001:db8::/32, 3fff::/20) and 6to4 (2002::/16).
            switch (address[0], address[1]) {
            case (0x20, 0x01): return address[2] & 0xFE != 0 && address[2...3] != [0x0D, 0xB8]
            case (0x20, 0x02): return false
            case (0x3F, 0xFF): return address[2] & 0xF0 != 0
            case (let first, _): return first & 0xE0 == 0x20
            }
        default: return false
        }
    }

    private static func isPublic4(_ address: ArraySlice<UInt8>) -> Bool {
        guard let first = address.first else { return false }
        let second = address[address.startIndex + 1]
        switch (first, second) {
        case (0, _), (10, _), (127, _), (224..., _): return false
        case (100, 64...127), (169, 254), (172, 16...31), (192, 168), (198, 18...19): return false
        case (192, 0), (198, 51), (203, 0):
            // 192.0.0.0/24, 192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24.
            let third = address[address.startIndex + 2]
            return ![192: [0, 2], 198: [100], 203: [113]][first, default: []].contains(third)
        default: return true
        }
    }
}
