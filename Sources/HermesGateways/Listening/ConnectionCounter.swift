// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
import Synchronization

/// Counts open connections, in total and per address, and says when there are enough.
///
/// State: one `Mutex`, taken once per accept and once per close.
package final class ConnectionCounter: Sendable {
    /// What counts as one address: an IPv4 address, an IPv6 /64 network (one customer), or anything local.
    package enum Address: Hashable, Sendable {
        case v4(UInt32)
        case v6Network(UInt64)
        case local
        /// Behind a proxy that has not told yet; only counted in total.
        case unknown

        package init(_ address: SocketAddress?) {
            switch address {
            case .v4: self = address?.withSockAddr { Self.v4(UnsafeRawBufferPointer(start: $0, count: $1)) } ?? .local
            case .v6: self = address?.withSockAddr { Self.v6(UnsafeRawBufferPointer(start: $0, count: $1)) } ?? .local
            case .unixDomainSocket, nil: self = .local
            }
        }

        // sockaddr_in has the address at byte 4, sockaddr_in6 at byte 8, everywhere.

        private static func v4(_ bytes: UnsafeRawBufferPointer) -> Address? {
            guard bytes.count >= 8 else { return nil }
            return .v4(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
        }

        private static func v6(_ bytes: UnsafeRawBufferPointer) -> Address? {
            guard bytes.count >= 24 else { return nil }
            let network = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            let host = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
            // ::ffff:a.b.c.d is an IPv4 peer of a listener for both.
            return network == 0 && host >> 32 == 0xFFFF ? .v4(UInt32(truncatingIfNeeded: host)) : .v6Network(network)
        }
    }

    /// Why a connection was refused.
    package enum Refusal: String, CaseIterable, Sendable, Hashable {
        case total
        case perAddress = "per_address"
    }

    private struct Counts {
        var total = 0
        var perAddress: [Address: Int] = [:]
    }

    private let total: Int
    private let perAddress: Int
    private let counts = Mutex(Counts())

    /// - Parameters:
    ///   - total: the most connections in all.
    ///   - perAddress: the most connections of one address.
    package init(total: Int, perAddress: Int) {
        self.total = total
        self.perAddress = perAddress
    }

    /// Open connections now.
    package var open: Int { counts.withLock { $0.total } }

    /// Counts a connection, unless there are enough.
    ///
    /// - Returns: nil if it was counted; then ``remove(_:)`` has to follow once it is closed.
    package func add(_ address: Address) -> Refusal? {
        counts.withLock { counts in
            guard counts.total < total else { return .total }
            let sameAddress = counts.perAddress[address, default: 0]
            guard sameAddress < perAddress || address == .unknown else { return .perAddress }
            counts.perAddress[address] = sameAddress + 1
            counts.total += 1
            return nil
        }
    }

    /// The address of a connection that was counted as unknown has become known.
    ///
    /// - Returns: nil if it is counted there now; else it is still counted as unknown.
    package func identify(_ address: Address) -> Refusal? {
        counts.withLock { counts in
            let sameAddress = counts.perAddress[address, default: 0]
            guard sameAddress < perAddress else { return .perAddress }
            counts.perAddress[address] = sameAddress + 1
            Self.removeOne(.unknown, &counts)
            return nil
        }
    }

    /// A connection that was counted is closed.
    package func remove(_ address: Address) {
        counts.withLock { counts in
            counts.total -= 1
            Self.removeOne(address, &counts)
        }
    }

    private static func removeOne(_ address: Address, _ counts: inout Counts) {
        guard let sameAddress = counts.perAddress[address] else { return }
        counts.perAddress[address] = sameAddress > 1 ? sameAddress - 1 : nil
    }
}
