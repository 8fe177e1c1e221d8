// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import Testing

@Suite struct WebSocketAddressTests {
    private static let device = DeviceDescription(id: "browser")

    @Test(arguments: [
        ("ws://a.example", "a.example", 80, "/ws", false), ("WSS://a.example", "a.example", 443, "/ws", true),
        ("wss://a.example:8443/x/y?z=1", "a.example", 8443, "/x/y?z=1", true),
        ("ws://[::1]", "::1", 80, "/ws", false), ("ws://[::1]:8080/", "::1", 8080, "/", false),
        ("ws://10.0.0.1:8080", "10.0.0.1", 8080, "/ws", false),
    ])
    func `what is an address`(text: String, host: String, port: Int, path: String, isEncrypted: Bool) throws {
        let configuration = try #require(HermesClient.Configuration(webSocket: text, device: Self.device))
        #expect(configuration.server.host == host)
        #expect(configuration.server.port == port)
        #expect(configuration.webSocketPath == path)
        #expect((configuration.server.tls != nil) == isEncrypted)
    }

    @Test(arguments: [
        "", "a", "a:1", "ws:", "ws://", "ws:///ws", "http://a", "ws://a:0", "ws://a:b", "ws://a@b", "ws://a/b c",
        "ws://a/b\r\nX: y", "ws://a/#b", "ws://a?b", "ws://::1", "ws://[::1", "ws://é",
        "ws://a/" + String(repeating: "a", count: 2048),
    ])
    func `what is none`(text: String) {
        #expect(HermesClient.Configuration(webSocket: text, device: Self.device) == nil)
    }
}
