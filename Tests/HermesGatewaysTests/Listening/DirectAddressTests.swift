// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Testing

@testable import HermesGateways

/// The addresses that contacts get for a peer-to-peer link. The public addresses here belong to somebody, because the
/// ones for documentation do not count as public. Nothing is sent to them.
struct DirectAddressTests {
    private func publicHost(_ reported: String, observed: String?) -> String {
        DirectAddress(local: "", reported: reported, observed: observed).observedHost
    }

    private func localHost(_ reported: String) -> String {
        DirectAddress(local: reported, reported: "", observed: nil).localHost
    }

    @Test(arguments: [
        ("9.9.9.9", "9.9.9.9"), ("192.0.1.1", "192.0.1.1"), ("2620:fe::fe", "2620:fe::fe"),
        ("2620:FE:0::00fe", "2620:fe::fe"), ("::ffff:9.9.9.9", "9.9.9.9"), ("::FFFF:909:909", "9.9.9.9"),
    ])
    func `a public host that the device gives counts, also if the server observes none`(
        _ text: String,
        _ host: String
    ) {
        #expect(publicHost(text, observed: "10.1.1.1") == host)
        #expect(publicHost(text, observed: nil) == host)
    }

    @Test(
        arguments: [
            "", "example.com", "8.8.8.8%1", "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.1.1",
            "172.31.0.1", "192.168.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fd00::1", "ff02::1",
            "::ffff:127.0.0.1", "192.0.0.8", "192.0.2.1", "198.19.0.1", "198.51.100.1", "203.0.113.9",
            "::ffff:203.0.113.9", "2001:db8::1", "3fff:fff::1", "2001:0:909:909::1", "2002:909:909::1",
            "64:ff9b::909:909",
        ]
    )
    func `any other text counts as no host`(_ text: String) {
        #expect(publicHost(text, observed: "10.1.1.1") == "10.1.1.1")
        #expect(publicHost(text, observed: "::ffff:10.1.1.1") == "10.1.1.1")
        #expect(publicHost(text, observed: nil) == "")
    }

    @Test(arguments: [
        ("10.0.0.7", "10.0.0.7"), ("169.254.1.1", "169.254.1.1"), ("::ffff:10.0.0.7", "10.0.0.7"),
        ("FD00:0::1", "fd00::1"), ("fe80::1", "fe80::1"), ("0.0.0.0", ""), ("127.0.0.1", ""), ("127.8.9.1", ""),
        ("224.0.0.1", ""), ("239.255.255.250", ""), ("255.255.255.255", ""), ("::", ""), ("::1", ""), ("ff02::1", ""),
        ("::ffff:127.0.0.1", ""), ("fe80::1%en0", ""), ("bank.example", ""),
    ])
    func `a device's own host is an address of another device, in one form`(_ text: String, _ host: String) {
        #expect(localHost(text) == host)
    }

    private func ready(_ peer: DirectAddress, own: DirectAddress) throws -> IMPB_p2p_connect_ready_notification {
        let (ann, bob) = (try #require(UserID(1)), try #require(UserID(2)))
        let signal = IMPBTranslation.signal(from: ann, to: bob, peer, isReady: true)
        let notification = try #require(IMPBTranslation.notification(signal, from: ann, to: bob, own: own))
        return try IMPB_p2p_connect_ready_notification(wire: notification.body)
    }

    @Test func `two clients whose hosts are hidden do not count as near each other`() throws {
        let hidden = DirectAddress(local: "10.0.0.7", reported: "", observed: nil)
        #expect(try ready(hidden, own: DirectAddress()).ip == "")
        let seen = DirectAddress(local: "10.0.0.7", reported: "", observed: "9.9.9.9")
        #expect(try ready(seen, own: seen).ip == "10.0.0.7")
        #expect(try ready(seen, own: DirectAddress()).ip == "9.9.9.9")
    }

    @Test func `a client that gives the public host of another one does not count as near it`() throws {
        let own = DirectAddress(local: "192.168.0.2", reported: "", observed: "9.9.9.9")
        let cases: [(observed: String?, host: String)] = [
            ("9.9.9.9", "192.168.0.1"), ("149.112.112.112", "9.9.9.9"), (nil, "9.9.9.9"),
        ]
        for (observed, host) in cases {
            let peer = DirectAddress(local: "192.168.0.1", reported: "9.9.9.9", observed: observed)
            #expect(try ready(peer, own: own).ip == host, "\(observed ?? "hidden")")
        }
        let mapped = DirectAddress(local: "192.168.0.1", reported: "9.9.9.9", observed: "::ffff:9.9.9.9")
        #expect(try ready(mapped, own: own).ip == "192.168.0.1")
    }

    @Test func `two texts of one host count as one host`() throws {
        var peer = DirectAddress(local: "fd00::7", reported: "", observed: "2620:fe::fe")
        let own = peer
        for text in ["2620:FE:0:0::fe", "2620:fe::fe"] {
            peer.observedHost = text
            #expect(try ready(peer, own: own).ip == "fd00::7")
        }
        peer.observedHost = "2620:fe::9"
        #expect(try ready(peer, own: own).ip == "2620:fe::9")
    }

    @Test func `an IMPB client gets the peer's own port if its public port is not known`() throws {
        var peer = DirectAddress()
        peer.localPort = 4_000
        peer.observedHost = "9.9.9.9"
        #expect(try ready(peer, own: DirectAddress()).port == 4_000)
        peer.observedPort = 5_000
        #expect(try ready(peer, own: DirectAddress()).port == 5_000)
    }
}
