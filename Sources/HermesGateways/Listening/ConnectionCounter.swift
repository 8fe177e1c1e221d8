// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore
import Synchronization

/// Counts the open connections of all listeners, in total and per address, and enforces the limits. It also enforces
/// the limit on TLS handshakes (``HandshakeBudget``).
///
/// Connections of the HTTP port count for their address like all others, but have a separate total. So HTTP connections
/// and the gateways' clients do not take connections away from each other. A WebSocket over the connection of a trusted
/// proxy counts for the client that the proxy names. A request over the connection of a trusted proxy also counts for
/// the client, until the request is answered. When the total of the HTTP port is reached, an address still gets a few
/// connections, so that an operator can reach the server while others use up the total.
///
/// State: one `Mutex`, taken once per accept and once per close.
package final class ConnectionCounter: Sendable {
    /// The unit that counts as one address: an IPv4 address, or an IPv6 /64 network, which is usually one customer.
    package enum Address: Hashable, Sendable {
        case v4(UInt32)
        case v6Network(UInt64)
        /// The connection is from a local socket; it counts only in the total.
        case local
        /// The connection is from a proxy that has not given the client's address; it counts only in the total.
        case unknown
        /// The connection of the HTTP port is from a proxy that has stated that it does not give the client's
        /// address. It counts only in the total, and gets no connection of the reserve.
        case hidden

        package init(_ address: SocketAddress?) {
            switch address {
            case .v4: self = address?.withSockAddr { Self.v4(UnsafeRawBufferPointer(start: $0, count: $1)) } ?? .local
            case .v6: self = address?.withSockAddr { Self.v6(UnsafeRawBufferPointer(start: $0, count: $1)) } ?? .local
            case .unixDomainSocket, nil: self = .local
            }
        }

        // On all systems, sockaddr_in has the address at byte 4 and sockaddr_in6 at byte 8.

        private static func v4(_ bytes: UnsafeRawBufferPointer) -> Address? {
            guard bytes.count >= 8 else { return nil }
            return .v4(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
        }

        private static func v6(_ bytes: UnsafeRawBufferPointer) -> Address? {
            guard bytes.count >= 24 else { return nil }
            let network = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            let host = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
            // ::ffff:a.b.c.d is an IPv4 peer of a listener for IPv4 and IPv6.
            return network == 0 && host >> 32 == 0xFFFF ? .v4(UInt32(truncatingIfNeeded: host)) : .v6Network(network)
        }
    }

    /// The reason why a connection was refused.
    package enum Refusal: String, Error, CaseIterable, Hashable {
        case total
        case perAddress = "per_address"
        /// The address began too many TLS handshakes.
        case handshakes = "tls_handshakes"
    }

    /// The numbers of open connections: of the gateways, of the HTTP port, and of each address.
    private struct Counts {
        var total = 0
        var http = 0
        private var perAddress: [Address: AddressCounts] = [:]

        /// Whether an address has fewer connections than `limit`; always true for local, unknown and hidden
        /// addresses.
        func hasRoom(for address: Address, limit: Int) -> Bool {
            switch address {
            case .local, .unknown, .hidden: true
            case .v4, .v6Network: perAddress[address, default: AddressCounts()].all < limit
            }
        }

        /// Returns the number of connections of the HTTP port from an address.
        func http(from address: Address) -> Int { perAddress[address, default: AddressCounts()].http }

        /// Counts a connection for an address, but not in the totals.
        mutating func add(_ address: Address, isHTTP: Bool = false) {
            perAddress[address, default: AddressCounts()].all += 1
            if isHTTP { perAddress[address, default: AddressCounts()].http += 1 }
        }

        /// Removes a connection from the count of an address, but not from the totals.
        mutating func remove(_ address: Address, isHTTP: Bool = false) {
            guard var sameAddress = perAddress[address] else { return }
            sameAddress.all -= 1
            if isHTTP { sameAddress.http -= 1 }
            perAddress[address] = sameAddress.all > 0 ? sameAddress : nil
        }
    }

    private struct AddressCounts {
        var all = 0
        var http = 0
    }

    /// The limits of the HTTP port that do not depend on the limit on gateway connections.
    package struct HTTPShares: Sendable, Hashable {
        /// The number of HTTP connections that are always allowed, regardless of the limit on gateway connections.
        package let floor: Int
        /// The number of HTTP connections that are allowed beyond the limit of the HTTP port.
        package let reserve: Int

        /// The shares of a server with enough descriptors.
        package static let full = HTTPShares(floor: 100, reserve: 128)

        /// Returns shares that use at most this number of descriptors. Each share uses at most half of them.
        package static func fitting(_ files: Int) -> HTTPShares {
            HTTPShares(floor: min(full.floor, files / 2), reserve: min(full.reserve, files / 2))
        }

        /// Returns the limit on HTTP connections (without WebSockets) for a given limit on gateway connections.
        func httpTotal(of total: Int) -> Int { max(floor, min(10_000, total / 4)) }
    }

    /// An address that has fewer HTTP connections than this number may get a connection of the reserve.
    private static let reservePerAddress = 8

    private let total: Int
    private let httpTotal: Int
    private let httpReserve: Int
    private let perAddress: Int
    private let counts = Mutex(Counts())
    private let handshakes: HandshakeBudget
    package let handshakeLines = HandshakeLines()

    /// - Parameters:
    ///   - total: the largest number of connections of all addresses together.
    ///   - perAddress: the largest number of connections of one address.
    ///   - handshakesPerSecond: the largest number of TLS handshakes of one address per second.
    ///   - http: the limits of the HTTP port.
    package init(
        total: Int,
        perAddress: Int,
        handshakesPerSecond: Int = ConnectionLimits().tlsHandshakesPerSecondPerAddress,
        http: HTTPShares = .full
    ) {
        handshakes = HandshakeBudget(perAddress: handshakesPerSecond)
        self.total = total
        httpTotal = http.httpTotal(of: total)
        httpReserve = http.reserve
        self.perAddress = perAddress
    }

    /// - Parameter http: the limits of the HTTP port; by default they fit into this process's descriptors.
    package convenience init(_ limits: ConnectionLimits, http: HTTPShares = DescriptorShares.present.http) {
        self.init(
            total: limits.connections,
            perAddress: limits.connectionsPerAddress,
            handshakesPerSecond: limits.tlsHandshakesPerSecondPerAddress,
            http: http
        )
    }

    /// Returns the limit on gateway connections for a given limit on HTTP connections. This is the inverse of
    /// ``HTTPShares/httpTotal(of:)``.
    package static func total(forHTTP limit: Int) -> Int { 4 * limit }

    /// Returns the largest limit on gateway connections with which all kinds of connections fit into `files`
    /// descriptors; at least 1.
    package static func total(fitting files: Int) -> Int { DescriptorShares(of: files).gateways }

    /// Returns the largest number of connections of all kinds, if `total` gateway connections and `files` descriptors
    /// are allowed.
    package static func most(total: Int, files: Int = .max) -> Int {
        let http = DescriptorShares(of: files).http
        return total + http.httpTotal(of: total) + http.reserve
    }

    /// The number of open gateway connections.
    package var open: Int { counts.withLock { $0.total } }

    /// The number of open connections of the HTTP port, without WebSockets.
    package var openHTTP: Int { counts.withLock { $0.http } }

    /// Counts a connection, unless the limit is reached.
    ///
    /// - Returns: nil if the connection was counted. In that case, call ``remove(_:isHTTP:)`` after the connection is
    ///   closed.
    package func add(_ address: Address) -> Refusal? {
        counts.withLock { counts in
            guard counts.total < total else { return .total }
            guard counts.hasRoom(for: address, limit: perAddress) else { return .perAddress }
            counts.add(address)
            counts.total += 1
            return nil
        }
    }

    /// Counts a connection for its address, if the address has room. Until now, the connection was counted as unknown.
    ///
    /// - Parameter isHTTP: whether the connection is one of the HTTP port.
    /// - Returns: nil if the connection is now counted for the address; otherwise it is still counted as unknown.
    package func identify(_ address: Address, isHTTP: Bool = false) -> Refusal? {
        counts.withLock { counts in
            guard counts.hasRoom(for: address, limit: perAddress) else { return .perAddress }
            guard address != .hidden || counts.http <= httpTotal else { return .total }
            counts.add(address, isHTTP: isHTTP)
            counts.remove(.unknown, isHTTP: isHTTP)
            return nil
        }
    }

    /// Removes a closed connection from the count.
    ///
    /// - Parameter isHTTP: whether the connection is counted as one of the HTTP port.
    package func remove(_ address: Address, isHTTP: Bool = false) {
        counts.withLock { counts in
            if isHTTP { counts.http -= 1 } else { counts.total -= 1 }
            counts.remove(address, isHTTP: isHTTP)
        }
    }

    /// Charges a TLS handshake to an address, before the handshake begins.
    ///
    /// - Parameter now: the present time on the connection's loop.
    /// - Returns: nil if the handshake is allowed; otherwise nothing was charged.
    package func beginHandshake(of address: Address, now: NIODeadline) -> Refusal? {
        handshakes.take(of: address, now: now.uptime) ? nil : .handshakes
    }

    // MARK: The HTTP port

    /// Counts a connection of the HTTP port, unless the limit is reached.
    ///
    /// - Returns: nil if the connection was counted. In that case, a call to ``remove(_:isHTTP:)`` or
    ///   ``becomeGateway(_:as:)`` must follow.
    package func addHTTP(_ address: Address) -> Refusal? {
        counts.withLock { counts in
            guard counts.hasRoom(for: address, limit: perAddress) else { return .perAddress }
            if counts.http >= httpTotal {
                guard counts.http < httpTotal + httpReserve else { return .total }
                guard counts.http(from: address) < Self.reservePerAddress else { return .total }
            }
            counts.add(address, isHTTP: true)
            counts.http += 1
            return nil
        }
    }

    /// Counts a request that arrived over a proxy's connection. The request counts for the client behind the proxy,
    /// unless that client has reached its limit.
    ///
    /// - Returns: nil if the request was counted. In that case, a call to ``endRequest(of:)`` must follow.
    package func beginRequest(of address: Address) -> Refusal? {
        counts.withLock { counts in
            guard counts.hasRoom(for: address, limit: perAddress) else { return .perAddress }
            counts.add(address)
            return nil
        }
    }

    /// Removes a request from the count after the request was answered or its connection was closed.
    package func endRequest(of address: Address) { counts.withLock { $0.remove(address) } }

    /// Counts a connection of the HTTP port as a gateway's from now on, because it has become a WebSocket.
    ///
    /// - Parameters:
    ///   - address: the address under which the connection is counted.
    ///   - client: the client's address. A proxy may have given it only now.
    /// - Returns: nil if the connection is now counted as a gateway's. In that case, call ``remove(_:isHTTP:)`` with
    ///   `client` after the connection is closed. If the result is not nil, nothing changed.
    package func becomeGateway(_ address: Address, as client: Address) -> Refusal? {
        counts.withLock { counts in
            guard counts.total < total else { return .total }
            guard client == address || counts.hasRoom(for: client, limit: perAddress) else { return .perAddress }
            counts.http -= 1
            counts.remove(address, isHTTP: true)
            counts.total += 1
            counts.add(client)
            return nil
        }
    }
}
