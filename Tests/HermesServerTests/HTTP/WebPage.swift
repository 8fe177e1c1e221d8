// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Testing

/// The connection of a web page.
struct WebPage {
    let client: WebSocketClient

    /// - Parameter subprotocols: the subprotocols in the form in which the page requests them.
    static func open(_ server: TestServer, _ subprotocols: String = "hermes.v1.json") async throws -> WebPage {
        let client = try await WebSocketClient.connect(port: server.port("http"))
        try await client.send(WebSocketClient.request("/ws", ["Sec-WebSocket-Protocol": subprotocols]))
        let head = try await client.head()
        #expect(head.status == 101, "\(head.text)")
        return WebPage(client: client)
    }

    func send(_ text: String) async throws {
        try await client.send(WebSocketClient.frame(0x81, Array(text.utf8)))
    }

    /// Returns the next message, which must be a text.
    func next() async throws -> [String: Any] {
        let (first, payload) = try await client.next()
        #expect(first == 0x81)
        return try #require(JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
    }

    /// Returns the next packet with this body.
    func next(_ body: String) async throws -> [String: Any] {
        while true {
            let packet = try await next()
            if let found = packet[body] as? [String: Any] { return found }
        }
    }

    func result(_ id: String) async throws -> [String: Any] {
        while true {
            let packet = try await next()
            if packet["id"] as? String == id { return try #require(packet["result"] as? [String: Any]) }
        }
    }

    /// Sends a request and waits for its result.
    func ask(_ id: Int, _ body: String) async throws -> [String: Any] {
        try await send(#"{"id":"\#(id)",\#(body)}"#)
        return try await result("\(id)")
    }

    /// - Returns: the uid.
    func register(_ name: String) async throws -> Int {
        try await send(
            #"{"id":"1","register":{"nickName":"\#(name)","password":"secret12","device":{"id":"page"}}}"#
        )
        let session = try #require(try await result("1")["session"] as? [String: Any])
        return try #require(session["uid"] as? Int)
    }
}
