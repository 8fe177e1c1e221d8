// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesGateways
import NIOCore
import NIOHTTP1

/// The handshake of WebSocket (RFC 6455, section 4.2): which requests become connections of a gateway.
struct WebSocketUpgrader: NIOTypedHTTPServerProtocolUpgrader {
    typealias UpgradeResult = HTTPConnection.Outcome

    /// The request cannot become a WebSocket.
    struct Refused: Error {}

    let endpoints: [WebSocketEndpoint]
    let origins: WebSocketOrigins

    let supportedProtocol = "websocket"
    let requiredUpgradeHeaders: [String] = []

    func buildUpgradeResponse(
        channel: any Channel,
        upgradeRequest request: HTTPRequestHead,
        initialResponseHeaders: HTTPHeaders
    ) -> EventLoopFuture<HTTPHeaders> {
        guard let endpoint = endpoint(for: request), let key = Self.key(of: request) else {
            return channel.eventLoop.makeFailedFuture(Refused())
        }
        var headers = initialResponseHeaders
        headers.replaceOrAdd(name: "sec-websocket-accept", value: Self.answer(to: key))
        headers.replaceOrAdd(name: "sec-websocket-protocol", value: endpoint.subprotocol)
        return channel.eventLoop.makeSucceededFuture(headers)
    }

    func upgrade(channel: any Channel, upgradeRequest: HTTPRequestHead) -> EventLoopFuture<HTTPConnection.Outcome> {
        channel.eventLoop.makeCompletedFuture {
            guard let endpoint = endpoint(for: upgradeRequest) else { throw Refused() }
            do {
                try endpoint.take(channel)
            } catch {
                channel.close(promise: nil)
                throw error
            }
            return .webSocket
        }
    }

    /// Whether a request becomes a WebSocket.
    func takes(_ request: HTTPRequestHead) -> Bool {
        guard request.headers[canonicalForm: "upgrade"].contains(where: { $0.lowercased() == supportedProtocol }) else {
            return false
        }
        return endpoint(for: request) != nil && Self.key(of: request) != nil
    }

    private func endpoint(for request: HTTPRequestHead) -> WebSocketEndpoint? {
        let path = request.uri.prefix { $0 != "?" }
        guard request.method == .GET, request.version == .http1_1,
            let endpoint = endpoints.first(where: { $0.path == path }),
            request.headers[canonicalForm: "connection"].contains(where: { $0.lowercased() == "upgrade" }),
            request.headers["sec-websocket-version"] == ["13"],
            request.headers[canonicalForm: "sec-websocket-protocol"].contains(where: { $0 == endpoint.subprotocol }),
            origins.allow(request.headers["origin"])
        else { return nil }
        return endpoint
    }

    /// The key: 16 random bytes in base64, once.
    private static func key(of request: HTTPRequestHead) -> String? {
        let keys = request.headers["sec-websocket-key"]
        guard keys.count == 1, let key = keys.first, key.utf8.count == 24, Data(base64Encoded: key)?.count == 16 else {
            return nil
        }
        return key
    }

    private static func answer(to key: String) -> String {
        let text = Data((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)
        return Data(Insecure.SHA1.hash(data: text)).base64EncodedString()
    }
}

/// Which web pages may open a WebSocket.
struct WebSocketOrigins: Sendable {
    /// Empty: any.
    let allowed: Set<String>

    init(_ origins: [String]) { allowed = Set(origins.map { $0.lowercased() }) }

    /// Whether the `Origin` fields of a request are good. A client that is no browser sends none.
    func allow(_ fields: [String]) -> Bool {
        if allowed.isEmpty || fields.isEmpty { return true }
        return fields.count == 1 && fields.allSatisfy { allowed.contains($0.lowercased()) }
    }
}
