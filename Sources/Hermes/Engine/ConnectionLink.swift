// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesWire
package import NIOCore

/// A protocol's part of the connection engine: its frames, its login, and the meaning of what arrives.
///
/// A link is a value in a `ConnectionDriver` and does no I/O. It fills `effects`, and the driver carries them out in
/// order.
package protocol ConnectionLink: Sendable {
    /// Cuts incoming bytes into frames.
    associatedtype Decoder: FrameDecoder
    /// A request to the server.
    associatedtype Request: Sendable
    /// The answer to a request.
    associatedtype Answer: Sendable
    /// An event for the app.
    associatedtype Event: Sendable
    /// The result of a login.
    associatedtype Login: Sendable

    typealias Effects = [LinkEffect<Self>]

    /// The longest frame accepted from the server, in bytes.
    var maxFrameBytes: Int { get }

    /// Creates the decoder of a new connection.
    func makeDecoder() -> Decoder

    /// A new connection is open. The link drops the state of the last one and logs in; `.authenticated` or `.refused`
    /// must follow, now or from `received`.
    mutating func connected(effects: inout Effects) throws

    /// A frame arrived.
    mutating func received(_ frame: Decoder.Frame, now: NIODeadline, effects: inout Effects) throws

    /// Appends a request. `id` is unique among the unanswered ones, at least 16, and returns in `.answer`; 0 where no
    /// answer is awaited.
    mutating func write(_ request: Request, id: UInt64, into buffer: inout ByteBuffer) throws

    /// Appends a heartbeat.
    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws

    /// The connection is logged in. Packets that the link sends now go before the waiting requests.
    mutating func becameLive(now: NIODeadline, effects: inout Effects)

    /// The connection is gone.
    mutating func lost()

    /// There will be no further connection unless the app asks for one.
    func stopped()

    /// A logged-in connection ended, for this reason. It had logged in from this network.
    mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath)

    /// The device's network and its learned heartbeat; called when either changes.
    mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat)

    /// The app's state; called before the first connection and at each change. The link may send only if `isLive`.
    mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects)

    /// A request was given up before its answer; nothing waits for it.
    mutating func abandoned(id: UInt64)

    /// The app closes the client: the link now sends the data that it held back.
    mutating func closing(effects: inout Effects)

    /// Appends the last bytes of a connection that the client closes.
    func writeFarewell(into buffer: inout ByteBuffer) throws

    /// Whether the app has seen the event under another number. It then counts as taken and is not handed out again.
    func isRepeat(_ event: Event) -> Bool

    /// The app has taken an event by asking for the next one.
    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects)

    /// The memory that a waiting event takes, in bytes; an estimate.
    func bytes(of event: Event) -> Int

    /// The number and the bytes of the events that wait for the app; called at each change.
    mutating func backlogChanged(_ count: Int, bytes: Int)

    /// The time at which `deadlineReached` is due; nil if none.
    var nextDeadline: NIODeadline? { get }

    /// `nextDeadline` may have passed.
    mutating func deadlineReached(now: NIODeadline, effects: inout Effects)
}

extension ConnectionLink {
    package func makeDecoder() -> Decoder { Decoder(maxFrameBytes: maxFrameBytes) }
    package mutating func becameLive(now: NIODeadline, effects: inout Effects) {}
    package mutating func lost() {}
    package func stopped() {}
    package mutating func connectionEnded(_ end: ConnectionEnd, in network: NetworkPath) {}
    package mutating func networkKnown(_ network: NetworkPath, heartbeat: LearnedHeartbeat) {}
    package mutating func appStateKnown(_ state: DeviceConditions.AppState, isLive: Bool, effects: inout Effects) {}
    package mutating func abandoned(id: UInt64) {}
    package mutating func closing(effects: inout Effects) {}
    package func writeFarewell(into buffer: inout ByteBuffer) throws {}
    package func isRepeat(_ event: Event) -> Bool { false }
    package mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects) {}
    package func bytes(of event: Event) -> Int { 0 }
    package mutating func backlogChanged(_ count: Int, bytes: Int) {}
    package var nextDeadline: NIODeadline? { nil }
    package mutating func deadlineReached(now: NIODeadline, effects: inout Effects) {}
}

/// The bounds of the events that wait for the app.
package enum Backlog {
    /// Above this number of bytes, the client drops whatever can be fetched again or is ephemeral.
    package static let maxBytes = 64 * 1_048_576
    /// Above this number of events, newer ephemeral ones are dropped.
    package static let maxEphemeral = 8192
    /// Above this number of bytes, newer ephemeral events are dropped.
    static let maxEphemeralBytes = 16 * 1_048_576
    /// Above this number of events, inbox entries are dropped too, and asked for again later.
    package static let maxEvents = 16_384
}

/// An instruction of a link to its driver.
package enum LinkEffect<Link: ConnectionLink>: Sendable {
    /// The login succeeded. The server may limit the heartbeat interval and suggest one for the network.
    case authenticated(Link.Login, heartbeatAtMost: Duration? = nil, heartbeatPrior: Duration? = nil)
    /// The login failed. That is final unless the error has a `retryAfter`.
    case refused(HermesClientError)
    /// A request was answered.
    case answer(id: UInt64, Result<Link.Answer, HermesClientError>)
    /// Send this request. A non-zero id, below 16, means that the link awaits the answer.
    case send(Link.Request, id: UInt64 = 0)
    /// Hand this event to the app.
    case event(Link.Event)
    /// Drop all waiting events: they belong to another account.
    case forgetEvents
    /// The server is ending the connection, perhaps because a request broke the protocol.
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
