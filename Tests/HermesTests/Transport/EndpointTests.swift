// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import Testing

@Suite struct EndpointTests {
    @Test(arguments: [
        ("a.example:9000", "a.example", 9000), ("10.0.0.1:1", "10.0.0.1", 1), ("[::1]:65535", "::1", 65_535),
    ])
    func `what is an endpoint`(text: String, host: String, port: Int) throws {
        let endpoint = try #require(ServerAddress.Endpoint(text))
        #expect(endpoint.host == host)
        #expect(endpoint.port == port)
        #expect(endpoint.text == text)
    }

    @Test(arguments: [
        "", "a", "a:", ":9000", "a:0", "a:65536", "a:-1", "::1:9000", "a b:9000", "a\r\nb:9000", "é:9000", "[]:1",
        String(repeating: "a", count: 256) + ":65535",
    ])
    func `what is none`(text: String) { #expect(ServerAddress.Endpoint(text) == nil) }
}
