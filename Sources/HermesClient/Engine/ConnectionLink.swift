// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// What a protocol adds to the connection engine: its frames, its way to log in, and what it makes of what arrives.
///
/// A link is a value in a `ConnectionDriver` and does no IO: it fills `effects`, the driver carries them out in order.
protocol ConnectionLink: Sendable {
    /// Cuts the bytes that arrive into frames.
    associatedtype Decoder: FrameDecoder
    /// What is sent.
    associatedtype Request: Sendable
    /// What requests are answered with.
    associatedtype Answer: Sendable
    /// What the app gets.
    associatedtype Event: Sendable
    /// What a login yields.
    associatedtype Login: Sendable

    typealias Effects = [LinkEffect<Self>]

    /// The longest frame that is accepted from the server, in bytes.
    var maxFrameBytes: Int { get }

    /// A new connection is open: forget what belonged to the last one, and log in; `.authenticated` or `.refused`
    /// must follow, now or from `received`.
    mutating func connected(effects: inout Effects) throws

    /// A frame arrived.
    mutating func received(_ frame: Decoder.Frame, now: NIODeadline, effects: inout Effects) throws

    /// Appends a request. `id` is unique among the unanswered ones, at least 16, and comes back in `.answer`; 0 where no
    /// answer is awaited.
    mutating func write(_ request: Request, id: UInt64, into buffer: inout ByteBuffer) throws

    /// Appends a heartbeat.
    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws

    /// The connection is logged in; what is sent now goes before the waiting requests.
    mutating func becameLive(now: NIODeadline, effects: inout Effects)

    /// The connection is gone.
    mutating func lost()

    /// There will be no further connection, unless the app asks for one.
    func stopped()

    /// A connection that was logged in ended for this reason; it was logged in from this network.
    mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath)

    /// The network that the device is in, and what is known of its patience; called when either changes.
    mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat)

    /// What the device lets the app do; called before the first connection and when it changes. Only if `isLive` may
    /// something be sent at once.
    mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects)

    /// A request was given up before its answer came: nobody waits for it any more.
    mutating func abandoned(id: UInt64)

    /// The app closes the client: send now what was held back.
    mutating func closing(effects: inout Effects)

    /// Whether the app has seen the event before, under another number: it is not handed out again, but counts as taken.
    func isRepeat(_ event: Event) -> Bool

    /// The app has taken an event: it asked for the next one.
    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects)

    /// About how many bytes of memory an event takes while it waits.
    func bytes(of event: Event) -> Int

    /// How many events wait for the app to take them, and how many bytes they take; called when that changes.
    mutating func backlogChanged(_ count: Int, bytes: Int)

    /// When `deadlineReached` is to be called; nil: not needed.
    var nextDeadline: NIODeadline? { get }

    /// `nextDeadline` may have come.
    mutating func deadlineReached(now: NIODeadline, effects: inout Effects)
}

extension ConnectionLink {
    mutating func becameLive(now: NIODeadline, effects: inout Effects) {}
    mutating func lost() {}
    func stopped() {}
    mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath) {}
    mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat) {}
    mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects) {}
    mutating func abandoned(id: UInt64) {}
    mutating func closing(effects: inout Effects) {}
    func isRepeat(_ event: Event) -> Bool { false }
    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects) {}
    func bytes(of event: Event) -> Int { 0 }
    mutating func backlogChanged(_ count: Int, bytes: Int) {}
    var nextDeadline: NIODeadline? { nil }
    mutating func deadlineReached(now: NIODeadline, effects: inout Effects) {}
}

/// How much may wait for the app.
enum Backlog {
    /// Above so many bytes nothing more is kept that can be had again or matters only now.
    static let maxBytes = 64 * 1_048_576
    /// And so many events that matter only now: newer ones are dropped.
    static let maxEphemeral = 8192
    /// Above so many events in all, inbox entries are not kept either: they are asked for again.
    static let maxEvents = 16_384
}

/// What a link asks its driver to do.
enum LinkEffect<Link: ConnectionLink>: Sendable {
    /// The login succeeded; the server wants a heartbeat at least that often, if it says so, and knows what interval is
    /// well in the present network.
    case authenticated(Link.Login, heartbeatAtMost: Duration? = nil, heartbeatPrior: Duration? = nil)
    /// The login failed; for good unless the error says when trying again makes sense.
    case refused(HermesClientError)
    /// A request was answered.
    case answer(id: UInt64, Result<Link.Answer, HermesClientError>)
    /// Send this without waiting for an answer; with the id, where the link itself awaits one (below 16).
    case send(Link.Request, id: UInt64 = 0)
    /// Hand this to the app.
    case event(Link.Event)
    /// Drop all events that wait for the app: they are of another account.
    case forgetEvents
    /// The server is ending the connection; because of what was sent, where that is a breach of the protocol.
    case kicked(
        HermesClientError,
        mayReturn: Bool,
        advice: ConnectionEngine.StateMachine.Advice?,
        isBreach: Bool = false
    )
    /// The server will end the connection soon.
    case shutdownAnnounced(ConnectionEngine.StateMachine.Advice)
    /// The server asks for a new connection.
    case reconnectAdvised(ConnectionEngine.StateMachine.Advice)
}
