// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import Synchronization

/// The context of a request.
struct HTTPContext: RequestContext {
    /// The parts of a context that do not depend on the request.
    struct Source: RequestContextSource {
        let logger: Logger
        let channel: any Channel
        let peer: SocketAddress?
        let isClientHidden: Bool
        let forwarded: ForwardedClient
    }

    /// The type of a stream of events (HTML, section 9.2).
    static let eventStream = "text/event-stream"

    var coreContext: CoreRequestContextStorage
    /// The connection of the request.
    let channel: any Channel
    /// The connection's peer, or the client that a PROXY header gave.
    let peer: SocketAddress?
    /// Whether ``peer`` is a proxy whose PROXY header gave no client.
    let isClientHidden: Bool
    private let forwarded: ForwardedClient

    init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        peer = source.peer
        isClientHidden = source.isClientHidden
        forwarded = source.forwarded
    }

    /// Returns the client of a request with these fields: the client that a trusted proxy names, or else ``peer``;
    /// nil if the client is hidden.
    func client(of fields: HTTPFields) -> SocketAddress? {
        let known = isClientHidden ? nil : peer
        guard forwarded.trusts(peer) else { return known }
        var headers = HTTPHeaders()
        for name in HTTPField.Name.forwardedFields {
            for value in fields[values: name] { headers.add(name: name.canonicalName, value: value) }
        }
        if case .client(let client) = forwarded.client(of: headers, from: peer) { return client }
        return known
    }
}

extension HTTPField.Name {
    /// The fields in which a proxy names its client.
    static let forwardedFields = ["X-Forwarded-For", "Forwarded"].compactMap { HTTPField.Name($0) }
}

/// Passes the requests of a connection to the routes, and answers them in order. ``HTTPGuardHandler`` ends the
/// connection.
struct HTTPConversation: HTTPChannelHandler {
    /// Hummingbird's form of a connection. ``HTTPListener`` creates the channels.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
    }

    private struct NotSetUpHere: Error {}

    private let routes: RouterResponder<HTTPContext>
    private let forwarded: ForwardedClient
    private let logger: Logger
    private let date = HTTPDate()
    /// The other end of the served connection.
    private var peer = HTTPPeer(address: nil, isClientHidden: false)

    init(_ router: Router<HTTPContext>, forwarded: ForwardedClient, logger: Logger) {
        routes = router.buildResponder()
        self.forwarded = forwarded
        self.logger = logger
    }

    var responder: Responder {
        { [routes, forwarded, logger, date, peer] request, writer, channel in
            let source = HTTPContext.Source(
                logger: logger,
                channel: channel,
                peer: peer.address,
                isClientHidden: peer.isClientHidden,
                forwarded: forwarded
            )
            let context = HTTPContext(source: source)
            var response: Response
            do {
                response = try await routes.respond(to: request, context: context)
            } catch {
                logger.error("HTTP request failed", metadata: ["error": "\(error)"])
                response = Response(status: .internalServerError)
            }
            let isPage = response.headers[.contentSecurityPolicy] != nil
            for field in HTTPFields.ofNoPage where response.headers[field.name] == nil {
                // A page sets all these fields itself, except that it may lack `Cache-Control`.
                if !isPage || field.name == .cacheControl { response.headers.append(field) }
            }
            response.headers[.date] = date.now()
            response.headers[.server] = "hermes"
            // The answer to HEAD has no body (RFC 9110, section 9.3.2).
            if request.method == .head { response = response.createHeadResponse() }
            try await writer.write(response: response.head, body: response.body)
        }
    }

    /// Serves a connection. Returns when the connection is closed.
    func serve(_ connection: HTTPListener.Connection) async {
        var conversation = self
        conversation.peer = connection.peer
        await conversation.handleHTTP(asyncChannel: connection.exchange, logger: logger)
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeFailedFuture(NotSetUpHere())
    }

    func handle(value: Value, logger: Logger) async { value.channel.close(promise: nil) }
}

/// The time in HTTP's format (RFC 9110, section 5.6.7), formatted at most once a second.
///
/// State: one `Mutex`.
final class HTTPDate: Sendable {
    private let last = Mutex<(second: Int, text: String)>((.min, ""))

    func now() -> String {
        let second = Int(Date().timeIntervalSince1970.rounded(.down))
        return last.withLock { last in
            if last.second != second { last = (second, Self.text(second)) }
            return last.text
        }
    }

    /// - Parameter second: seconds since 1970.
    static func text(_ second: Int) -> String {
        // The remainder is never negative, even for a time before 1970.
        let time = (second % 86_400 + 86_400) % 86_400
        let days = (second - time) / 86_400
        // In this calculation, years begin in March, so that the leap day is the last day of a year (Howard Hinnant,
        // "chrono-compatible low-level date algorithms").
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7 + 7) % 7]
        let name = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][month - 1]
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(weekday), \(two(day)) \(name) \(year) \(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60)) GMT"
    }
}
