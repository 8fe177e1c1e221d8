// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import NIOCore
import NIOHTTP1
import Testing

@testable import HermesServer

/// The client's address in a request, and the pages that may send requests.
@Suite struct WebClientTests {
    private static func address(_ text: String) throws -> SocketAddress { try SocketAddress(ipAddress: text, port: 0) }

    private static let proxies = ForwardedClient(
        proxies: ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"].compactMap(IPNetwork.init)
    )

    @Test(
        arguments: [
            ("127.0.0.1", ["x-forwarded-for": "192.0.2.7"], "192.0.2.7"),
            ("127.0.0.1", ["x-forwarded-for": "1.1.1.1, 192.0.2.7, 10.1.1.1"], "192.0.2.7"),
            ("127.0.0.1", ["x-forwarded-for": "10.2.2.2, 10.1.1.1"], "10.2.2.2"),
            ("127.0.0.1", ["x-forwarded-for": "1.1.1.1, what, 10.1.1.1"], "10.1.1.1"),
            ("127.0.0.1", ["x-forwarded-for": "192.0.2.7:1234"], "192.0.2.7"),
            ("127.0.0.1", ["x-forwarded-for": "2001:db9::1"], "2001:db9::1"),
            ("127.0.0.1", ["forwarded": "for=192.0.2.7;proto=https"], "192.0.2.7"),
            ("127.0.0.1", ["forwarded": "for=1.1.1.1, proto=http;For=\"[2001:db9::1]:80\""], "2001:db9::1"),
            ("127.0.0.1", ["forwarded": "for=192.0.2.7", "x-forwarded-for": "192.0.2.7"], "192.0.2.7"),
            ("::ffff:127.0.0.1", ["x-forwarded-for": "192.0.2.7"], "192.0.2.7"),
            ("2001:db8::5", ["x-forwarded-for": "192.0.2.7"], "192.0.2.7"),
            // The peer is not a trusted proxy, so the fields are ignored.
            ("192.0.2.1", ["x-forwarded-for": "192.0.2.7"], nil),
            ("2001:db9::5", ["x-forwarded-for": "192.0.2.7"], nil),
            ("127.0.0.1", [:], nil), ("127.0.0.1", ["x-forwarded-for": ""], nil),
            ("127.0.0.1", ["x-forwarded-for": "unknown"], nil), ("127.0.0.1", ["forwarded": "for=_hidden"], nil),
        ] as [(String, HTTPHeaders, String?)]
    )
    func `the last address that is no proxy's is the client's`(
        _ peer: String,
        _ headers: HTTPHeaders,
        _ client: String?
    ) throws {
        let answer = Self.proxies.client(of: headers, from: try Self.address(peer))
        #expect(answer == (try client.map { .client(try Self.address($0)) } ?? .peer))
    }

    @Test func `one of two headers that disagree was written by the client`() throws {
        let headers: HTTPHeaders = ["forwarded": "for=1.1.1.1", "x-forwarded-for": "192.0.2.7"]
        #expect(Self.proxies.client(of: headers, from: try Self.address("127.0.0.1")) == .contradiction)
        #expect(Self.proxies.client(of: headers, from: try Self.address("192.0.2.1")) == .peer)
    }

    @Test(arguments: [
        "", "10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "host", "10.0.0.0/8/8", "/8",
    ])
    func `networks that are none`(_ text: String) { #expect(IPNetwork(text) == nil) }

    @Test func `a network holds its addresses`() throws {
        let network = try #require(IPNetwork("10.64.0.0/10"))
        #expect(network.contains(try Self.address("10.127.255.255")))
        #expect(!network.contains(try Self.address("10.128.0.0")))
        #expect(!network.contains(try Self.address("2001:db8::1")))
        #expect(try #require(IPNetwork("::/0")).contains(try Self.address("10.0.0.1")))
        #expect(try #require(IPNetwork("::1")).contains(try Self.address("::1")))
    }

    private static func origins(_ list: [String] = [], anonymous: Bool = true, loopback: Bool = true) -> WebOrigins {
        WebOrigins(list, isAnonymousAllowed: anonymous, isLoopback: loopback)
    }

    @Test(
        arguments: [
            (Self.origins(), nil, "localhost:8080", true),
            (Self.origins(), "http://localhost:8080", "localhost:8080", true),
            (Self.origins(), "http://localhost:3000", "localhost:8080", true),
            (Self.origins(), "http://127.0.0.1:8080", "127.0.0.1:8080", true),
            (Self.origins(), "http://[::1]:8080", "[::1]:8080", true),
            (Self.origins(), "https://evil.example", "localhost:8080", false),
            (Self.origins(), "null", "localhost:8080", false), (Self.origins(), "file://", "localhost:8080", false),
            (Self.origins(), "http://127.0.0.1.evil.example", "127.0.0.1", false),
            (Self.origins(), "http://localhost@evil.example", "localhost", false),
            (Self.origins(), "", "localhost", false),
            // In DNS rebinding, a foreign name resolves to this server.
            (Self.origins(), "http://evil.example:8080", "evil.example:8080", false),
            (Self.origins(["https://chat.example"]), "https://chat.example", "chat.example", true),
            (Self.origins(["https://chat.example"]), "https://CHAT.example", "chat.example", true),
            (Self.origins(["https://chat.example"]), "https://evil.example", "chat.example", false),
            // All clients must log in, so any page is allowed unless the settings name pages.
            (Self.origins(anonymous: false), "https://evil.example", "localhost", true),
            (Self.origins(["https://chat.example"], anonymous: false), "https://evil.example", "localhost", false),
            // On an address that other machines can reach, the server's own pages are allowed, even if a proxy removes
            // the encryption.
            (Self.origins(loopback: false), "https://chat.example", "chat.example", true),
            (Self.origins(loopback: false), "http://chat.example:8080", "chat.example:8080", true),
            (Self.origins(loopback: false), "http://chat.example:8081", "chat.example:8080", false),
            (Self.origins(loopback: false), "https://evil.example", "chat.example", false),
            (Self.origins(loopback: false), "http://localhost", "chat.example", false),
            (Self.origins(["https://a.example"], loopback: false), "https://chat.example", "chat.example", false),
        ] as [(WebOrigins, String?, String, Bool)]
    )
    func `pages that may connect`(_ origins: WebOrigins, _ origin: String?, _ host: String, _ isAllowed: Bool) {
        #expect(origins.allow(origin.map { [$0] } ?? [], hosts: [host]) == isAllowed)
    }

    @Test func `two origins are none`() {
        #expect(!Self.origins().allow(["http://localhost", "http://localhost"], hosts: ["localhost"]))
    }

    @Test func `an address has a rate, and many addresses do not fill the memory`() {
        let limit = HTTPRateLimit<ConnectionCounter.Address>(rate: 1, burst: 2)
        #expect(limit.allows(.v4(1), now: .zero))
        #expect(limit.allows(.v4(1), now: .zero))
        #expect(!limit.allows(.v4(1), now: .zero))
        #expect(limit.allows(.v4(2), now: .zero))
        #expect(limit.allows(.v4(1), now: .seconds(1)))
        for address in 0..<UInt32(3 * HTTPRateLimit<ConnectionCounter.Address>.maxPayers) {
            _ = limit.allows(.v4(address), now: .seconds(1))
        }
        #expect(limit.count <= HTTPRateLimit<ConnectionCounter.Address>.maxPayers)
    }
}
