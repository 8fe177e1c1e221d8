// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation
import HermesGateways
import NIOCore
import NIOHTTP1

/// The handshake of WebSocket (RFC 6455, section 4.2): decides which requests become connections of a gateway.
struct WebSocketUpgrader: NIOTypedHTTPServerProtocolUpgrader {
    typealias UpgradeResult = HTTPListener.Outcome

    /// The request cannot become a WebSocket.
    struct Refused: Error {}

    let gate: HTTPGate
    let peer: HTTPPeer
    /// The connection's entry in the ``ConnectionCounter``.
    let place: HTTPPlace

    let supportedProtocol = "websocket"
    let requiredUpgradeHeaders: [String] = []

    init(gate: HTTPGate, peer: HTTPPeer, place: HTTPPlace) {
        self.gate = gate
        self.peer = peer
        self.place = place
    }

    func buildUpgradeResponse(
        channel: any Channel,
        upgradeRequest request: HTTPRequestHead,
        initialResponseHeaders: HTTPHeaders
    ) -> EventLoopFuture<HTTPHeaders> {
        guard let site = gate.site, let endpoint = Self.endpoint(for: request, of: site),
            let subprotocol = Self.subprotocol(of: request, at: endpoint), let key = Self.key(of: request)
        else { return channel.eventLoop.makeFailedFuture(Refused()) }
        var headers = initialResponseHeaders
        headers.replaceOrAdd(name: "sec-websocket-accept", value: Self.answer(to: key))
        headers.replaceOrAdd(name: "sec-websocket-protocol", value: subprotocol)
        return channel.eventLoop.makeSucceededFuture(headers)
    }

    func upgrade(channel: any Channel, upgradeRequest: HTTPRequestHead) -> EventLoopFuture<HTTPListener.Outcome> {
        channel.eventLoop.makeCompletedFuture {
            guard let site = gate.site, let endpoint = Self.endpoint(for: upgradeRequest, of: site),
                let subprotocol = Self.subprotocol(of: upgradeRequest, at: endpoint)
            else { throw Refused() }
            let client: SocketAddress?
            switch gate.forwarded.client(of: upgradeRequest.headers, from: peer.address) {
            case .peer: client = peer.client
            case .client(let address): client = address
            case .contradiction: throw Refused()
            }
            do {
                try endpoint.take(
                    channel,
                    subprotocol: subprotocol,
                    counted: place,
                    for: client,
                    isClientHidden: client == nil
                )
            } catch {
                channel.close(promise: nil)
                throw error
            }
            return .webSocket
        }
    }

    /// Returns the endpoint of a WebSocket request; nil if the request is no valid handshake, or is not allowed.
    static func endpoint(for request: HTTPRequestHead, of site: HTTPGate.Site) -> WebSocketEndpoint? {
        let path = request.uri.prefix { $0 != "?" }
        guard request.method == .GET, request.version == .http1_1,
            let endpoint = site.webSockets.first(where: { $0.path == path }),
            request.headers[canonicalForm: "upgrade"].contains(where: { $0.lowercased() == "websocket" }),
            request.headers[canonicalForm: "connection"].contains(where: { $0.lowercased() == "upgrade" }),
            request.headers["sec-websocket-version"] == ["13"],
            subprotocol(of: request, at: endpoint) != nil,
            // A handshake has no body; later bytes belong to the gateway.
            request.headers["content-length"].allSatisfy({ $0 == "0" }),
            !request.headers.contains(name: "transfer-encoding"),
            key(of: request) != nil,
            site.origins.allow(request.headers["origin"], hosts: request.headers["host"])
        else { return nil }
        return endpoint
    }

    private static func subprotocol(of request: HTTPRequestHead, at endpoint: WebSocketEndpoint) -> String? {
        endpoint.subprotocol(of: request.headers[canonicalForm: "sec-websocket-protocol"])
    }

    /// Returns the handshake's key, which is 16 random bytes in base64; nil unless there is exactly one key and it is
    /// valid.
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
