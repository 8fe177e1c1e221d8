// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Testing

@testable import HermesServer

struct ConsoleHostsTests {
    @Test
    func `a console on a loopback address is offered as this machine, and where a proxy offers it`() {
        let hosts = ConsoleHosts(origins: ["https://console.example.org"], isLoopback: true)
        for name in ["localhost", "localhost:8090", "127.0.0.1:8090", "[::1]:8090", "Console.Example.Org"] {
            #expect(hosts.allows(name), "\(name)")
        }
        for name in [nil, "", "example.org", "console.example.org:8090", "console.example.org.evil", "10.0.0.1"] {
            #expect(!hosts.allows(name), "\(name ?? "none")")
        }
    }

    @Test
    func `one that other machines reach has TLS, and any name that its certificate has`() {
        #expect(ConsoleHosts(origins: [], isLoopback: false).allows("console.example.org"))
    }
}
#endif
