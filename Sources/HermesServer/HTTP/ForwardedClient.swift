// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import NIOCore
import NIOHTTP1

/// Finds the client behind a proxy from the headers `X-Forwarded-For` or `Forwarded` (RFC 7239).
///
/// Only configured proxies are trusted. Each proxy appends an address to the list, so the list is read from its end.
/// The first address that does not belong to a proxy is the client's. The client itself may have written everything
/// before this address.
struct ForwardedClient: Sendable {
    /// A request's statement about its client.
    enum Answer: Sendable, Hashable {
        /// The connection's own peer.
        case peer
        case client(SocketAddress)
        /// The two headers disagree, so the client wrote one of them.
        case contradiction
    }

    let proxies: [IPNetwork]

    /// Whether a peer is one of the proxies.
    func trusts(_ peer: SocketAddress?) -> Bool {
        guard let peer, !proxies.isEmpty else { return false }
        return proxies.contains { $0.contains(peer) }
    }

    /// Returns the client of a request that a peer sent.
    func client(of headers: HTTPHeaders, from peer: SocketAddress?) -> Answer {
        guard trusts(peer) else { return .peer }
        let listed = headers["x-forwarded-for"]
        let forwarded = headers["forwarded"]
        if listed.isEmpty, forwarded.isEmpty { return .peer }
        let first = last(Self.items(listed).map(Self.address))
        if forwarded.isEmpty { return first }
        let second = last(Self.items(forwarded).map { Self.parameter($0).flatMap(Self.address) })
        return listed.isEmpty || first == second ? second : .contradiction
    }

    /// Returns the last address that does not belong to a proxy. The search begins at the end of the list, and an
    /// unreadable address stops it.
    private func last(_ chain: [SocketAddress?]) -> Answer {
        var answer = Answer.peer
        for address in chain.reversed() {
            guard let address else { return answer }
            answer = .client(address)
            if !trusts(address) { break }
        }
        return answer
    }

    private static func items(_ fields: [String]) -> [Substring] {
        fields.flatMap { $0.split(separator: ",", omittingEmptySubsequences: true) }.map(trimmed)
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text.drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }

    /// Returns the value of `for` in an element of `Forwarded`.
    private static func parameter(_ element: Substring) -> Substring? {
        for pair in element.split(separator: ";") {
            let parts = trimmed(pair).split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "for" else { continue }
            return parts[1].count >= 2 && parts[1].first == "\"" && parts[1].last == "\""
                ? parts[1].dropFirst().dropLast() : parts[1]
        }
        return nil
    }

    /// Reads an address in one of the forms `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` and
    /// `[2001:db8::1]:80`.
    private static func address(_ text: Substring) -> SocketAddress? {
        var host = text
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
        } else if text.filter({ $0 == ":" }).count == 1, let colon = text.firstIndex(of: ":") {
            host = text[..<colon]
        }
        // The port is 0, so that a client has the same address with all source ports.
        return host.utf8.count <= 45 ? try? SocketAddress(ipAddress: String(host), port: 0) : nil
    }
}
