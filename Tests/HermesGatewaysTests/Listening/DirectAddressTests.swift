// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Testing

@testable import HermesGateways

/// The addresses that contacts get for a peer-to-peer link.
struct DirectAddressTests {
    @Test(arguments: ["203.0.113.9", "8.8.8.8", "2001:db8::1", "::ffff:8.8.8.8"])
    func `a public host that the device gives counts, also if the server observes none`(_ text: String) {
        #expect(DirectAddress.observedHost(text, observed: "198.51.100.1") == text)
        #expect(DirectAddress.observedHost(text, observed: nil) == text)
    }

    @Test(
        arguments: [
            "", "example.com", "8.8.8.8%1", "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.1.1",
            "172.31.0.1", "192.168.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fd00::1", "ff02::1",
            "::ffff:127.0.0.1",
        ]
    )
    func `any other text counts as no host`(_ text: String) {
        #expect(DirectAddress.observedHost(text, observed: "10.1.1.1") == "10.1.1.1")
        #expect(DirectAddress.observedHost(text, observed: nil) == "")
    }

    private func ready(_ peer: DirectAddress, own: DirectAddress) throws -> IMPB_p2p_connect_ready_notification {
        let (ann, bob) = (try #require(UserID(1)), try #require(UserID(2)))
        let signal = IMPBTranslation.signal(from: ann, to: bob, peer, isReady: true)
        let notification = try #require(IMPBTranslation.notification(signal, from: ann, to: bob, own: own))
        return try IMPB_p2p_connect_ready_notification(wire: notification.body)
    }

    @Test func `two clients whose hosts are hidden do not count as near each other`() throws {
        var peer = DirectAddress()
        peer.localHost = "10.0.0.7"
        #expect(try ready(peer, own: DirectAddress()).ip == "")
        peer.observedHost = "203.0.113.9"
        #expect(try ready(peer, own: peer).ip == "10.0.0.7")
    }

    @Test func `an IMPB client gets the peer's own port if its public port is not known`() throws {
        var peer = DirectAddress()
        peer.localPort = 4_000
        peer.observedHost = "203.0.113.9"
        #expect(try ready(peer, own: DirectAddress()).port == 4_000)
        peer.observedPort = 5_000
        #expect(try ready(peer, own: DirectAddress()).port == 5_000)
    }
}
