// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import HermesCore
import HermesGateways
import Hummingbird
import Logging
import NIOCore
import ServiceLifecycle
import Synchronization

/// The HTTP port: `/healthz`, `/readyz`, `/metrics`, the API under `/v1`, web pages, and gateways over WebSocket.
struct HTTPService: Service {
    /// The time in which running requests can finish when the server stops.
    private static let farewell = TimeAmount.seconds(2)

    let listener: HTTPListener
    let health: HealthState
    let readiness: Readiness
    let metrics: MetricsPage
    /// The HTTP API; nil if it is switched off.
    let api: API?
    let pages: Pages
    let site: HTTPGate.Site
    let logger: Logger
    /// Called with the port's number once the port is served.
    let listening: @Sendable (Int) -> Void

    func run() async throws {
        let conversation = HTTPConversation(router(), forwarded: listener.gate.forwarded, logger: logger)
        listener.gate.open(site, readiness: readiness)
        listening(listener.port)
        await withDiscardingTaskGroup { group in
            group.addTask {
                try? await gracefulShutdown()
                api?.core.events.stop()
                // The time limit lets the server stop even if a client holds a request open.
                await listener.stop(within: Self.farewell)
            }
            for await connection in listener.requests {
                group.addTask { await conversation.serve(connection) }
            }
        }
    }

    private func router() -> Router<HTTPContext> {
        // A path that registers GET and not HEAD also answers HEAD (RFC 9110, section 9.1).
        let router = Router(context: HTTPContext.self, options: .autoGenerateHeadEndpoints)
        // The gate answers these two paths itself when an address asks for them too often.
        router.get("/healthz") { _, _ in "ok\n" }
        router.get("/readyz") { [health, readiness] _, _ -> Response in
            guard health.current == .ready else { return Self.text(.serviceUnavailable, "\(health.text)\n") }
            let verdict = await readiness.current()
            return Self.text(verdict == .ready ? .ok : .serviceUnavailable, verdict.text)
        }
        router.get("/metrics") { [metrics, readiness] _, _ in
            _ = await readiness.current()
            return Response(
                status: .ok,
                headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
                body: .init(byteBuffer: metrics.text())
            )
        }
        api?.register(on: router, telling: listener.gate.knownKeys)
        pages.register(on: router)
        for endpoint in site.webSockets {
            // An invalid handshake arrives here as an ordinary request.
            router.get(RouterPath(endpoint.path)) { [origins = site.origins] request, _ -> Response in
                let hosts = request.head.authority.map { [$0] } ?? []
                guard origins.allow(request.headers[values: .origin], hosts: hosts) else {
                    return Self.text(
                        .forbidden,
                        "this web page may not connect; http.websocket.origins lists the origins whose pages may\n"
                    )
                }
                var response = Self.text(.upgradeRequired, "WebSocket with the subprotocol \(endpoint.subprotocol)\n")
                response.headers[.upgrade] = "websocket"
                response.headers[.secWebSocketVersion] = "13"
                return response
            }
        }
        return router
    }

    private static func text(_ status: HTTPResponse.Status, _ body: String) -> Response {
        Response(
            status: status,
            headers: [.contentType: "text/plain; charset=utf-8"],
            body: .init(byteBuffer: ByteBuffer(string: body))
        )
    }
}

/// The text of `/metrics`, written at most once a second.
///
/// State: one `Mutex`; the text is written while it is held, so that concurrent requests share one text.
final class MetricsPage: Sendable {
    private static let age = Duration.seconds(1)

    private let gauges: StateGauges
    private let uptime: @Sendable () -> Duration
    private let last = Mutex<(at: Duration, text: ByteBuffer)?>(nil)

    /// - Parameter uptime: the time of a clock that never goes back.
    init(_ gauges: StateGauges, uptime: @escaping @Sendable () -> Duration) {
        self.gauges = gauges
        self.uptime = uptime
    }

    func text() -> ByteBuffer {
        let now = uptime()
        return last.withLock { last in
            if let last, now - last.at < Self.age { return last.text }
            gauges.read()
            let text = ByteBuffer(string: MetricsRegistry.shared.text())
            last = (now, text)
            return text
        }
    }
}
